//! The fold of a task's events: what a reader who applied every one of them ends up with.
//!
//! Two runs are equal when their folds are, whichever transports ran them. Deltas, progress, block numbers and call ids are not part of it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{BlockId, BlockKind, CallId, Event, RunEvent, ToolStatus};

/// A tool call in a fold.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedCall {
    /// The tool's declared name.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
    /// How it ended and what the model was told; `None` while it runs, or where it never ran.
    pub result: Option<(ToolStatus, String)>,
}

/// Blocks and calls of a task, after all that was taken back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fold {
    blocks: BTreeMap<BlockId, (BlockKind, String)>,
    calls: Vec<(CallId, FoldedCall)>,
}

impl Fold {
    /// Applies what the model did.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Delta { block, kind, text } => {
                self.blocks
                    .entry(*block)
                    .or_insert_with(|| (*kind, String::new()))
                    .1
                    .push_str(text);
            }
            Event::Block { block, kind, text } => {
                self.blocks.insert(*block, (*kind, text.clone()));
            }
            Event::Retracted { block } => {
                self.blocks.remove(block);
            }
            Event::Call { call, name, arguments } => self.call(call, name, arguments),
            _ => {}
        }
    }

    /// Applies what ran.
    pub fn run(&mut self, event: &RunEvent) {
        match event {
            // A CLI may start a call before it reports it; both say the same.
            RunEvent::Started { call, name, arguments } => self.call(call, name, arguments),
            RunEvent::Ended { call, reply, .. } => {
                if let Some((_, folded)) = self.calls.iter_mut().find(|(id, _)| id == call) {
                    folded.result = Some((reply.status, reply.joined_text()));
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, id: &CallId, name: &str, arguments: &Value) {
        if self.calls.iter().all(|(known, _)| known != id) {
            let call = FoldedCall {
                name: name.to_owned(),
                arguments: arguments.clone(),
                result: None,
            };
            self.calls.push((id.clone(), call));
        }
    }

    /// The text blocks, in order.
    pub fn texts(&self) -> Vec<&str> {
        self.of(BlockKind::Text)
    }

    /// The reasoning blocks, in order.
    pub fn thinking(&self) -> Vec<&str> {
        self.of(BlockKind::Thinking)
    }

    fn of(&self, kind: BlockKind) -> Vec<&str> {
        self.blocks
            .values()
            .filter(|(k, text)| *k == kind && !text.is_empty())
            .map(|(_, text)| text.as_str())
            .collect()
    }

    /// The calls, in the order in which they were first heard of.
    pub fn calls(&self) -> Vec<&FoldedCall> {
        self.calls.iter().map(|(_, call)| call).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolReply;
    use serde_json::json;
    use std::time::Duration;

    fn delta(block: u32, text: &str) -> Event {
        Event::Delta {
            block: BlockId(block),
            kind: BlockKind::Text,
            text: text.into(),
        }
    }

    #[test]
    fn a_block_replaces_its_deltas_and_a_retraction_removes_them() {
        let mut fold = Fold::default();
        for event in [
            delta(0, "half an ans"),
            Event::Retracted { block: BlockId(0) },
            delta(1, "who"),
            delta(1, "le"),
            Event::Block {
                block: BlockId(1),
                kind: BlockKind::Text,
                text: "whole.".into(),
            },
            delta(2, "streamed"),
        ] {
            fold.event(&event);
        }
        assert_eq!(fold.texts(), ["whole.", "streamed"]);
    }

    #[test]
    fn a_call_is_one_call_whoever_reports_it_first() {
        let id = CallId::new("c1");
        let started = RunEvent::Started {
            call: id.clone(),
            name: "read".into(),
            arguments: json!({"path": "a"}),
        };
        let said = Event::Call {
            call: id.clone(),
            name: "read".into(),
            arguments: json!({"path": "a"}),
        };
        let ended = RunEvent::Ended {
            call: id,
            name: "read".into(),
            reply: ToolReply::text("A"),
            duration: Duration::ZERO,
        };
        let (mut ran_first, mut said_first) = (Fold::default(), Fold::default());
        ran_first.run(&started);
        ran_first.event(&said);
        said_first.event(&said);
        said_first.run(&started);
        for fold in [&mut ran_first, &mut said_first] {
            fold.run(&ended);
        }
        assert_eq!(ran_first, said_first);
        let result = Some((ToolStatus::Passed, "A".to_owned()));
        assert_eq!(
            ran_first.calls(),
            [&FoldedCall {
                name: "read".into(),
                arguments: json!({"path": "a"}),
                result
            }]
        );
    }
}
