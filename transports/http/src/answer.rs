//! One answer as it arrives: items become events, and can be taken back.

use std::collections::{BTreeMap, HashSet};

use capsule_api::{
    BlockDelta, BlockId, BlockKind, BlockStart, CallId, Catalogue, Code, ContentBlock, DriverOut, Event, Events,
    Response, StreamItem, Usage, serde_json::Value,
};

/// The ids of tool calls in a conversation. Each is used once, whatever a provider sends.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    used: HashSet<String>,
    made: u32,
}

impl Ids {
    /// Ids of which these are taken.
    pub(crate) fn with_used(used: impl IntoIterator<Item = String>) -> Self {
        Self {
            used: used.into_iter().collect(),
            made: 0,
        }
    }

    /// The provider's id where it is one and new, else one of our own.
    pub(crate) fn take(&mut self, wanted: &str) -> CallId {
        if !wanted.is_empty() && self.used.insert(wanted.to_owned()) {
            return CallId::new(wanted);
        }
        loop {
            self.made += 1;
            let own = format!("call_{}", self.made);
            if self.used.insert(own.clone()) {
                return CallId::new(own);
            }
        }
    }
}

/// A call of an answer, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlannedCall {
    pub(crate) id: CallId,
    pub(crate) alias: String,
    pub(crate) input: Value,
}

enum Live {
    Block(BlockId, BlockKind),
    Call(CallId, u64),
}

/// Reports an answer's items as events while it arrives. All of it is provisional until [`LiveAnswer::settle`].
pub(crate) struct LiveAnswer<'a> {
    events: &'a Events,
    catalogue: &'a Catalogue,
    ids: &'a mut Ids,
    live: BTreeMap<u32, Live>,
    usage: Option<Usage>,
}

impl<'a> LiveAnswer<'a> {
    pub(crate) fn new(events: &'a Events, catalogue: &'a Catalogue, ids: &'a mut Ids) -> Self {
        Self {
            events,
            catalogue,
            ids,
            live: BTreeMap::new(),
            usage: None,
        }
    }

    /// The counts that came with the items so far.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// The answer failed and will be asked for again: everything said for it is taken back.
    pub(crate) fn retract(self) {
        for live in self.live.into_values() {
            match live {
                Live::Block(block, _) => self.events.emit(Event::Retracted { block }),
                Live::Call(call, _) => self.events.emit(Event::CallAbandoned { call }),
            }
        }
    }

    /// The answer failed for good or was cancelled: its text stays as the partial text it is, its calls will never run.
    pub(crate) fn abandon(self) {
        for live in self.live.into_values() {
            if let Live::Call(call, _) = live {
                self.events.emit(Event::CallAbandoned { call });
            }
        }
    }

    /// The answer is whole: reports its blocks and returns its calls, if they may `run`. The response's calls get the ids under which
    /// they were reported.
    pub(crate) fn settle(mut self, response: &mut Response, run: bool) -> Vec<PlannedCall> {
        let mut planned = Vec::new();
        for block in &mut response.content {
            match block {
                ContentBlock::Text { text } => self.whole(BlockKind::Text, text),
                // Withheld reasoning has nothing to show.
                ContentBlock::Thinking { redacted: Some(_), .. } => {}
                ContentBlock::Thinking { text, .. } => self.whole(BlockKind::Thinking, text),
                ContentBlock::ToolCall { id, name, input } => {
                    let (call, known) = self.call_for(id);
                    *id = call.as_str().to_owned();
                    if run {
                        self.report(&call, name, input, known);
                        planned.push(PlannedCall {
                            id: call,
                            alias: name.clone(),
                            input: input.clone(),
                        });
                    } else if known {
                        self.events.emit(Event::CallAbandoned { call });
                    }
                }
            }
        }
        // What was reported and is not part of the answer never was.
        self.retract();
        planned
    }

    fn report(&self, call: &CallId, alias: &str, input: &Value, known: bool) {
        let name = self.catalogue.name_of(alias).to_owned();
        if !known {
            self.events.emit(Event::CallStarted {
                call: call.clone(),
                name: name.clone(),
            });
        }
        self.events.emit(Event::Call {
            call: call.clone(),
            name,
            arguments: input.clone(),
        });
    }

    fn whole(&mut self, kind: BlockKind, text: &str) {
        let reported = self
            .live
            .iter()
            .find_map(|(index, live)| matches!(live, Live::Block(_, k) if *k == kind).then_some(*index));
        let block = match reported.and_then(|index| self.live.remove(&index)) {
            Some(Live::Block(block, _)) => block,
            // Nothing was shown for an empty block, so there is nothing to confirm.
            _ if text.is_empty() => return,
            _ => self.events.block(),
        };
        let text = text.to_owned();
        self.events.emit(Event::Block { block, kind, text });
    }

    /// The id of this call of the answer, and whether it was reported before: under its own id, else as the next one.
    fn call_for(&mut self, wanted: &str) -> (CallId, bool) {
        let mut calls = self.live.iter().filter_map(|(index, live)| match live {
            Live::Call(call, _) => Some((*index, call)),
            Live::Block(..) => None,
        });
        let next = calls.clone().next();
        let reported = calls
            .find(|(_, call)| call.as_str() == wanted)
            .or(next)
            .map(|(index, _)| index);
        match reported.and_then(|index| self.live.remove(&index)) {
            Some(Live::Call(call, _)) => (call, true),
            _ => (self.ids.take(wanted), false),
        }
    }

    fn started(&mut self, index: u32, block: BlockStart) {
        let live = match block {
            BlockStart::Text => Live::Block(self.events.block(), BlockKind::Text),
            BlockStart::Thinking { redacted: None } => Live::Block(self.events.block(), BlockKind::Thinking),
            BlockStart::Call { id, name } => {
                let call = self.ids.take(&id);
                let name = self.catalogue.name_of(&name).to_owned();
                self.events.emit(Event::CallStarted {
                    call: call.clone(),
                    name,
                });
                Live::Call(call, 0)
            }
            _ => return,
        };
        self.live.insert(index, live);
    }

    fn delta(&mut self, index: u32, delta: BlockDelta) {
        match (self.live.get_mut(&index), delta) {
            (Some(Live::Block(block, kind)), BlockDelta::Text(text)) if !text.is_empty() => {
                let (block, kind) = (*block, *kind);
                self.events.emit(Event::Delta { block, kind, text });
            }
            (Some(Live::Call(call, bytes)), BlockDelta::Input(piece)) if !piece.is_empty() => {
                *bytes += piece.len() as u64;
                self.events.emit(Event::CallProgress {
                    call: call.clone(),
                    input_bytes: *bytes,
                });
            }
            (Some(Live::Call(call, bytes)), BlockDelta::InputBytes(total)) if total > *bytes => {
                *bytes = total;
                self.events.emit(Event::CallProgress {
                    call: call.clone(),
                    input_bytes: total,
                });
            }
            _ => {}
        }
    }
}

impl DriverOut for LiveAnswer<'_> {
    fn item(&mut self, item: StreamItem) {
        match item {
            StreamItem::Started { index, block } => self.started(index, block),
            StreamItem::Delta { index, delta } => self.delta(index, delta),
            StreamItem::Usage(usage) => self.usage = Some(usage),
            _ => {}
        }
    }

    fn warning(&mut self, code: &'static Code, message: String) {
        let code = code.id;
        self.events.emit(Event::Warning { code, message });
    }
}
