//! Tapes: what a run and a model said to each other, so that the run can be played again without the model. Version 1.
//!
//! The page `docs/tape.md` describes the file. A tape holds no key, no header, no system prompt and no time of day.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ContentBlock, Message, Request, Response};

/// A recorded run.
///
/// Fields that are not known are passed over, so that a tape of a newer program plays as long as its version is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tape {
    /// [`Tape::VERSION`].
    pub version: u64,
    /// The capsule that was recorded, for people.
    #[serde(default)]
    pub capsule: String,
    /// The requests and their answers, in order. Every try of a request that was answered is an entry of its own.
    pub entries: Vec<TapeEntry>,
}

/// One model request and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TapeEntry {
    /// A provider's stream.
    Stream(TapedStream),
    /// The answer of a driver without a wire.
    Response(TapedResponse),
}

/// A request that a provider answered over HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapedStream {
    /// What was asked.
    pub request: RequestShape,
    /// The driver whose wire format decodes the chunks.
    pub wire: String,
    /// The HTTP status.
    pub status: u16,
    /// Milliseconds since the request, and the text that came then.
    pub chunks: Vec<(u64, String)>,
}

/// A request that was answered by other means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapedResponse {
    /// What was asked.
    pub request: RequestShape,
    /// The whole answer.
    pub response: Response,
}

/// What of a request a tape remembers. It holds no system prompt, no parameters and no key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestShape {
    /// The roles of the messages: `user`, `assistant`, `tool`.
    pub roles: Vec<String>,
    /// The names of the tools on offer, sorted.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The text of what is new in the request: the tool results after the model's last message, or else what the user says. One per message.
    #[serde(default)]
    pub last: Vec<String>,
}

/// Takes what a driver and a model say to each other.
pub trait Recorder: Send + Sync {
    /// One request and what came of it, free of secrets. Never waits. Not called for a request that got no answer at all.
    fn record(&self, entry: TapeEntry);
}

/// Why a text is no tape.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotATape {
    /// It has another version.
    Version(u64),
    /// What is wrong, with the place.
    Malformed(String),
}

impl Tape {
    /// The version that is written and read.
    pub const VERSION: u64 = 1;
    /// The largest file, in bytes.
    pub const MAX_BYTES: usize = 64 << 20;

    /// A tape of these entries.
    pub fn new(capsule: impl Into<String>, entries: Vec<TapeEntry>) -> Self {
        Self {
            version: Self::VERSION,
            capsule: capsule.into(),
            entries,
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// It is no JSON, no tape, or has another version; which is told before anything else is judged.
    pub fn parse(text: &[u8]) -> Result<Self, NotATape> {
        let malformed = |error: serde_json::Error| NotATape::Malformed(error.to_string());
        let value: Value = serde_json::from_slice(text).map_err(malformed)?;
        match value["version"].as_u64() {
            Some(Self::VERSION) => {}
            Some(other) => return Err(NotATape::Version(other)),
            None => return Err(NotATape::Malformed("it has no `version`".to_owned())),
        }
        let entries = value["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (n, entry) in entries.iter().enumerate() {
            checked(entry).map_err(|error| NotATape::Malformed(format!("entry {}: {error}", n + 1)))?;
        }
        serde_json::from_value(value).map_err(malformed)
    }

    /// The text of a file: JSON with a line for each chunk, so that two tapes can be compared line by line.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{{\n  \"version\": {},\n  \"capsule\": {},\n  \"entries\": [",
            self.version,
            Value::from(self.capsule.as_str())
        );
        for (n, entry) in self.entries.iter().enumerate() {
            text.push_str(if n == 0 { "\n" } else { ",\n" });
            entry.write(&mut text);
        }
        text.push_str("\n  ]\n}\n");
        text
    }
}

impl TapeEntry {
    /// What was asked.
    pub fn shape(&self) -> &RequestShape {
        match self {
            Self::Stream(entry) => &entry.request,
            Self::Response(entry) => &entry.request,
        }
    }

    /// About how many bytes it takes in a file.
    pub fn weight(&self) -> usize {
        let shape = self.shape();
        let words = shape.roles.iter().chain(&shape.tools).chain(&shape.last);
        let asked: usize = words.map(|word| word.len() + 4).sum();
        let answered = match self {
            Self::Stream(entry) => entry.chunks.iter().map(|(_, text)| text.len() + 24).sum(),
            Self::Response(entry) => entry.response.content.iter().map(block_weight).sum::<usize>(),
        };
        asked + answered + 100
    }

    fn write(&self, out: &mut String) {
        let json = |value: serde_json::Result<Value>| value.unwrap_or_default().to_string();
        let request = json(serde_json::to_value(self.shape()));
        // Writing to a String does not fail.
        let _ = match self {
            Self::Stream(entry) => {
                let chunks = entry.chunks.iter();
                let lines: Vec<_> = chunks
                    .map(|(ms, text)| format!("\n        [{ms}, {}]", Value::from(text.as_str())))
                    .collect();
                let (wire, lines) = (Value::from(entry.wire.as_str()), lines.join(","));
                write!(
                    out,
                    "    {{\n      \"request\": {request},\n      \"wire\": {wire},\n      \"status\": {},\n      \"chunks\": [{lines}\n      ]\n    }}",
                    entry.status
                )
            }
            Self::Response(entry) => {
                let response = json(serde_json::to_value(&entry.response));
                write!(
                    out,
                    "    {{\n      \"request\": {request},\n      \"response\": {response}\n    }}"
                )
            }
        };
    }
}

fn block_weight(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text } => text.len() + 30,
        ContentBlock::Thinking {
            text,
            signature,
            redacted,
        } => {
            text.len()
                + [signature, redacted]
                    .into_iter()
                    .flatten()
                    .map(String::len)
                    .sum::<usize>()
                + 60
        }
        ContentBlock::ToolCall { id, name, input } => id.len() + name.len() + input.to_string().len() + 60,
    }
}

/// Why an entry cannot be read. An untagged enum would say only that no variant fits.
fn checked(entry: &Value) -> Result<(), serde_json::Error> {
    if entry.get("response").is_some() {
        TapedResponse::deserialize(entry).map(drop)
    } else {
        TapedStream::deserialize(entry).map(drop)
    }
}

impl RequestShape {
    /// The shape of a request.
    pub fn of(request: &Request) -> Self {
        let mut tools: Vec<_> = request.tools.iter().map(|tool| tool.name.clone()).collect();
        tools.sort();
        let messages = &request.messages;
        let answered = messages
            .iter()
            .rposition(|message| matches!(message, Message::Assistant { .. }));
        let new = &messages[answered.map_or(0, |at| at + 1)..];
        Self {
            roles: messages.iter().map(|message| role(message).to_owned()).collect(),
            tools,
            last: new.iter().map(text).collect(),
        }
    }

    /// The same with every text put through `change`.
    #[must_use]
    pub fn map_text(mut self, change: impl Fn(&str) -> String) -> Self {
        for text in &mut self.last {
            *text = change(text);
        }
        self
    }
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::User { .. } => "user",
        Message::Assistant { .. } => "assistant",
        Message::Tool { .. } => "tool",
    }
}

fn text(message: &Message) -> String {
    let (Message::User { content } | Message::Assistant { content } | Message::Tool { content, .. }) = message;
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "tape_tests.rs"]
mod tests;
