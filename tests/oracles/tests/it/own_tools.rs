//! Tools that are slow or say much, within limits as the host sets them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use capsule_api::{
    Annotations, Catalogue, RunEvent, RunSink as _, ToolCall, ToolDispatch, ToolReply, ToolSpec, ToolStatus,
    async_trait,
};
use capsule_transport_kit::Recorder;
use serde_json::json;

/// `work` takes as many milliseconds as it is told, `flood` answers as many bytes. A call over `longest` is ended, as the host does it.
pub(crate) struct OwnTools {
    catalogue: Arc<Catalogue>,
    log: Arc<Recorder>,
    longest: Duration,
}

/// Whole lines of some `bytes` bytes.
pub(crate) fn flood(bytes: u64) -> String {
    let line = "0123456789 123456789 123456789 123456789 123456789 123456789 12\n";
    let lines = usize::try_from(bytes).unwrap() / line.len();
    line.repeat(lines).trim_end().to_owned()
}

impl OwnTools {
    pub(crate) fn offered(longest: Duration, largest: u64) -> Arc<Catalogue> {
        let tool = |name: &str| ToolSpec {
            name: name.to_owned(),
            alias: name.to_owned(),
            description: "A tool of the test.".to_owned(),
            input_schema: json!({"type": "object", "properties": {"much": {"type": "integer"}}, "required": ["much"]}),
            annotations: Annotations {
                read_only: true,
                exclusive: false,
            },
            longest,
            largest,
        };
        Arc::new(Catalogue {
            tools: vec![tool("work"), tool("flood")],
        })
    }

    pub(crate) fn new(catalogue: Arc<Catalogue>, log: Arc<Recorder>) -> Self {
        let longest = catalogue.tools[0].longest;
        Self {
            catalogue,
            log,
            longest,
        }
    }

    async fn run(&self, call: &ToolCall) -> ToolReply {
        let much = call.arguments["much"].as_u64().unwrap_or_default();
        if call.name == "flood" {
            return ToolReply::text(flood(much));
        }
        let work = tokio::time::sleep(Duration::from_millis(much));
        match tokio::time::timeout(self.longest, work).await {
            Ok(()) => ToolReply::text("worked"),
            Err(_) => ToolReply::new(ToolStatus::TimedOut, "tool 'work' failed: its time is over"),
        }
    }
}

/// Tells the end of a call, also where its future is dropped.
struct Running<'a> {
    tools: &'a OwnTools,
    call: ToolCall,
    since: Instant,
    reply: Option<ToolReply>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let cancelled = || ToolReply::new(ToolStatus::Cancelled, "the call was cancelled");
        self.tools.log.record(RunEvent::Ended {
            call: self.call.id.clone(),
            name: self.call.name.clone(),
            reply: self.reply.take().unwrap_or_else(cancelled),
            duration: self.since.elapsed(),
        });
    }
}

#[async_trait]
impl ToolDispatch for OwnTools {
    fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    async fn call(&self, call: ToolCall) -> ToolReply {
        self.log.record(RunEvent::Started {
            call: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        let mut running = Running {
            tools: self,
            call,
            since: Instant::now(),
            reply: None,
        };
        let reply = self.run(&running.call).await;
        running.reply = Some(reply.clone());
        reply
    }

    fn missed(&self, call: capsule_api::CallId, why: &str) {
        let why = why.to_owned();
        self.log.record(RunEvent::Missed { call, why });
    }
}
