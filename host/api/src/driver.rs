//! Drivers: one provider's wire format behind a neutral request.
//!
//! A provider is usually a [`Wire`] (encode) plus a [`WireFormat`] (decode). The `http` transport owns everything between them: sending,
//! framing, retry. A [`Driver`] answers a request by any other means; a [`Playback`] answers it from a recording, whose chunks are decoded
//! by the wire format that the recording names.
//!
//! The serde forms of [`Request`], [`Message`], [`ContentBlock`] and [`Response`] are also the JSON contract of drivers that are components.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Billing, Code, Descriptor, Error, Services, Settings, Usage};

/// A model request in no provider's words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The model.
    pub model: String,
    /// Output tokens at most.
    pub max_tokens: u32,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The conversation so far; the last message is the user's or a tool's.
    pub messages: Vec<Message>,
    /// The tools the model may call.
    #[serde(default)]
    pub tools: Vec<ToolDefinition>,
    /// Provider-specific parameters, passed on as they are.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Set where the provider holds the conversation: `messages` then has only what it has not seen. An error of the kind
    /// [`crate::ErrorKind::ConversationLost`] says that the provider no longer knows it; the whole conversation is then sent once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_id: Option<String>,
}

/// A tool as a request offers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The alias from the catalogue.
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// From the user.
    User {
        /// Text blocks.
        content: Vec<ContentBlock>,
    },
    /// From the model: text, thinking and calls, unchanged and in order.
    Assistant {
        /// Its blocks.
        content: Vec<ContentBlock>,
    },
    /// The result of a call. One per call, in the order of the calls, right after the assistant's message.
    Tool {
        /// The call it answers.
        tool_call_id: String,
        /// Whether the call did not succeed.
        #[serde(default)]
        is_error: bool,
        /// Text blocks.
        content: Vec<ContentBlock>,
    },
}

/// A block of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning. Echoed to the provider unchanged.
    Thinking {
        /// What can be read of it; empty where redacted.
        #[serde(default)]
        text: String,
        /// The provider's seal on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// The provider's encrypted form, in place of the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redacted: Option<String>,
    },
    /// A tool call.
    ToolCall {
        /// Its id; unique within the conversation.
        id: String,
        /// The tool's alias.
        name: String,
        /// The arguments; an object.
        input: Value,
    },
}

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The turn is over.
    EndTurn,
    /// It waits for tool results.
    ToolCall,
    /// The output limit was reached.
    MaxTokens,
    /// It will not answer.
    Refusal,
    /// The provider paused a long turn; the same conversation is sent again to go on.
    Pause,
    /// The provider reported an error.
    Error,
}

impl StopReason {
    /// The reason as it is written in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolCall => "tool_call",
            Self::MaxTokens => "max_tokens",
            Self::Refusal => "refusal",
            Self::Pause => "pause",
            Self::Error => "error",
        }
    }
}

/// A model's whole answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// Its blocks, in order.
    pub content: Vec<ContentBlock>,
    /// Names the conversation that the provider holds up to and with this answer. The next request then has it as its
    /// [`Request::continuation_id`] and only the messages that came after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_id: Option<String>,
    /// Token counts of this request. `requests` and `cost_micros` are the transport's and not written.
    #[serde(default, skip_serializing_if = "no_tokens")]
    pub usage: Usage,
}

fn no_tokens(usage: &Usage) -> bool {
    let Usage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning,
        ..
    } = *usage;
    [input, output, cache_read, cache_write, reasoning] == [0; 5]
}

/// The start of a content block.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BlockStart {
    /// Text.
    Text,
    /// Reasoning; `redacted` is the whole of a block whose text is withheld.
    Thinking {
        /// The encrypted form.
        redacted: Option<String>,
    },
    /// A tool call. An empty or missing id is given one by the host.
    Call {
        /// The provider's id.
        id: String,
        /// The tool's alias.
        name: String,
    },
}

/// More of a content block.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BlockDelta {
    /// Text, or text of the reasoning.
    Text(String),
    /// The seal of a reasoning block.
    Signature(String),
    /// A piece of a call's arguments, as JSON text.
    Input(String),
    /// A call's whole arguments; replaces the pieces.
    WholeInput(Value),
    /// How many bytes of a call's arguments there are by now, where the pieces are not told.
    InputBytes(u64),
}

/// What a decoder makes of a provider's stream. Blocks are numbered by their position in the answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StreamItem {
    /// A block begins.
    Started {
        /// Position in the answer; unique, not necessarily without gaps.
        index: u32,
        /// What begins.
        block: BlockStart,
    },
    /// A block goes on.
    Delta {
        /// Position in the answer.
        index: u32,
        /// What is added.
        delta: BlockDelta,
    },
    /// A block is whole.
    Ended {
        /// Position in the answer.
        index: u32,
    },
    /// Counts of this request so far; replaces the ones before.
    Usage(Usage),
    /// The provider holds the conversation up to and with this answer, under this id.
    Continuation(String),
    /// The model stopped.
    Stopped(StopReason),
}

/// Takes the items of an answer as they arrive. Provisional until the response is returned.
pub trait DriverOut: Send {
    /// The next item.
    fn item(&mut self, item: StreamItem);

