//! A model's answer, free of any wire format.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ApiError, Close, Fault, Position};

/// One answer of the model.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// The content blocks, in order.
    pub blocks: Vec<Block>,
    /// The stop reason as the Messages API spells it, put into the words of other formats; one that it does not know is sent as it is.
    /// Without one: `tool_use` when there is a call, else
    /// `end_turn`.
    pub stop: Option<String>,
    /// Details beside the stop reason, sent as they are.
    pub stop_details: Option<Value>,
    /// Token counts.
    pub usage: Usage,
    /// How the bytes are cut into writes.
    pub chunking: Chunking,
    /// The content type of the answer in place of the right one.
    pub content_type: Option<String>,
    /// What this answer does unlike the provider's documentation. A quirk that the wire format has no place for does nothing.
    pub quirks: Vec<Quirk>,
}

/// An oddity that compatible endpoints have been seen with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quirk {
    /// Pieces of calls have no index.
    NoIndex,
    /// Pieces of calls have the index 0, all of them.
    IndexZero,
    /// A call's id comes after its arguments.
    LateId,
    /// The whole calls again, after their pieces.
    WholeArguments,
    /// The answer ends without a reason; where the format has `[DONE]`, with that.
    NoReason,
    /// No `[DONE]`.
    NoDone,
    /// No counts.
    NoUsage,
    /// The counts come with the reason, not after it.
    UsageWithReason,
    /// Each chunk has counts so far.
    UsageInEveryChunk,
}

/// One content block.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Text, one delta per piece.
    Text(Pieces),
    /// Thinking, one delta per piece, then its signature.
    Thinking {
        /// The thoughts.
        text: Pieces,
        /// The signature that the client has to send back unchanged.
        signature: String,
    },
    /// Thinking that only the provider can read; the client has to send it back unchanged.
    RedactedThinking(String),
    /// A tool call.
    Call(Call),
    /// A block of any kind, known or not: `start` is the block itself, then one delta each.
    Other {
        /// The block as it starts.
        start: Value,
        /// Its deltas.
        #[serde(default)]
        deltas: Vec<Value>,
    },
    /// Events sent in this place as they are, without an index of their own.
    Events(Vec<RawEvent>),
}

/// A tool call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The call's id. Without one it is made from the request's number and the block's index.
    #[serde(default)]
    pub id: Option<String>,
    /// The bare tool name. The provider sends the offered name that equals it or ends with
    /// `__<name>`; when none is offered the request gets an error and a violation is recorded.
    pub name: String,
    /// Sends `name` as it is, offered or not.
    #[serde(default)]
    pub raw_name: bool,
    /// The arguments.
    #[serde(default = "empty_object")]
    pub input: Value,
    /// The argument text in place of `input`, one delta per piece; need not be valid JSON.
    #[serde(default)]
    pub pieces: Option<Vec<String>>,
}

/// One server-sent event, sent as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawEvent {
    /// The event's name; without one there is no `event:` line.
    #[serde(default)]
    pub event: Option<String>,
    /// The text of the `data:` line.
    pub data: String,
}

/// Text in pieces, one delta each. A single string is sent as two halves, so that every client
/// has something to join.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pieces {
    /// A text cut in the middle.
    Halves(String),
    /// These pieces.
    Exactly(Vec<String>),
}

/// Token counts of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Tokens read, beyond the cached ones.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens written to the prompt cache.
    pub cache_creation_input_tokens: u64,
    /// Tokens read from the prompt cache.
    pub cache_read_input_tokens: u64,
    /// Tokens written in reasoning, a part of the tokens written; formats that do not tell them apart leave them out.
    pub reasoning_tokens: u64,
}

/// How the bytes of an answer are cut into writes (HTTP chunks).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunking {
    /// One write per event.
    #[default]
    PerEvent,
    /// Writes of this many bytes, across events and characters; 0 counts as 1.
    Bytes(usize),
    /// Everything in one write.
    Whole,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input_tokens: 11,
            output_tokens: 7,
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: 0,
            reasoning_tokens: 0,
        }
    }
}

impl Reply {
    /// An answer without content.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer that begins with text.
    #[must_use]
    pub fn text(text: impl Into<Pieces>) -> Self {
        Self::new().block(Block::Text(text.into()))
    }

    /// Adds text.
    #[must_use]
    pub fn and_text(self, text: impl Into<Pieces>) -> Self {
        self.block(Block::Text(text.into()))
    }

    /// Adds thinking with its signature.
    #[must_use]
    pub fn thinking(self, text: impl Into<Pieces>, signature: &str) -> Self {
        self.block(Block::Thinking {
            text: text.into(),
            signature: signature.to_owned(),
        })
    }

    /// Adds thinking that only the provider can read.
    #[must_use]
    pub fn redacted_thinking(self, data: &str) -> Self {
        self.block(Block::RedactedThinking(data.to_owned()))
    }

