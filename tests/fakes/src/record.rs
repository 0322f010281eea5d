//! What arrived, and how each exchange ended.

use http::{HeaderMap, Method};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::watch;

use crate::provider::{MAX_RECORDED_BYTES, MAX_REQUESTS};

/// A request as it arrived.
///
/// Its `Debug` form masks the headers that carry a key; [`RecordedRequest::key`] gives the key.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// The method.
    pub method: Method,
    /// Path and query as sent.
    pub path: String,
    /// The headers, keys included.
    pub headers: HeaderMap,
    /// The body; null when there was none or it was not JSON.
    pub body: Value,
    /// How the exchange ended so far.
    pub outcome: Outcome,
    /// Bytes of the body as sent.
    pub(crate) size: usize,
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It has not ended.
    Open,
    /// The whole answer was written.
    Answered,
    /// The provider ended it early, as scripted.
    Cut,
    /// The client (or the provider's shutdown) ended it before the answer was complete.
    Dropped,
    /// The request broke a rule of the API and was answered with an error.
    Refused,
    /// The script was over.
    Overrun,
}

impl RecordedRequest {
    /// A header's value, when it is there and text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The key that arrived: `x-api-key`, else the bearer token.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.header("x-api-key")
            .or_else(|| self.header("authorization")?.strip_prefix("Bearer "))
    }

    /// The names of the tools on offer, in order.
    #[must_use]
    pub fn tools(&self) -> Vec<&str> {
        tool_names(&self.body).collect()
    }

    /// The messages; empty when there are none.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The results of tool calls, in order, whatever the wire format: what names the call (its id; the tool's name where the format has
    /// no ids) and the text.
    #[must_use]
    pub fn results(&self) -> Vec<(String, String)> {
        crate::wire::results(&self.body)
    }

    /// All blocks of this type in all messages, in order, e.g. `tool_result`.
    #[must_use]
    pub fn blocks(&self, kind: &str) -> Vec<&Value> {
        self.messages()
            .iter()
            .filter_map(|message| message["content"].as_array())
            .flatten()
            .filter(|block| block["type"] == kind)
            .collect()
    }
}

/// The names of the tools that a request body offers.
pub(crate) fn tool_names(body: &Value) -> impl Iterator<Item = &str> {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    tools
        .iter()
        .filter_map(|tool| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()))
}

/// Everything recorded so far.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) requests: Vec<RecordedRequest>,
    pub(crate) others: Vec<RecordedRequest>,
    pub(crate) violations: Vec<String>,
    steps_taken: usize,
    bytes: usize,
}

impl Log {
    fn add(&mut self, request: RecordedRequest) {
        self.bytes += request.size;
        self.requests.push(request);
    }
}

/// The log, shared by the connections and the provider's handle.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    log: Arc<watch::Sender<Log>>,
}

/// One open exchange. Dropped unfinished, it is recorded as [`Outcome::Dropped`].
#[derive(Debug)]
pub(crate) struct Exchange {
    recorder: Recorder,
    index: usize,
    /// The request's number among those that take a step, from 0.
    pub(crate) number: usize,
    finished: bool,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            log: Arc::new(watch::Sender::new(Log::default())),
        }
    }

    /// Opens the exchange of a model request that takes the next step.
    pub(crate) fn open(&self, request: RecordedRequest) -> Exchange {
        let (mut index, mut number) = (0, 0);
        self.log.send_modify(|log| {
            index = log.requests.len();
            number = log.steps_taken;
            log.steps_taken += 1;
            log.add(request);
        });
        Exchange {
            recorder: self.clone(),
            index,
            number,
            finished: false,
        }
    }

    /// Records a model request that broke a rule.
    pub(crate) fn refuse(&self, mut request: RecordedRequest, violation: String) {
        request.outcome = Outcome::Refused;
        self.log.send_modify(|log| {
            log.add(request);
            log.violations.push(violation);
        });
    }

    /// Records a request that is not a model request, or not a whole one.
    pub(crate) fn other(&self, mut request: RecordedRequest, outcome: Outcome) {
        request.outcome = outcome;
        self.log.send_modify(|log| {
            log.bytes += request.size;
            log.others.push(request);
        });
    }

    /// Whether no further request may be recorded.
    pub(crate) fn is_full(&self) -> bool {
        self.read(|log| log.requests.len() + log.others.len() >= MAX_REQUESTS || log.bytes >= MAX_RECORDED_BYTES)
    }

    /// Records something that must not happen in a sound test.
    pub(crate) fn violation(&self, violation: String) {
        self.log.send_modify(|log| log.violations.push(violation));
    }

    /// Reads the log.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Log) -> T) -> T {
        read(&self.log.borrow())
    }

    /// Waits until the log satisfies the condition. Cancel-safe.
    pub(crate) async fn wait_for(&self, condition: impl FnMut(&Log) -> bool) {
        let mut log = self.log.subscribe();
        let seen = log.wait_for(condition).await;
        seen.expect("the sender lives in self");
    }
}

impl Exchange {
    /// Records how the exchange ended; the first word counts.
    pub(crate) fn finish(&mut self, outcome: Outcome) {
        if self.finished {
            return;
        }
        self.finished = true;
        let index = self.index;
        self.recorder
            .log
            .send_modify(|log| log.requests[index].outcome = outcome);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.finish(Outcome::Dropped);
    }
}
