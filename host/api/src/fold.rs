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
#[derive(Clone, Debug, Default)]
pub struct Fold {
    blocks: BTreeMap<BlockId, (BlockKind, String)>,
    /// First those that the model's side has told, then those that so far only ran.
    calls: Vec<(CallId, FoldedCall)>,
    told: usize,
}

impl PartialEq for Fold {
    fn eq(&self, other: &Self) -> bool {
        self.written().eq(other.written()) && self.calls() == other.calls()
    }
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
            Event::Call { call, name, arguments } => {
                let at = self.call(call, name, arguments);
                if at >= self.told {
                    self.calls[self.told..=at].rotate_right(1);
                    self.told += 1;
                }
            }
            _ => {}
        }
    }

    /// Applies what ran.
    pub fn run(&mut self, event: &RunEvent) {
        match event {
            // A CLI may start a call before it reports it; both say the same.
            RunEvent::Started { call, name, arguments } => {
                self.call(call, name, arguments);
            }
            RunEvent::Ended { call, reply, .. } => {
                if let Some((_, folded)) = self.calls.iter_mut().find(|(id, _)| id == call) {
                    folded.result = Some((reply.status, reply.joined_text()));
                }
            }
            _ => {}
        }
    }

    /// Where the call is; at the end, if it is new.
    fn call(&mut self, id: &CallId, name: &str, arguments: &Value) -> usize {
        let known = self.calls.iter().position(|(known, _)| known == id);
        known.unwrap_or_else(|| {
            let call = FoldedCall {
                name: name.to_owned(),
                arguments: arguments.clone(),
                result: None,
            };
            self.calls.push((id.clone(), call));
            self.calls.len() - 1
        })
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
        let wanted = self.written().filter(|(other, _)| *other == kind);
        wanted.map(|(_, text)| text.as_str()).collect()
    }

    /// The blocks that say something, in order.
    fn written(&self) -> impl Iterator<Item = &(BlockKind, String)> {
        self.blocks.values().filter(|(_, text)| !text.is_empty())
    }

    /// The calls, in the order in which the model made them, however their executions overlap.
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
    fn block_numbers_call_ids_and_empty_blocks_make_no_difference() {
        let call = |id: &str| Event::Call {
            call: CallId::new(id),
            name: "read".into(),
            arguments: json!({}),
        };
        let (mut one, mut other) = (Fold::default(), Fold::default());
        for event in [delta(0, "a"), call("c1"), delta(1, "b")] {
            one.event(&event);
        }
        for event in [delta(3, "a"), delta(4, ""), call("toolu_1"), delta(7, "b")] {
            other.event(&event);
        }
        assert_eq!(one, other);
        other.event(&call("toolu_2"));
        assert_ne!(one, other);
    }

    #[test]
    fn calls_are_in_the_models_order_also_where_they_run_before_they_are_told() {
        let started = |id: &str| RunEvent::Started {
            call: CallId::new(id),
            name: id.into(),
            arguments: json!({}),
        };
        let said = |id: &str| Event::Call {
            call: CallId::new(id),
            name: id.into(),
            arguments: json!({}),
        };
        let mut fold = Fold::default();
        fold.run(&started("c"));
        fold.run(&started("b"));
        for id in ["a", "b", "c"] {
            fold.event(&said(id));
        }
        fold.run(&started("a"));
        let names: Vec<_> = fold.calls().iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
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
