//! Transports and their conversations.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::Value;

use crate::{
    Caller, Cancel, Catalogue, Code, Descriptor, Error, Events, Outcome, Scratch, Services, Settings, ToolDispatch,
};

/// What a transport can do. The conformance kit holds every instance to what it declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Text arrives as deltas while the model writes.
    pub streams: bool,
    /// Reasoning is reported.
    pub thinking: bool,
    /// Token usage is reported.
    pub usage: bool,
    /// A conversation can go on in another process, from its resume state.
    pub resumes: bool,
    /// Several tool calls of one request may run at once.
    pub parallel_tools: bool,
    /// A cancelled turn leaves the conversation usable without reopening it.
    pub interrupts: bool,
    /// The host makes the model requests, so that `max_turns` is exact and runs can be recorded.
    pub host_owns_loop: bool,
}

/// What a turn starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The parts, in order; at least one.
    pub parts: Vec<Part>,
}

/// A part of the input.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Text. It is data: a transport never lets its peer expand or execute it.
    Text(String),
    /// JSON.
    Data(Value),
    /// A file.
    File {
        /// Its name, if it has one.
        name: Option<String>,
        /// Its media type.
        media_type: String,
        /// Its bytes.
        bytes: Arc<[u8]>,
    },
}

impl Input {
    /// An input of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![Part::Text(text.into())],
        }
    }

    /// The input as one text for peers that take nothing else: JSON is written out; `None` where a file is among the parts.
    pub fn as_text(&self) -> Option<String> {
        let texts = self.parts.iter().map(|part| match part {
            Part::Text(text) => Some(text.clone()),
            Part::Data(value) => Some(value.to_string()),
            Part::File { .. } => None,
        });
        Some(texts.collect::<Option<Vec<_>>>()?.join("\n\n"))
    }
}

/// What a transport needs to go on with a conversation in another process.
///
/// Opaque to the host, versioned by the transport, stored by the host beside the context. Holds no secret.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeState {
    /// The transport's name.
    pub transport: String,
    /// The version of `data`; a transport refuses a version it does not know.
    pub version: u32,
    /// The transport's own.
    pub data: Value,
}

/// Limits of a turn that every transport keeps. Limits of its own are a transport's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Model requests in one turn (`max_turns`); at least 1.
    pub requests: u32,
    /// Output tokens of one model request (`max_tokens`); at least 1.
    pub output_tokens: u32,
    /// The model's context window (`context`), for transports that own the loop; `None` where the capsule does not say.
    pub context: Option<ContextWindow>,
    /// The longest wait for an answer of the caller (`lifecycle.input_timeout`): on top of a tool's own limit wherever a peer times calls.
    pub answer: Duration,
}

/// How much of a conversation fits a model, and when older turns are summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextWindow {
    /// Tokens that the model takes, input and output together; at least 1.
    pub max_tokens: u64,
    /// The share of the window at which older turns are summarised, in thousandths: 1 to 1000.
    pub threshold_permille: u16,
}

impl ContextWindow {
    /// Estimated tokens above which older turns are summarised.
    pub fn compact_above(self) -> u64 {
        let tokens = u128::from(self.max_tokens) * u128::from(self.threshold_permille) / 1000;
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: 50,
            output_tokens: 8192,
            context: None,
            answer: Duration::from_secs(600),
        }
    }
}

/// What a conversation is opened with.
#[derive(Clone)]
pub struct ConversationSpec {
    /// Names the conversation; stable over processes.
    pub context: String,
    /// The model to ask for; `None` leaves it to the transport.
    pub model: Option<String>,
    /// The system prompt, possibly empty.
    pub system_prompt: String,
    /// The tools, fixed for the conversation's life.
    pub catalogue: Arc<Catalogue>,
    /// Limits of each turn.
    pub limits: Limits,
    /// Where to go on from.
    pub resume: Option<ResumeState>,
    /// A directory (0700) for this run alone; the host removes it at the end.
    pub run_dir: PathBuf,
    /// A directory (0700) that outlives the run. `None`: nothing of the conversation may be kept.
    pub state_dir: Option<PathBuf>,
}

/// What a turn may use. Owned and `'static`, so that a server task may hold it; all of it goes dead when the turn ends.
#[derive(Clone)]
pub struct TurnIo {
    /// Where the model's doings are reported.
    pub events: Events,
    /// The capsule's tools.
    pub tools: Arc<dyn ToolDispatch>,
    /// Whoever sent the task.
    pub caller: Arc<dyn Caller>,
    /// Ends the turn.
    pub cancel: Cancel,
}

