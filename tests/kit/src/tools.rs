//! The kit's own tools and their dispatch.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use capsule_api::{
    Annotations, CallId, Catalogue, RunEvent, RunSink, ToolCall, ToolDispatch, ToolReply, ToolSpec, ToolStatus,
};
use serde_json::{Value, json};
use tokio::sync::{Barrier, watch};

use crate::Recorder;

/// Where calls of the tool `meet` wait for each other: each of two is answered only while the other runs too.
#[derive(Clone, Debug)]
pub struct Meeting(Arc<Barrier>);

impl Meeting {
    /// A meeting of two calls.
    pub fn new() -> Self {
        Self(Arc::new(Barrier::new(2)))
    }
}

impl Default for Meeting {
    fn default() -> Self {
        Self::new()
    }
}

/// In-memory tools and a dispatch that records every call:
///
/// | alias | what it does |
/// |---|---|
/// | `echo` | answers its argument `text` |
/// | `fail` | fails, saying so |
/// | `denied` | is refused by a grant |
/// | `sleep` | runs until it is cancelled or dropped |
/// | `meet` | is answered once a second call of it runs at the same time |
///
/// The declared name is the alias with `kit-` before it, so a transport that mixes up the two is found out.
#[derive(Debug)]
pub struct TestTools {
    catalogue: Arc<Catalogue>,
    log: Arc<Recorder>,
    meeting: Meeting,
    live: watch::Sender<usize>,
}

impl TestTools {
    /// Tools that report to this log.
    pub fn new(log: Arc<Recorder>) -> Self {
        Self::meeting_at(log, Meeting::new())
    }

    /// Tools whose `meet` waits for calls of other dispatches too.
    pub fn meeting_at(log: Arc<Recorder>, meeting: Meeting) -> Self {
        Self {
            catalogue: Self::offered(),
            log,
            meeting,
            live: watch::Sender::new(0),
        }
    }

    /// The catalogue of these tools.
    pub fn offered() -> Arc<Catalogue> {
        let text = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let nothing = json!({"type": "object", "properties": {}});
        let tools = [
            ("echo", "Answers its text.", text),
            ("fail", "Always fails.", nothing.clone()),
            ("denied", "Needs a grant that is missing.", nothing.clone()),
            ("sleep", "Runs until it is cancelled.", nothing.clone()),
            ("meet", "Waits for another call of it.", nothing),
        ];
        let spec = |(alias, description, input_schema): (&str, &str, Value)| ToolSpec {
            name: format!("kit-{alias}"),
            alias: alias.to_owned(),
            description: description.to_owned(),
            input_schema,
            annotations: Annotations {
                read_only: true,
                exclusive: false,
            },
            longest: Duration::from_secs(60),
            largest: 1 << 20,
        };
        Arc::new(Catalogue {
            tools: tools.map(spec).into(),
        })
    }

    /// Calls that run now.
    pub fn live(&self) -> usize {
        *self.live.borrow()
    }

    /// Waits until exactly `count` calls run. Cancel-safe.
    pub async fn live_calls(&self, count: usize) {
        let mut live = self.live.subscribe();
        live.wait_for(|live| *live == count)
            .await
            .expect("`self` keeps the sender");
    }

    async fn execute(&self, name: &str, arguments: &Value) -> ToolReply {
        match name {
            "kit-echo" => match arguments["text"].as_str() {
                Some(text) => ToolReply::text(text),
                None => ToolReply::new(ToolStatus::Invalid, "`text` must be a string"),
            },
            "kit-fail" => ToolReply::new(ToolStatus::Failed, "kit-fail always fails"),
            "kit-denied" => ToolReply::new(ToolStatus::Denied, "kit-denied lacks a grant"),
            "kit-sleep" => std::future::pending().await,
            "kit-meet" => {
                self.meeting.0.wait().await;
                ToolReply::text("both are here")
            }
            other => ToolReply::new(ToolStatus::Unknown, format!("no tool is called `{other}`")),
        }
    }
}

/// Ends a call exactly once, also where its future is dropped.
struct Running<'a> {
    tools: &'a TestTools,
    call: CallId,
    name: String,
    since: Instant,
    reply: Option<ToolReply>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let cancelled = || ToolReply::new(ToolStatus::Cancelled, "the call was cancelled");
        self.tools.log.record(RunEvent::Ended {
            call: self.call.clone(),
            name: self.name.clone(),
            reply: self.reply.take().unwrap_or_else(cancelled),
            duration: self.since.elapsed(),
        });
        self.tools.live.send_modify(|live| *live -= 1);
    }
}

#[async_trait]
impl ToolDispatch for TestTools {
    fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    async fn call(&self, call: ToolCall) -> ToolReply {
        self.live.send_modify(|live| *live += 1);
        self.log.record(RunEvent::Started {
            call: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        let mut running = Running {
            tools: self,
            call: call.id,
            name: call.name,
            since: Instant::now(),
            reply: None,
        };
        let reply = self.execute(&running.name, &call.arguments).await;
        running.reply = Some(reply.clone());
        reply
    }

    fn missed(&self, call: CallId, why: &str) {
        let why = why.to_owned();
        self.log.record(RunEvent::Missed { call, why });
    }
}
