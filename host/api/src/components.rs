//! Drivers that are WebAssembly components: the host runs them in its sandbox, on behalf of a driver that knows what they answer.
//!
//! A component exports `murmur:tool/run`; each request is one call of it, in an instance of its own. It reaches one host, that of its endpoint.
//! A key is attached by the host as a header of the requests there.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::Value;

use crate::{ByteSize, Error, HumanDuration, Secret};

/// Loads components. Lent by the host in [`crate::Services::components`].
pub trait Components: Send + Sync {
    /// Reads, checks and compiles a component, or takes it from the host's cache. Blocks: from milliseconds to seconds.
    ///
    /// # Errors
    /// The file cannot be read or is no component that can be called, the endpoint or a limit cannot be granted. The error names the file.
    fn load(&self, spec: ComponentSpec) -> Result<Arc<dyn Component>, Error>;
}

/// A component, and all that it is granted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ComponentSpec {
    /// The file.
    pub file: PathBuf,
    /// Where its requests may go: this scheme, host and port, and nowhere else. `https`, or `http` on loopback.
    pub endpoint: http::Uri,
    /// What the host attaches to them.
    pub credential: Option<Credential>,
    /// Limits of each call.
    pub limits: ComponentLimits,
}

impl ComponentSpec {
    /// A component without a key, under the default limits.
    pub fn new(file: impl Into<PathBuf>, endpoint: http::Uri) -> Self {
        Self {
            file: file.into(),
            endpoint,
            credential: None,
            limits: ComponentLimits::default(),
        }
    }
}

/// A header that the host sets. `Debug` shows no value.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The header's name.
    pub header: http::HeaderName,
    /// Its whole value; marked as sensitive.
    pub value: http::HeaderValue,
    /// What happens where the component sets this header itself: its own value stays, or (`false`) the request is refused.
    pub yields: bool,
}

/// Limits of each call of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComponentLimits {
    /// Wall-clock time of one call, without the time it waits to begin; more than zero.
    pub deadline: Duration,
    /// Linear memory of one call.
    pub memory: ByteSize,
    /// Bytes of what it returns, and of what it streams, each.
    pub output: ByteSize,
    /// Bytes of the body of one HTTP request, and of one response.
    pub http_body: ByteSize,
    /// Calls that may run at once; others wait.
    pub concurrent_calls: u32,
}

impl Default for ComponentLimits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(600),
            memory: ByteSize(256 << 20),
            output: ByteSize(16 << 20),
            http_body: ByteSize(64 << 20),
            concurrent_calls: 16,
        }
    }
}

/// One call of a component.
#[derive(Clone, Debug)]
pub struct ComponentCall {
    /// What `run` is given as `data`, as JSON text.
    pub input: Value,
    /// The environment of this call, and all of it.
    pub env: Vec<(String, Secret)>,
}

/// What a component says while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ComponentSignal {
    /// `emit-chunk`.
    Text(String),
    /// `emit-thinking-chunk`.
    Thinking(String),
    /// `tool-call-started`.
    CallStarted {
        /// The call.
        id: String,
        /// The tool's alias.
        name: String,
    },
    /// `tool-call-input-bytes`.
    CallBytes {
        /// The call.
        id: String,
        /// Bytes of its input so far.
        bytes: u64,
    },
}

/// How a call of a component ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ComponentEnd {
    /// It returned, with status `passed`.
    Passed,
    /// It returned, with status `failed` or `error`.
    Failed,
    /// It trapped, or exited in place of returning; in words.
    Trapped(String),
    /// The time of [`ComponentLimits::deadline`] was over.
    TimedOut(HumanDuration),
    /// Another limit ended it, or what it returned is over one; in words.
    Limit(String),
    /// The host could not run it, or is ending; in words.
    NotRun(String),
}

/// What came of a call of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComponentReply {
    /// How it ended.
    pub end: ComponentEnd,
    /// The `data` that it returned.
    pub data: Option<String>,
    /// The `summary` that it returned.
    pub summary: Option<String>,
    /// Whether it said that there is more than it returned.
    pub truncated: bool,
    /// The `metadata` that it returned.
    pub metadata: Vec<(String, String)>,
    /// The first thing that it was denied, as a sentence.
    pub denied: Option<String>,
    /// The limit that it ran into and returned all the same, in words.
    pub limit: Option<String>,
    /// The end of what it wrote to standard error.
    pub stderr: String,
}

impl ComponentReply {
    /// A reply that says no more than how the call ended.
    pub fn new(end: ComponentEnd) -> Self {
        Self {
            end,
            data: None,
            summary: None,
            truncated: false,
            metadata: Vec::new(),
            denied: None,
            limit: None,
            stderr: String::new(),
        }
    }

    /// The value of a key of the metadata; the first, where it is there twice.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        let mut pairs = self.metadata.iter();
        pairs.find_map(|(known, value)| (known == key).then_some(value.as_str()))
    }
}

/// A component that was loaded.
#[async_trait]
pub trait Component: Send + Sync {
    /// What it may do and what limits it, for people: name and value.
    fn facts(&self) -> Vec<(String, String)>;

    /// Runs one call in a fresh instance. Always answers. `heard` is given what it says, in order, and nothing after this returned. Dropping the
    /// future ends the call: an instance that computes goes at its next yield, and then its place is free.
    async fn run(&self, call: ComponentCall, heard: &mut (dyn FnMut(ComponentSignal) + Send)) -> ComponentReply;
}
