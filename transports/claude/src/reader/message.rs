//! One answer of the model: its blocks while they stream, and when they are whole.

use capsule_api::{BlockId, BlockKind, CallId, Event as Say, Outcome};

use super::{Action, Reader, alias, usage_of, warning, wire};

/// The answer to the current request.
#[derive(Debug, Default)]
pub(super) struct Answer {
    id: String,
    parts: Vec<Part>,
    stop: Option<String>,
    /// Input tokens as they were told at its start.
    started: capsule_api::Usage,
    /// Blocks handed out over all answers of the run.
    blocks: u32,
}

/// A block of it.
#[derive(Debug)]
struct Part {
    index: Option<u32>,
    whole: bool,
    gone: bool,
    what: What,
}

#[derive(Debug)]
enum What {
    Block { id: BlockId, kind: BlockKind, text: String },
    Call { id: CallId, bytes: u64 },
}

impl Answer {
    fn begin(&mut self, id: String, started: capsule_api::Usage) {
        self.id = id;
        self.parts.clear();
        self.stop = None;
        self.started = started;
    }

    /// The text of its text blocks.
    pub(super) fn text(&self) -> String {
        let texts = self
            .parts
            .iter()
            .filter(|part| !part.gone)
            .filter_map(|part| match &part.what {
                What::Block {
                    kind: BlockKind::Text,
                    text,
                    ..
                } => Some(text.as_str()),
                _ => None,
            });
        texts.collect()
    }

    /// Why it stopped, in the provider's word.
    pub(super) fn stop(&self) -> Option<&str> {
        self.stop.as_deref()
    }

    fn new_block(&mut self, index: Option<u32>, kind: BlockKind) -> &mut Part {
        let id = BlockId(self.blocks);
        self.blocks += 1;
        let text = String::new();
        self.push(index, What::Block { id, kind, text })
    }

    fn push(&mut self, index: Option<u32>, what: What) -> &mut Part {
        self.parts.push(Part {
            index,
            whole: false,
            gone: false,
            what,
        });
        self.parts.last_mut().expect("it was just pushed")
    }

    /// Takes back what is not whole from block `from` on.
    pub(super) fn abandon(&mut self, from: u32, actions: &mut Vec<Action>) {
        for part in &mut self.parts {
            if part.whole || part.gone || part.index.is_none_or(|index| index < from) {
                continue;
            }
            part.gone = true;
            actions.push(Action::Say(match &part.what {
                What::Block { id, .. } => Say::Retracted { block: *id },
                What::Call { id, .. } => Say::CallAbandoned { call: id.clone() },
            }));
        }
    }

    /// The run is over: calls that were begun will never run. Text stays as the partial text it is.
    pub(super) fn abandon_calls(&mut self, actions: &mut Vec<Action>) {
        for part in &mut self.parts {
            if let What::Call { id, .. } = &part.what
                && !part.whole
                && !part.gone
            {
                part.gone = true;
                actions.push(Action::Say(Say::CallAbandoned { call: id.clone() }));
            }
        }
    }

    fn delta(&mut self, index: u32, delta: wire::Delta, actions: &mut Vec<Action>) {
        let part = self
            .parts
            .iter_mut()
            .find(|part| part.index == Some(index) && !part.gone);
        match (part.map(|part| &mut part.what), delta) {
            (Some(What::Block { id, kind, text }), wire::Delta::Text { text: piece })
            | (Some(What::Block { id, kind, text }), wire::Delta::Thinking { thinking: piece })
                if !piece.is_empty() =>
            {
                text.push_str(&piece);
                actions.push(Action::Say(Say::Delta {
                    block: *id,
                    kind: *kind,
                    text: piece,
                }));
            }
            (Some(What::Call { id, bytes }), wire::Delta::Input { partial_json }) if !partial_json.is_empty() => {
                *bytes += partial_json.len() as u64;
                actions.push(Action::Say(Say::CallProgress {
                    call: id.clone(),
                    input_bytes: *bytes,
                }));
            }
            // Seals, and what belongs to a block of a kind that is not shown.
            _ => {}
        }
    }

    /// A whole block of text; it replaces the first one of its kind that still streams.
    fn whole(&mut self, kind: BlockKind, text: String, actions: &mut Vec<Action>) {
        let streamed = self.parts.iter().position(|part| {
            !part.whole && !part.gone && matches!(&part.what, What::Block { kind: of, .. } if *of == kind)
        });
        let part = match streamed {
            Some(at) => &mut self.parts[at],
            None => self.new_block(None, kind),
        };
        part.whole = true;
        if let What::Block { id, text: kept, .. } = &mut part.what {
            kept.clone_from(&text);
            actions.push(Action::Say(Say::Block { block: *id, kind, text }));
        }
    }

    /// Whether a call of this id is part of it.
    fn call(&mut self, id: &str) -> Option<&mut Part> {
        self.parts
            .iter_mut()
            .find(|part| matches!(&part.what, What::Call { id: of, .. } if of.as_str() == id))
    }
}

