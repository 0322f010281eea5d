//! The items of one answer, put together into a [`Response`]. Pure.

use std::collections::BTreeMap;

use capsule_api::{
    BlockDelta, BlockStart, ContentBlock, Error, Response, Retry, StopReason, StreamItem, Usage,
    serde_json::{self, Map, Value},
};

use crate::codes;

/// The largest answer in bytes, over all of its blocks.
pub(crate) const MAX_ANSWER: usize = 64 << 20;
/// What a block counts beside its text: about what it takes in memory, here, in events and in the history.
pub(crate) const BLOCK: usize = 1 << 10;
/// The most tool calls of one answer.
pub(crate) const MAX_CALLS: usize = 256;

/// Collects items. Blocks are kept apart by their index and put in its order.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    blocks: BTreeMap<u32, Open>,
    usage: Usage,
    stop: Option<StopReason>,
    continuation: Option<String>,
    bytes: usize,
    calls: usize,
}

#[derive(Debug)]
enum Open {
    Text(String),
    Thinking {
        text: String,
        signature: Option<String>,
        redacted: Option<String>,
    },
    Call {
        id: String,
        name: String,
        pieces: String,
        whole: Option<Value>,
    },
}

impl Assembler {
    /// Takes the next item.
    ///
    /// # Errors
    /// The items contradict each other, or the answer is larger than [`MAX_ANSWER`] or has more than [`MAX_CALLS`] calls.
    pub(crate) fn item(&mut self, item: &StreamItem) -> Result<(), Error> {
        match item {
            StreamItem::Started { index, block } => self.started(*index, block),
            StreamItem::Delta { index, delta } => self.delta(*index, delta),
            StreamItem::Usage(usage) => {
                self.usage = *usage;
                Ok(())
            }
            StreamItem::Continuation(id) => {
                self.continuation = Some(id.clone()).filter(|id| !id.is_empty());
                Ok(())
            }
            StreamItem::Stopped(stop) => {
                self.stop = Some(*stop);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether the model has stopped: the answer is complete and nothing more need be read.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// How large the answer is by now. What does not add to it is no progress.
    pub(crate) fn size(&self) -> usize {
        self.bytes
    }

    /// The answer.
    ///
    /// Calls of an answer that the output limit cut are left out: even one that looks whole may have been meant to go on.
    ///
    /// # Errors
    /// The model did not stop, or a call's arguments are not a whole JSON object.
    pub(crate) fn finish(self) -> Result<Response, Error> {
        let stop_reason = self.stop.ok_or_else(cut)?;
        let content = self.blocks.into_values().filter_map(|block| match block {
            Open::Text(text) => Some(Ok(ContentBlock::Text { text })),
            Open::Thinking {
                text,
                signature,
                redacted,
            } => Some(Ok(ContentBlock::Thinking {
                text,
                signature,
                redacted,
            })),
            Open::Call { .. } if stop_reason == StopReason::MaxTokens => None,
            Open::Call {
                id,
                name,
                pieces,
                whole,
            } => Some(arguments(&name, &pieces, whole).map(|input| ContentBlock::ToolCall { id, name, input })),
        });
        Ok(Response {
            stop_reason,
            content: content.collect::<Result<_, _>>()?,
            continuation_id: self.continuation,
            usage: self.usage,
        })
    }

    fn started(&mut self, index: u32, block: &BlockStart) -> Result<(), Error> {
        self.grow(BLOCK)?;
        match block {
            BlockStart::Thinking { redacted: Some(text) } => self.grow(text.len())?,
            BlockStart::Call { id, name } => {
                self.calls += 1;
                few_calls(self.calls)?;
                self.grow(id.len() + name.len())?;
            }
            _ => {}
        }
        let open = match block {
            BlockStart::Text => Open::Text(String::new()),
            BlockStart::Thinking { redacted } => Open::Thinking {
                text: String::new(),
                signature: None,
                redacted: redacted.clone(),
            },
            BlockStart::Call { id, name } => Open::Call {
                id: id.clone(),
                name: name.clone(),
                pieces: String::new(),
                whole: None,
            },
            other => {
                return Err(bad_items(
                    index,
                    &format!("began as {other:?}, which is not known here"),
                ));
            }
        };
        match self.blocks.insert(index, open) {
            None => Ok(()),
            Some(_) => Err(bad_items(index, "began twice")),
        }
    }

    fn delta(&mut self, index: u32, delta: &BlockDelta) -> Result<(), Error> {
        self.grow(match delta {
            BlockDelta::Text(piece) | BlockDelta::Signature(piece) | BlockDelta::Input(piece) => piece.len(),
            BlockDelta::WholeInput(value) => value.to_string().len(),
            _ => 0,
        })?;
        let Some(block) = self.blocks.get_mut(&index) else {
            return Err(bad_items(index, "goes on without having begun"));
        };
        match (block, delta) {
            (Open::Text(text) | Open::Thinking { text, .. }, BlockDelta::Text(piece)) => text.push_str(piece),
            (Open::Thinking { signature, .. }, BlockDelta::Signature(piece)) => {
                signature.get_or_insert_default().push_str(piece);
            }
            (Open::Call { pieces, .. }, BlockDelta::Input(piece)) => pieces.push_str(piece),
            (Open::Call { whole, .. }, BlockDelta::WholeInput(value)) => *whole = Some(value.clone()),
            (Open::Call { .. }, BlockDelta::InputBytes(_)) => {}
            (_, delta) => return Err(bad_items(index, &format!("is not of the kind of {delta:?}"))),
        }
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes += bytes;
        if self.bytes > MAX_ANSWER {
            let message = format!("the answer is larger than {} MiB", MAX_ANSWER >> 20);
            return Err(Error::new(&codes::ANSWER_TOO_LONG, message));
        }
        Ok(())
    }
}

/// # Errors
/// There are more than [`MAX_CALLS`].
pub(crate) fn few_calls(calls: usize) -> Result<(), Error> {
    if calls > MAX_CALLS {
        let message = format!("the answer has more than {MAX_CALLS} tool calls; none of them was run");
        return Err(Error::new(&codes::TOO_MANY_CALLS, message));
    }
    Ok(())
}

/// The stream ended too early. Another try may get the whole of it.
pub(crate) fn cut() -> Error {
    Error::new(&codes::STREAM_CUT, "the stream ended before the answer was complete").retry(Retry::Later)
}

fn bad_items(index: u32, what: &str) -> Error {
    Error::new(&codes::BAD_ITEMS, format!("block {index} of the answer {what}"))
}

/// The arguments of a call: what the pieces say, or the whole value that came in their place. Nothing at all is no arguments.
fn arguments(name: &str, pieces: &str, whole: Option<Value>) -> Result<Value, Error> {
    let value = match whole {
        Some(Value::String(text)) => parse(&text),
        Some(value) => Some(value),
        None => parse(pieces),
    };
    object(name, value)
}

/// Arguments as the object that they must be.
///
/// # Errors
/// They are something else, or could not be read (`None`).
pub(crate) fn object(name: &str, value: Option<Value>) -> Result<Value, Error> {
    match value {
        Some(Value::Null) => Ok(Value::Object(Map::new())),
        Some(value @ Value::Object(_)) => Ok(value),
        _ => {
            let message =
                format!("the arguments of the call of `{name}` are not a complete JSON object; it was not run");
            Err(Error::new(&codes::CALL_INCOMPLETE, message))
        }
    }
}

fn parse(text: &str) -> Option<Value> {
    if text.trim().is_empty() {
        return Some(Value::Null);
    }
    serde_json::from_str(text).ok()
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