    /// Adds a call of the offered tool with this bare name.
    #[must_use]
    pub fn call(self, id: &str, name: &str, input: Value) -> Self {
        self.block(Block::Call(Call::new(id, name, input)))
    }

    /// Adds a call of a tool that may not be on offer, named as it is.
    #[must_use]
    pub fn call_raw_name(self, id: &str, name: &str, input: Value) -> Self {
        self.block(Block::Call(Call {
            raw_name: true,
            ..Call::new(id, name, input)
        }))
    }

    /// Adds a call whose argument text is these pieces, valid JSON or not.
    #[must_use]
    pub fn call_pieces(self, id: &str, name: &str, pieces: &[&str]) -> Self {
        let pieces = pieces.iter().map(|&piece| piece.to_owned()).collect();
        self.block(Block::Call(Call {
            pieces: Some(pieces),
            ..Call::new(id, name, empty_object())
        }))
    }

    /// Adds one event with this name and data, outside any block.
    #[must_use]
    pub fn event(self, event: &str, data: &Value) -> Self {
        self.block(Block::Events(vec![RawEvent {
            event: Some(event.to_owned()),
            data: data.to_string(),
        }]))
    }

    /// Adds a block.
    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Sets the stop reason.
    #[must_use]
    pub fn stop(mut self, reason: &str) -> Self {
        self.stop = Some(reason.to_owned());
        self
    }

    /// Sets the token counts.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets how the bytes are cut into writes.
    #[must_use]
    pub fn chunking(mut self, chunking: Chunking) -> Self {
        self.chunking = chunking;
        self
    }

    /// Sends another content type.
    #[must_use]
    pub fn content_type(mut self, content_type: &str) -> Self {
        self.content_type = Some(content_type.to_owned());
        self
    }

    /// Does something unlike the documentation.
    #[must_use]
    pub fn quirk(mut self, quirk: Quirk) -> Self {
        self.quirks.push(quirk);
        self
    }

    /// Ends the connection in the middle of this answer.
    #[must_use]
    pub fn cut(self, after: Position, close: Close) -> Fault {
        Fault::Cut {
            reply: self,
            after,
            close,
        }
    }

    /// Says nothing more after this position until the gate opens, then the rest.
    #[must_use]
    pub fn stall(self, after: Position) -> Fault {
        Fault::Stall { reply: self, after }
    }

    /// Says nothing at all, no headers either, until the gate opens; then this answer.
    #[must_use]
    pub fn hang(self) -> Fault {
        Fault::HangBeforeHeaders(self)
    }

    /// Replaces what follows the first `after_events` events by an error event.
    #[must_use]
    pub fn error_event(self, after_events: usize, error: ApiError) -> Fault {
        Fault::ErrorEvent {
            reply: self,
            after_events,
            error,
        }
    }

    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    /// The calls, in order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The stop reason sent: the scripted one, or the one that fits the blocks.
    pub(crate) fn stop_reason(&self) -> &str {
        let calls = || self.calls().next().is_some();
        match &self.stop {
            Some(reason) => reason,
            None if calls() => "tool_use",
            None => "end_turn",
        }
    }
}

impl Call {
    /// A call of the offered tool with this bare name.
    #[must_use]
    pub fn new(id: &str, name: &str, input: Value) -> Self {
        Self {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            raw_name: false,
            input,
            pieces: None,
        }
    }

    /// The argument text, piece by piece.
    pub(crate) fn input_pieces(&self) -> Vec<String> {
        match &self.pieces {
            Some(pieces) => pieces.clone(),
            None => halves(&self.input.to_string()),
        }
    }
}

impl Pieces {
    /// The pieces, in order.
    pub(crate) fn to_vec(&self) -> Vec<String> {
        match self {
            Self::Halves(text) => halves(text),
            Self::Exactly(pieces) => pieces.clone(),
        }
    }

    /// The whole text.
    pub(crate) fn joined(&self) -> String {
        self.to_vec().concat()
    }
}

impl From<&str> for Pieces {
    fn from(text: &str) -> Self {
        Self::Halves(text.to_owned())
    }
}

impl From<String> for Pieces {
    fn from(text: String) -> Self {
        Self::Halves(text)
    }
}

impl From<&[&str]> for Pieces {
    fn from(pieces: &[&str]) -> Self {
        Self::Exactly(pieces.iter().map(|&piece| piece.to_owned()).collect())
    }
}

impl<const N: usize> From<[&str; N]> for Pieces {
    fn from(pieces: [&str; N]) -> Self {
        Self::from(pieces.as_slice())
    }
}

/// The text cut at the character boundary at or before its middle; a part that would be empty
/// is left out.
fn halves(text: &str) -> Vec<String> {
    let (left, right) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [left, right]
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}
