//! Every call that started ends exactly once, whatever becomes of it.

use std::{sync::Arc, time::Instant};

use capsule_api::{CallId, Clock, RunEvent, RunSink, ToolReply, ToolStatus};
use serde_json::Value;

/// A call between its two events. Dropping it records a cancelled call.
pub(super) struct Recorded {
    call: CallId,
    name: String,
    sink: Arc<dyn RunSink>,
    clock: Arc<dyn Clock>,
    since: Instant,
    ended: bool,
}

impl Recorded {
    pub(super) fn start(
        call: CallId,
        name: String,
        arguments: Value,
        sink: Arc<dyn RunSink>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let started = RunEvent::Started {
            call: call.clone(),
            name: name.clone(),
            arguments,
        };
        sink.record(started);
        let since = clock.now();
        Self {
            call,
            name,
            sink,
            clock,
            since,
            ended: false,
        }
    }

    pub(super) fn end(mut self, reply: &ToolReply) {
        self.record_end(reply.clone());
    }

    fn record_end(&mut self, reply: ToolReply) {
        self.ended = true;
        self.sink.record(RunEvent::Ended {
            call: self.call.clone(),
            name: self.name.clone(),
            reply,
            duration: self.clock.now().saturating_duration_since(self.since),
        });
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !self.ended {
            let text = format!(
                "tool '{}' was cancelled: nobody waits for its result any more",
                self.name
            );
            self.record_end(ToolReply::new(ToolStatus::Cancelled, text));
        }
    }
}
