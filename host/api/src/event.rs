//! What a transport may say: the model's side of a turn.

use std::{borrow::Borrow, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ErrorKind;

/// Identifies one tool call within a task, in the model's events and in the dispatch's alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(Arc<str>);

impl CallId {
    /// A call id; unique within the task.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for CallId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A block of the model's output. Handed out by [`Events::block`], unique within the turn, in order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Part of the answer.
    Text,
    /// Reasoning; never part of the answer.
    Thinking,
}

/// Who pays for the model's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Billing {
    /// An API key.
    ApiKey,
    /// A person's subscription.
    Subscription,
    /// A long-lived token of a subscription.
    Token,
    /// Nobody: a recording, a local model, an example.
    Free,
    /// The transport cannot tell.
    Unknown,
}

/// Token counts of a turn, as the provider reports them.
///
/// Its serde form is that of one answer: the tokens alone, by the names that `usage` has in the JSON contract of drivers that are components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a cache.
    #[serde(rename = "input_tokens")]
    pub input: u64,
    /// Output tokens, those of reasoning among them.
    #[serde(rename = "output_tokens")]
    pub output: u64,
    /// Input tokens read from the provider's cache.
    #[serde(rename = "cache_read_tokens")]
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    #[serde(rename = "cache_write_tokens")]
    pub cache_write: u64,
    /// Output tokens spent on reasoning, where told apart.
    #[serde(rename = "reasoning_tokens")]
    pub reasoning: u64,
    /// Model requests that were answered.
    #[serde(skip)]
    pub requests: u32,
    /// What it cost, in millionths of the currency of the price table; `None` where prices are not known. Never guessed.
    #[serde(skip)]
    pub cost_micros: Option<u64>,
}

impl Usage {
    /// Adds the tokens of one answer. Requests and cost stay as they are. Saturates: a peer may count whatever it likes.
    pub fn add_tokens(&mut self, answer: Self) {
        for (sum, more) in [
            (&mut self.input, answer.input),
            (&mut self.output, answer.output),
            (&mut self.cache_read, answer.cache_read),
            (&mut self.cache_write, answer.cache_write),
            (&mut self.reasoning, answer.reasoning),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// Tokens that went in, cached ones among them.
    pub fn all_input(&self) -> u64 {
        let cached = self.cache_read.saturating_add(self.cache_write);
        self.input.saturating_add(cached)
    }
}

/// What the model did, as a transport sees it. Tool executions, task states and provenance are said by the host alone.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// First event of a turn that reaches a model.
    Started {
        /// The model, as the peer names it.
        model: Option<String>,
        /// The peer, such as a program and its version.
        peer: Option<String>,
        /// Who pays.
        billing: Billing,
        /// Whether an earlier conversation goes on.
        resumed: bool,
    },
    /// Model request number `n` of the turn, counted from 1, is sent.
    RequestStarted {
        /// Counted from 1.
        n: u32,
    },
    /// Model request `n` was answered in full.
    RequestEnded {
        /// As in `RequestStarted`.
        n: u32,
        /// The model's stop reason, in the contract's words where it maps, else as the peer names it.
        stop: String,
    },
    /// A provisional piece of a block. A `Block` that differs, or a `Retracted`, may follow.
    Delta {
        /// The block it belongs to.
        block: BlockId,
        /// The block's kind.
        kind: BlockKind,
        /// The new piece.
        text: String,
    },
    /// The whole block. Authoritative: replaces every delta. Sent at most once per block.
    Block {
        /// The block.
        block: BlockId,
        /// Its kind.
        kind: BlockKind,
        /// Its whole text.
        text: String,
    },
    /// The block never was: all that was sent for it is taken back.
    Retracted {
        /// The block.
        block: BlockId,
    },
    /// The model has begun to write a tool call.
    CallStarted {
        /// The call.
        call: CallId,
        /// The tool's declared name.
        name: String,
    },
    /// So many bytes of the call's input are written.
    CallProgress {
        /// The call.
        call: CallId,
        /// Bytes so far, cumulative.
        input_bytes: u64,
    },
    /// The model's call is complete. Its execution is reported by the dispatch.
    Call {
        /// The call.
        call: CallId,
        /// The tool's declared name (not its alias).
        name: String,
        /// The arguments, as the model wrote them.
        arguments: Value,
    },
    /// Begun by the model and never to be run: a cut stream, truncated arguments, a retry.
    CallAbandoned {
        /// The call.
        call: CallId,
    },
    /// Total of this turn so far; replaces the one before.
    Usage(Usage),
    /// A model request failed and will be made again.
    Retrying {
        /// Counted from 1.
        attempt: u32,
        /// How long until the next try.
        after: Duration,
        /// What failed.
        cause: ErrorKind,
    },
    /// Older turns were summarised to fit the context window.
    Compacted {
        /// Estimated tokens before.
        before: u64,
        /// Estimated tokens after.
        after: u64,
    },
    /// A failure that was survived, or something a person should know.
    Warning {
        /// Stable, kebab-case, prefixed by its owner.
        code: &'static str,
        /// For a person to read.
        message: String,
    },
    /// A fact for the trace; never parsed by the host.
    Note {
        /// Stable, kebab-case, prefixed by its owner.
        code: &'static str,
        /// The fact.
        data: Value,
    },
}

/// Where events go. Implemented by the host and by test kits.
#[async_trait]
pub trait EventSink: Send + Sync {
    /// Takes an event. Never blocks, never fails; after the turn it counts and drops.
    fn emit(&self, event: Event);
    /// The next block id of the turn.
    fn next_block(&self) -> BlockId;
    /// Resolves when there is room. Cancel-safe.
    async fn ready(&self);
}

/// A turn's way into the task's log. Cheap to clone; dead after the turn (late events are counted and dropped).
#[derive(Clone)]
pub struct Events(Arc<dyn EventSink>);

impl Events {
    /// Events that end in this sink.
    pub fn new(sink: Arc<dyn EventSink>) -> Self {
        Self(sink)
    }

    /// Reports an event. Never blocks and never fails.
    pub fn emit(&self, event: Event) {
        self.0.emit(event);
    }

    /// Allocates a block.
    pub fn block(&self) -> BlockId {
        self.0.next_block()
    }

    /// Back-pressure: await it before reading more from the peer. Cancel-safe.
    pub async fn ready(&self) {
        self.0.ready().await;
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}