    /// Something was survived on the way to the answer: a warning of the run.
    fn warning(&mut self, code: &'static Code, message: String) {
        let _ = (code, message);
    }
}

/// Answers model requests by its own means.
#[async_trait]
pub trait Driver: Send + Sync {
    /// One request, one answer. Dropping the future ends the request. No retry of its own: an error says whether to try again.
    async fn request(&self, request: &Request, out: &mut dyn DriverOut) -> Result<Response, Error>;

    /// Where it asks, if at an address: tells conversations of different providers apart, and is tried by an online probe.
    fn endpoint(&self) -> Option<http::Uri> {
        None
    }

    /// What people may want to know of it: name and value. Shown by `capsule doctor`.
    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Who pays for it.
    fn billing(&self) -> Billing {
        Billing::Unknown
    }
}

/// Encodes requests for one provider.
pub trait Wire: Send + Sync {
    /// The HTTP request that asks for a streamed answer. Credentials go into headers that are marked sensitive.
    fn encode(&self, request: &Request) -> Result<http::Request<Bytes>, Error>;

    /// Who pays for it.
    fn billing(&self) -> Billing {
        Billing::ApiKey
    }

    /// What to do where nothing listens at its address, such as the command that starts a server of this machine: the hint of that error.
    fn start_hint(&self) -> Option<&'static str> {
        None
    }
}

/// How a stream's bytes fall into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `text/event-stream`.
    EventStream,
    /// One JSON value per line.
    JsonLines,
}

/// One frame of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The event's name; empty where none is given.
    pub event: String,
    /// The data, without framing.
    pub data: String,
}

/// Makes items of frames. Pure: no I/O, no time.
pub trait Decoder: Send {
    /// Takes a frame. An `error` frame of the provider is an `Err` of its class.
    fn frame(&mut self, frame: &Frame, out: &mut Vec<StreamItem>) -> Result<(), Error>;

    /// The provider sent `[DONE]`: whatever came is the answer. By default the same as [`Decoder::finish`].
    fn done(&mut self, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        self.finish(out)
    }

    /// The stream ended cleanly. `Err` if the answer was not complete.
    fn finish(&mut self, out: &mut Vec<StreamItem>) -> Result<(), Error>;
}

/// The decoding half of a wire. It needs no settings, so that a recording can be decoded without a key.
#[derive(Clone, Copy)]
pub struct WireFormat {
    /// How bytes become frames.
    pub framing: Framing,
    /// A decoder for one answer.
    pub decoder: fn() -> Box<dyn Decoder>,
    /// The error behind a status that is not 200, from the head and the first 64 KiB of the body.
    pub refusal: fn(&http::response::Parts, &[u8]) -> Error,
}

/// Finds the recorded answer to a request.
pub trait Playback: Send + Sync {
    /// What of this request is not as it was recorded although the recorded answer still fits, for a warning. Asked before
    /// [`Playback::next`], about the same request.
    fn remark(&self, request: &Request) -> Option<(&'static Code, String)> {
        let _ = request;
        None
    }

    /// The next recorded answer whose request has the shape of this one. `Err` says how the request differs.
    fn next(&self, request: &Request) -> Result<Recorded, Error>;
}

/// A recorded answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Recorded {
    /// A provider's stream.
    Stream {
        /// The driver whose wire format decodes it.
        wire: String,
        /// The HTTP status.
        status: u16,
        /// Time since the request, and the bytes that came then.
        chunks: Vec<(Duration, Bytes)>,
        /// Whether to keep that timing.
        timed: bool,
    },
    /// The whole answer of a driver without a wire.
    Response(Response),
}

/// What a driver's `build` makes.
#[non_exhaustive]
pub enum BuiltDriver {
    /// Sent by the host, decoded by the descriptor's [`WireFormat`].
    Wire(Box<dyn Wire>),
    /// Answers by itself.
    Driver(Box<dyn Driver>),
    /// Answers from a recording.
    Playback(Box<dyn Playback>),
}

/// A driver as the registry knows it. Register with [`crate::register!`].
pub struct DriverDescriptor {
    /// What `inference.driver` calls it: `[a-z0-9-]`, unique.
    pub name: &'static str,
    /// The crate that registers it; filled by the macro.
    pub crate_name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// JSON Schema of its settings; secrets are marked `"writeOnly": true`.
    pub settings_schema: fn() -> Value,
    /// A working `inference:` block, as YAML.
    pub example: &'static str,
    /// The decoding half, where it has a wire.
    pub wire: Option<WireFormat>,
    /// Every code it may raise.
    pub codes: &'static [&'static Code],
    /// Builds an instance. Does no I/O but reading files that its settings name, and loading a component that they name.
    pub build: fn(Settings, &Services) -> Result<BuiltDriver, Error>,
}

impl fmt::Debug for DriverDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverDescriptor")
            .field("name", &self.name)
            .field("crate", &self.crate_name)
            .finish_non_exhaustive()
    }
}

impl Descriptor for DriverDescriptor {
    const KIND: &'static str = "driver";

    fn name(&self) -> &'static str {
        self.name
    }

    fn crate_name(&self) -> &'static str {
        self.crate_name
    }
}

inventory::collect!(DriverDescriptor);