/// Whether a transport could run here.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The error says what is missing and what to do.
    pub usable: Result<(), Error>,
    /// Named facts for people: a version, a path, a login.
    pub facts: Vec<(String, String)>,
}

impl Probe {
    /// Usable, nothing to tell.
    pub fn usable() -> Self {
        Self {
            usable: Ok(()),
            facts: Vec::new(),
        }
    }
}

/// A way to turn a task into model requests. Built once per process from its settings.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// What *this* instance can do: its settings have chosen driver, dialect and version. At most what the descriptor says.
    fn capabilities(&self) -> Capabilities;

    /// Whether it could run here. Makes no model request; talks to the network only when `online`.
    async fn probe(&self, online: bool) -> Probe;

    /// Opens a conversation. May start a program or a server, must not make a model request.
    ///
    /// Not cancel-safe: if it is dropped, whatever it started must end with it.
    async fn open(&self, spec: ConversationSpec) -> Result<Box<dyn Conversation>, Error>;
}

/// One conversation with a model. Turns follow each other; there are never two at a time.
#[async_trait]
pub trait Conversation: Send + 'static {
    /// One input to one end.
    ///
    /// After `io.cancel` fires it returns `Ok(Outcome::Cancelled)` within the descriptor's `stops_within`. If it does not, the
    /// host drops the future; nothing of the turn may then be left running, and [`Conversation::health`] says so.
    async fn turn(&mut self, input: Input, io: TurnIo) -> Result<Outcome, Error>;

    /// Asked after every turn, also after one that was dropped.
    fn health(&self) -> Health {
        Health::Ready
    }

    /// Asked after every turn where the context is kept; `None` where there is nothing to go on from.
    fn resume_state(&self) -> Option<ResumeState> {
        None
    }

    /// Ends everything within `grace`, waits for it, and reports what is left. Dropping without it must also leave nothing running.
    async fn close(self: Box<Self>, grace: Duration) -> Residue {
        let _ = grace;
        Residue::default()
    }
}

/// Whether a conversation can take another turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It can.
    Ready,
    /// Open another one with [`Conversation::resume_state`].
    Reopen,
    /// It cannot, and there is nothing to resume.
    Lost,
}

/// What a conversation left behind in spite of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Residue {
    /// Processes still alive: id and name.
    pub processes: Vec<(u32, String)>,
    /// Files and directories outside the run directory that should not be there.
    pub files: Vec<PathBuf>,
    /// Tool calls that did not end.
    pub calls: Vec<crate::CallId>,
    /// What lay in the run directory and went with it. Not left behind: [`Residue::is_empty`] does not ask for it.
    pub scratch: Scratch,
}

impl Residue {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.files.is_empty() && self.calls.is_empty()
    }
}

/// A transport as the registry knows it. Register with [`crate::register!`].
pub struct TransportDescriptor {
    /// What `inference.transport` and `--transport` call it: `[a-z0-9-]`, unique.
    pub name: &'static str,
    /// The crate that registers it; filled by the macro.
    pub crate_name: &'static str,
    /// `api`, `cli`, `example`, or a family of its own. `transport: process` selects among the family `cli`.
    pub family: &'static str,
    /// One line for `capsule transports`.
    pub summary: &'static str,
    /// The most that any instance may declare.
    pub at_most: Capabilities,
    /// How long `turn` may go on after a cancel.
    pub stops_within: Duration,
    /// JSON Schema of the transport's own settings. Given the settings, the schema for exactly these (a driver's keys, say); without,
    /// the most general one. Secrets are marked `"writeOnly": true`. A property without which nothing runs is `required`.
    pub settings_schema: fn(Option<&Value>) -> Value,
    /// A working `inference:` block, as YAML.
    pub example: &'static str,
    /// Whether a program, named by its path and what it prints for `--version`, speaks this transport's dialect.
    pub recognises: Option<fn(&std::path::Path, Option<&str>) -> bool>,
    /// Every code it may raise.
    pub codes: &'static [&'static Code],
    /// Builds an instance. Does no I/O.
    pub build: fn(Settings, Services) -> Result<Box<dyn Transport>, Error>,
}

impl fmt::Debug for TransportDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportDescriptor")
            .field("name", &self.name)
            .field("crate", &self.crate_name)
            .finish_non_exhaustive()
    }
}

impl Descriptor for TransportDescriptor {
    const KIND: &'static str = "transport";

    fn name(&self) -> &'static str {
        self.name
    }

    fn crate_name(&self) -> &'static str {
        self.crate_name
    }
}

inventory::collect!(TransportDescriptor);
