//! One answer of the model: its blocks and calls while they are told, and its end.

use capsule_api::{BlockId, BlockKind, CallId, Error, ErrorKind, Event as Say, Limit, Outcome};
use serde_json::{Value, json};

use super::{Action, NOT_SAID, Reader, outcome, usage_of, warning, wire};
use crate::{codes, command::SERVER};

/// The answer to the current request.
#[derive(Debug, Default)]
pub(super) struct Answer {
    blocks: Vec<Block>,
    /// Calls that are the model's own, in order.
    calls: Vec<CallId>,
    /// Those of them that go to the capsule.
    ours: Vec<CallId>,
    /// Blocks handed out over all answers of the run.
    count: u32,
}

/// A block of it.
#[derive(Debug)]
struct Block {
    item: String,
    id: BlockId,
    kind: BlockKind,
    text: String,
    /// Which part of a reasoning item the last delta belonged to.
    part: u32,
}

impl Answer {
    fn begin(&mut self) {
        *self = Self {
            count: self.count,
            ..Self::default()
        };
    }

    /// The text of its text blocks.
    pub(super) fn text(&self) -> String {
        let texts = self.blocks.iter().filter(|block| block.kind == BlockKind::Text);
        texts.map(|block| block.text.as_str()).collect()
    }

    /// The block of an item.
    fn block(&mut self, item: &str, kind: BlockKind) -> &mut Block {
        let known = self.blocks.iter().position(|block| block.item == item);
        let at = known.unwrap_or_else(|| {
            self.blocks.push(Block {
                item: item.to_owned(),
                id: BlockId(self.count),
                kind,
                text: String::new(),
                part: 0,
            });
            self.count += 1;
            self.blocks.len() - 1
        });
        &mut self.blocks[at]
    }

    fn delta(&mut self, item: &str, kind: BlockKind, part: u32, piece: &str, actions: &mut Vec<Action>) {
        if piece.is_empty() {
            return;
        }
        let block = self.block(item, kind);
        let gap = block.part != part && !block.text.is_empty();
        block.part = part;
        let piece = format!("{}{piece}", if gap { "\n\n" } else { "" });
        block.text.push_str(&piece);
        actions.push(Action::Say(Say::Delta {
            block: block.id,
            kind,
            text: piece,
        }));
    }

    fn whole(&mut self, item: &str, kind: BlockKind, text: String, actions: &mut Vec<Action>) {
        if text.is_empty() && !self.blocks.iter().any(|block| block.item == item) {
            return;
        }
        let block = self.block(item, kind);
        block.text.clone_from(&text);
        actions.push(Action::Say(Say::Block {
            block: block.id,
            kind,
            text,
        }));
    }

    /// Takes back all blocks. Calls stay: the CLI runs each as soon as it is told.
    fn retract(&mut self, actions: &mut Vec<Action>) {
        let gone = self.blocks.drain(..).map(|block| Say::Retracted { block: block.id });
        actions.extend(gone.map(Action::Say));
    }
}

impl Reader {
    /// A model request is sent.
    pub(super) fn begin_request(&mut self, actions: &mut Vec<Action>) {
        if self.requests >= self.expected.requests {
            let which = Limit::Requests;
            return actions.push(Action::Stop(Ok(Outcome::LimitReached { which })));
        }
        self.requests += 1;
        self.waiting = true;
        self.tries = 0;
        self.answer.begin();
        actions.push(Action::Say(Say::RequestStarted { n: self.requests }));
        actions.push(Action::Request(self.requests));
    }

    /// Something of an answer is told: if none was awaited, the CLI has asked again by itself.
    fn answering(&mut self, actions: &mut Vec<Action>) {
        if !self.waiting {
            self.begin_request(actions);
        }
    }

    pub(super) fn text_delta(&mut self, item: &str, piece: String, actions: &mut Vec<Action>) {
        self.answering(actions);
        self.answer.delta(item, BlockKind::Text, 0, &piece, actions);
    }

    pub(super) fn thinking_delta(&mut self, item: &str, part: u32, piece: String, actions: &mut Vec<Action>) {
        self.answering(actions);
        self.answer.delta(item, BlockKind::Thinking, part, &piece, actions);
    }

    pub(super) fn item(&mut self, item: Value, whole: bool, actions: &mut Vec<Action>) {
        let kind = item["type"].as_str().unwrap_or_default().to_owned();
        match serde_json::from_value(item) {
            Err(error) => self.junk(&format!("an item: {error}"), actions),
            Ok(wire::Item::AgentMessage { id, text }) => {
                self.answering(actions);
                if whole {
                    self.answer.whole(&id, BlockKind::Text, text, actions);
                }
            }
            Ok(wire::Item::Reasoning { id, summary, content }) => {
                self.answering(actions);
                if whole {
                    let parts = if summary.is_empty() { content } else { summary };
                    self.answer.whole(&id, BlockKind::Thinking, parts.join("\n\n"), actions);
                }
            }
            Ok(wire::Item::McpToolCall(item)) => self.tool_call(*item, whole, actions),
            Ok(wire::Item::UserMessage) => {}
            Ok(wire::Item::ContextCompaction) => {
                if whole {
                    actions.push(warning(
                        "codex-compacted",
                        "the CLI summarised older turns to fit the model's context window".to_owned(),
                    ));
                }
            }
            Ok(wire::Item::Other) => {
                let message = format!("the CLI began work of its own, which is turned off: `{kind}`");
                actions.push(Action::Stop(Err(Error::new(&codes::TOOLS, message))));
            }
        }
    }

