//! Tools: what is offered to the model, one call, its reply, and the dispatch that runs it.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::Value;

use crate::{BlockKind, CallId, Caller, Cancel};

/// Hints about a tool's behaviour. They decide scheduling, never permission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The tool changes nothing, so calls of it may overlap.
    pub read_only: bool,
    /// No other call may run beside one of this tool.
    pub exclusive: bool,
}

/// One tool as the catalogue knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The declared name: what events, the trace and people see.
    pub name: String,
    /// The name the model sees; safe for every provider and CLI, the same on every transport.
    pub alias: String,
    /// What the tool does, for the model.
    pub description: String,
    /// JSON Schema of the arguments; always an object with `"type": "object"`.
    pub input_schema: Value,
    /// Scheduling hints.
    pub annotations: Annotations,
    /// The longest a call may take, without the time it waits for the caller.
    pub longest: Duration,
    /// The longest result a call may give, in bytes; a longer one is cut here.
    pub largest: u64,
}

/// The tools of a conversation, in the manifest's order. Fixed for the conversation's life.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    /// The tools; names and aliases are unique.
    pub tools: Vec<ToolSpec>,
}

impl Catalogue {
    /// The tool of this declared name.
    pub fn by_name(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The tool that the model knows by this alias.
    pub fn by_alias(&self, alias: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.alias == alias)
    }

    /// The declared name behind an alias; an unknown alias stands for itself, and its call is answered as an unknown tool.
    pub fn name_of<'a>(&'a self, alias: &'a str) -> &'a str {
        self.by_alias(alias).map_or(alias, |tool| &tool.name)
    }
}

/// Progress of a running call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// A step was made.
    Step {
        /// Work done so far, in units of the tool's choice; increases.
        done: f64,
        /// All of the work, if known.
        total: Option<f64>,
        /// For a person to read.
        message: Option<String>,
    },
    /// The call waits for an answer; deadlines stop.
    WaitingForCaller,
    /// The answer came; deadlines go on.
    Resumed,
}

/// Takes a call's progress. Must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// A tool call as the model asked for it.
#[derive(Clone)]
pub struct ToolCall {
    /// The id under which model and dispatch report this call.
    pub id: CallId,
    /// The declared name of the tool.
    pub name: String,
    /// The arguments, verbatim; an object.
    pub arguments: Value,
    /// W3C trace context that came with the call.
    pub traceparent: Option<String>,
    /// Where progress goes, besides the log.
    pub progress: Option<ProgressSink>,
}

impl ToolCall {
    /// A call without trace context or progress.
    pub fn new(id: CallId, name: impl Into<String>, arguments: Value) -> Self {
        Self {
            id,
            name: name.into(),
            arguments,
            traceparent: None,
            progress: None,
        }
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolStatus {
    /// The tool did what was asked.
    Passed,
    /// The tool says it could not.
    Failed,
    /// The arguments do not fit the tool's schema; it did not run.
    Invalid,
    /// A grant is missing; what it protects was not touched.
    Denied,
    /// There is no such tool.
    Unknown,
    /// The deadline passed.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
    /// The guest trapped or ran into a limit of the sandbox.
    Trapped,
}

impl ToolStatus {
    /// The status as it is written in the trace and in machine output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Invalid => "invalid",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Trapped => "trapped",
        }
    }
}

/// One piece of a result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text, also JSON as text.
    Text(String),
    /// An image.
    Image {
        /// Its media type.
        media_type: String,
        /// Its bytes.
        data: Vec<u8>,
    },
    /// A sound.
    Audio {
        /// Its media type.
        media_type: String,
        /// Its bytes.
        data: Vec<u8>,
    },
    /// An embedded resource, as MCP writes it.
    Resource(Value),
}

/// The result of a call, also of one that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolReply {
    /// How it ended.
    pub status: ToolStatus,
    /// What the model is shown.
    pub content: Vec<Content>,
    /// The result as JSON, where the tool gives one; equal in meaning to `content`.
    pub structured: Option<Value>,
    /// Bytes of the whole result, where `content` was cut.
    pub full_bytes: Option<u64>,
    /// Metadata of the tool, for the trace (`state_effect`, `resource_id`, …).
    pub metadata: Vec<(String, String)>,
}

