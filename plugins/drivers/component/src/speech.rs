//! What the component says while it runs, as items of the answer. All of it is provisional: what it returns counts.

use std::collections::HashMap;

use capsule_api::{BlockDelta, BlockStart, ComponentSignal, DriverOut, StreamItem};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

/// Numbers the blocks of one answer.
#[derive(Debug, Default)]
pub(crate) struct Speech {
    next: u32,
    /// The block of text or reasoning that goes on.
    open: Option<(u32, Kind)>,
    /// The calls that have begun, and the bytes of each.
    calls: HashMap<String, (u32, u64)>,
}

impl Speech {
    /// Takes the next signal. One that makes no sense (a call without an id, begun twice or never, a size that does not grow) is dropped.
    pub(crate) fn hear(&mut self, signal: ComponentSignal, out: &mut dyn DriverOut) {
        match signal {
            ComponentSignal::Text(text) => self.text(Kind::Text, text, out),
            ComponentSignal::Thinking(text) => self.text(Kind::Thinking, text, out),
            ComponentSignal::CallStarted { id, name } => {
                if id.is_empty() || self.calls.contains_key(&id) {
                    return;
                }
                self.close(out);
                let index = self.index();
                self.calls.insert(id.clone(), (index, 0));
                out.item(StreamItem::Started {
                    index,
                    block: BlockStart::Call { id, name },
                });
            }
            ComponentSignal::CallBytes { id, bytes } => {
                if let Some((index, known)) = self.calls.get_mut(&id)
                    && bytes > *known
                {
                    *known = bytes;
                    out.item(StreamItem::Delta {
                        index: *index,
                        delta: BlockDelta::InputBytes(bytes),
                    });
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, kind: Kind, text: String, out: &mut dyn DriverOut) {
        if text.is_empty() {
            return;
        }
        let index = match self.open {
            Some((index, open)) if open == kind => index,
            _ => {
                self.close(out);
                let index = self.index();
                self.open = Some((index, kind));
                let block = match kind {
                    Kind::Text => BlockStart::Text,
                    Kind::Thinking => BlockStart::Thinking { redacted: None },
                };
                out.item(StreamItem::Started { index, block });
                index
            }
        };
        let delta = BlockDelta::Text(text);
        out.item(StreamItem::Delta { index, delta });
    }

    fn close(&mut self, out: &mut dyn DriverOut) {
        if let Some((index, _)) = self.open.take() {
            out.item(StreamItem::Ended { index });
        }
    }

    fn index(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}