    fn tool_call(&mut self, item: wire::McpToolCall, whole: bool, actions: &mut Vec<Action>) {
        let call = CallId::new(item.id);
        if item.server == SERVER {
            self.call(&call, &item.tool, item.arguments, actions);
        }
        if whole {
            let told = if item.error.is_null() {
                &item.result["content"]
            } else {
                &item.error
            };
            self.returned(call, told, actions);
        }
    }

    /// An item as the model wrote it.
    pub(super) fn raw_item(&mut self, item: Value, actions: &mut Vec<Action>) {
        match serde_json::from_value(item) {
            Err(error) => self.junk(&format!("a model's item: {error}"), actions),
            Ok(wire::RawItem::FunctionCall {
                call_id,
                name,
                namespace,
                arguments,
            }) => {
                let call = CallId::new(call_id);
                let arguments = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
                if namespace.as_deref().is_some_and(|name| name.ends_with(SERVER)) {
                    self.answer.ours.push(call.clone());
                }
                self.call(&call, &name, arguments, actions);
            }
            Ok(wire::RawItem::CustomToolCall { call_id, name, input }) => {
                let call = CallId::new(call_id);
                if self.expected.code_mode {
                    // A script: the calls that it makes are told as they are made.
                    self.answering(actions);
                    self.answer.calls.push(call);
                } else {
                    self.call(&call, &name, json!(input), actions);
                }
            }
            Ok(
                wire::RawItem::FunctionCallOutput { call_id, output }
                | wire::RawItem::CustomToolCallOutput { call_id, output },
            ) => {
                if !self.expected.code_mode {
                    self.returned(CallId::new(call_id), &output, actions);
                }
            }
            Ok(wire::RawItem::Other) => {}
        }
    }

    /// A call of the model's; it is told once, by whichever comes first.
    fn call(&mut self, call: &CallId, name: &str, arguments: Value, actions: &mut Vec<Action>) {
        if self.answer.calls.contains(call) || self.returned.contains(call) {
            return;
        }
        self.answer.calls.push(call.clone());
        let name = self.declared(name);
        actions.push(Action::Say(Say::CallStarted {
            call: call.clone(),
            name: name.clone(),
        }));
        actions.push(Action::Say(Say::Call {
            call: call.clone(),
            name,
            arguments,
        }));
    }

    fn returned(&mut self, call: CallId, told: &Value, actions: &mut Vec<Action>) {
        if !self.returned.insert(call.clone()) {
            return;
        }
        let told = told.as_str().map_or_else(|| told.to_string(), str::to_owned);
        let told = told.chars().take(500).collect();
        actions.push(Action::Returned { call, told });
    }

    /// The answer is complete.
    pub(super) fn end_request(&mut self, tokens: Option<&wire::Tokens>, actions: &mut Vec<Action>) {
        self.answering(actions);
        let stop = if self.answer.calls.is_empty() {
            "end_turn"
        } else {
            "tool_call"
        };
        self.answered_as(stop, tokens, actions);
        if self.answer.calls.is_empty() && self.answer.text().is_empty() {
            let message = "the model answered without a text; the CLI passes on a refusal in the same way";
            actions.push(warning("codex-empty-answer", message.to_owned()));
        }
        if self.requests >= self.expected.requests && self.raw && !self.answer.ours.is_empty() {
            actions.push(Action::Last(self.answer.ours.clone()));
        }
    }

    fn answered_as(&mut self, stop: &str, tokens: Option<&wire::Tokens>, actions: &mut Vec<Action>) {
        self.waiting = false;
        actions.push(Action::Say(Say::RequestEnded {
            n: self.requests,
            stop: stop.to_owned(),
        }));
        self.usage.add_tokens(tokens.map(usage_of).unwrap_or_default());
        self.usage.requests += 1;
        actions.push(Action::Say(Say::Usage(self.usage)));
    }

    /// The tokens of an answer are counted, after its calls have run. What follows calls is the next request.
    pub(super) fn counted(&mut self, tokens: Option<wire::TokenUsage>, actions: &mut Vec<Action>) {
        let last = tokens.unwrap_or_default().last;
        if (last.input_tokens, last.output_tokens) == (0, 0) {
            // A guess of the CLI's, where the provider said that the context is full.
            return;
        }
        if !self.raw && self.waiting {
            self.end_request(Some(&last), actions);
        }
        if !self.waiting && !self.answer.calls.is_empty() {
            self.begin_request(actions);
        }
    }

    pub(super) fn error(&mut self, error: wire::TurnError, will_retry: bool, actions: &mut Vec<Action>) {
        if let Some((stop, outcome)) = outcome::cut(&error, &self.answer) {
            // The CLI would try a refused answer again.
            self.answering(actions);
            self.answered_as(stop, None, actions);
            return actions.push(Action::Stop(Ok(outcome)));
        }
        if !will_retry {
            return;
        }
        let (code, status) = outcome::class(&error);
        if code.kind == ErrorKind::Auth {
            // A refused key stays refused.
            return actions.push(Action::Stop(Err(outcome::error_of(&error))));
        }
        self.answer.retract(actions);
        self.tries += 1;
        actions.push(Action::Say(Say::Retrying {
            attempt: self.tries,
            after: NOT_SAID,
            cause: match status {
                None if code.id == codes::FAILED.id => ErrorKind::Network,
                _ => code.kind,
            },
        }));
    }

    /// The declared name behind the name that the model or the CLI uses; the model knows it with `_` for `-`.
    fn declared(&self, name: &str) -> String {
        let tools = &self.expected.catalogue.tools;
        let folded = || tools.iter().find(|tool| tool.alias.replace('-', "_") == name);
        let tool = self.expected.catalogue.by_alias(name).or_else(folded);
        tool.map_or(name, |tool| &tool.name).to_owned()
    }
}