impl ToolReply {
    /// A reply of one text.
    pub fn new(status: ToolStatus, text: impl Into<String>) -> Self {
        let content = vec![Content::Text(text.into())];
        Self {
            status,
            content,
            structured: None,
            full_bytes: None,
            metadata: Vec::new(),
        }
    }

    /// A passed reply of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(ToolStatus::Passed, text)
    }

    /// Whether the model must be told that the call did not succeed.
    pub fn is_error(&self) -> bool {
        self.status != ToolStatus::Passed
    }

    /// The text pieces, joined by newlines.
    pub fn joined_text(&self) -> String {
        let texts = self.content.iter().filter_map(|piece| match piece {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// What the dispatch alone may say: what ran, and how it ended. Same call ids as the model's events.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// A call arrived.
    Started {
        /// The call.
        call: CallId,
        /// The declared name of the tool.
        name: String,
        /// The arguments it was called with.
        arguments: Value,
    },
    /// A live piece of text that the tool streams; belongs to the call, never to the answer.
    Chunk {
        /// The call.
        call: CallId,
        /// Text or thinking.
        kind: BlockKind,
        /// The piece.
        text: String,
    },
    /// The call made progress.
    Progress {
        /// The call.
        call: CallId,
        /// How much.
        progress: Progress,
    },
    /// The call ended. Recorded exactly once for every `Started`, also where the call was dropped.
    Ended {
        /// The call.
        call: CallId,
        /// The declared name of the tool.
        name: String,
        /// What came of it.
        reply: ToolReply,
        /// How long it took.
        duration: Duration,
    },
    /// A call that a peer reports and that never arrived here.
    Missed {
        /// The call.
        call: CallId,
        /// What is known about it.
        why: String,
    },
    /// A failure inside the dispatch that was survived.
    Warning {
        /// Stable, kebab-case.
        code: &'static str,
        /// For a person to read.
        message: String,
    },
}

/// Where the dispatch reports. Implemented by the task's log.
pub trait RunSink: Send + Sync {
    /// Takes an event. Never blocks, never fails.
    fn record(&self, event: RunEvent);
}

/// The capsule's tools, bound by the host to one turn: task, provenance, log and cancel tree are inside.
///
/// There is no `origin` argument: where a call came from is not the transport's to say.
#[async_trait]
pub trait ToolDispatch: Send + Sync + 'static {
    /// What can be called.
    fn catalogue(&self) -> &Arc<Catalogue>;

    /// Runs a call: validate, gate, execute, record. Never an `Err`: whatever goes wrong is a reply with a status.
    ///
    /// Dropping the future cancels the run and records it as cancelled.
    async fn call(&self, call: ToolCall) -> ToolReply;

    /// Records a call that the peer reports and that was never made here.
    fn missed(&self, call: CallId, why: &str);
}

/// What one execution gets from the dispatch.
#[derive(Clone)]
pub struct ToolContext {
    /// The call.
    pub call: CallId,
    /// Where live text and progress go.
    pub sink: Arc<dyn RunSink>,
    /// Who can be asked.
    pub caller: Arc<dyn Caller>,
    /// Fires when the call is no longer wanted.
    pub cancel: Cancel,
    /// Where progress goes besides the log.
    pub progress: Option<ProgressSink>,
    /// For tools that call tools: the same chain, one level deeper.
    pub tools: Arc<dyn ToolDispatch>,
    /// Calls of tools between this one and the model; 0 where the model made it.
    pub depth: u32,
}

/// Something that can be called: a component, a skill, a built-in, a remote agent.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What the catalogue says about it.
    fn spec(&self) -> &ToolSpec;

    /// Executes a call whose arguments fit the schema. Dropping the future ends the execution.
    async fn execute(&self, arguments: Value, context: ToolContext) -> ToolReply;
}