impl Reader {
    /// A model request is sent.
    pub(super) fn begin_request(&mut self, actions: &mut Vec<Action>) {
        self.answer.abandon(0, actions);
        if let Some(failure) = self.failure.take() {
            actions.push(warning("claude-request-failed", failure.text));
        }
        self.requests += 1;
        self.waiting = true;
        actions.push(Action::Say(Say::RequestStarted { n: self.requests }));
    }

    pub(super) fn stream(&mut self, event: wire::StreamEvent, actions: &mut Vec<Action>) {
        match event.event {
            wire::Raw::MessageStart { message } => self.begin_answer(message, actions),
            wire::Raw::ContentBlockStart { index, content_block } => self.begin_block(index, content_block, actions),
            wire::Raw::ContentBlockDelta { index, delta } => self.answer.delta(index, delta, actions),
            wire::Raw::MessageDelta { delta, usage } => {
                if delta.stop_reason.is_some() {
                    self.answer.stop = delta.stop_reason;
                }
                let told = usage_of(&usage);
                self.answer.started.output = told.output;
                self.answer.started.reasoning = told.reasoning;
            }
            wire::Raw::MessageStop => match event.abandoned_blocks {
                Some(abandoned) => self.answer.abandon(abandoned.from_block_index, actions),
                None => self.end_request(actions),
            },
            wire::Raw::Other => {}
        }
    }

    fn begin_answer(&mut self, message: wire::Message, actions: &mut Vec<Action>) {
        if !self.waiting {
            self.begin_request(actions);
        }
        self.answer.abandon(0, actions);
        self.answer.begin(message.id, usage_of(&message.usage));
    }

    fn begin_block(&mut self, index: u32, block: wire::Block, actions: &mut Vec<Action>) {
        match block {
            wire::Block::Text { .. } => drop(self.answer.new_block(Some(index), BlockKind::Text)),
            wire::Block::Thinking { .. } => drop(self.answer.new_block(Some(index), BlockKind::Thinking)),
            wire::Block::ToolUse { id, name, .. } => self.begin_call(Some(index), &id, &name, actions),
            wire::Block::Other => {}
        }
    }

    fn begin_call(&mut self, index: Option<u32>, id: &str, name: &str, actions: &mut Vec<Action>) {
        let call = CallId::new(id);
        let what = What::Call {
            id: call.clone(),
            bytes: 0,
        };
        self.answer.push(index, what);
        actions.push(Action::Say(Say::CallStarted {
            call,
            name: self.declared(name),
        }));
    }

    /// Whole blocks of an answer. An answer that never streamed is a last resort of the CLI's.
    pub(super) fn assistant(&mut self, message: wire::Message, actions: &mut Vec<Action>) {
        if message.id != self.answer.id {
            let usage = wire::Message {
                id: message.id,
                usage: message.usage,
                ..wire::Message::default()
            };
            self.begin_answer(usage, actions);
        }
        for block in message.content {
            match block {
                wire::Block::Text { text } => self.answer.whole(BlockKind::Text, text, actions),
                wire::Block::Thinking { thinking } => self.answer.whole(BlockKind::Thinking, thinking, actions),
                wire::Block::ToolUse { id, name, input } => {
                    if self.answer.call(&id).is_none() {
                        self.begin_call(None, &id, &name, actions);
                    }
                    if let Some(part) = self.answer.call(&id) {
                        part.whole = true;
                    }
                    actions.push(Action::Say(Say::Call {
                        call: CallId::new(id),
                        name: self.declared(&name),
                        arguments: input,
                    }));
                }
                wire::Block::Other => {}
            }
        }
        if message.stop_reason.is_some() && self.waiting {
            self.answer.stop = message.stop_reason;
            self.end_request(actions);
        }
    }

    /// The answer is complete. One that was cut by its limit, or refused, ends the run: the CLI would ask for more by itself.
    fn end_request(&mut self, actions: &mut Vec<Action>) {
        if !std::mem::take(&mut self.waiting) {
            return;
        }
        let stop = self.answer.stop().unwrap_or("unknown").to_owned();
        actions.push(Action::Say(Say::RequestEnded {
            n: self.requests,
            stop: match stop.as_str() {
                "tool_use" => "tool_call".to_owned(),
                "stop_sequence" => "end_turn".to_owned(),
                "pause_turn" => "pause".to_owned(),
                other => other.to_owned(),
            },
        }));
        self.usage.add_tokens(self.answer.started);
        self.usage.requests += 1;
        actions.push(Action::Say(Say::Usage(self.usage)));
        match stop.as_str() {
            "max_tokens" | "model_context_window_exceeded" => actions.push(Action::Stop(Ok(Outcome::Truncated {
                partial: self.answer.text(),
            }))),
            "refusal" => actions.push(Action::Stop(Ok(Outcome::Refused {
                text: self.answer.text(),
            }))),
            _ => {}
        }
    }

    fn declared(&self, name: &str) -> String {
        self.expected.catalogue.name_of(alias(name)).to_owned()
    }
}
