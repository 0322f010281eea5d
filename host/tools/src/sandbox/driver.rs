//! A driver as a component: each of its requests is a call in a store of its own, with an environment of its own.

use std::sync::Arc;

use async_trait::async_trait;
use capsule_api::{
    ByteSize, CallId, Cancel, Component, ComponentCall, ComponentEnd, ComponentReply, ComponentSignal, HumanDuration,
    NobodyThere, RunEvent, RunSink, ToolContext, ToolDispatch,
};
use tokio::sync::mpsc;

use super::{
    Equipment, Sandbox,
    call::Job,
    host::{Speech, Status, ToolResult},
    program::Program,
    record::CallRecord,
    reply::{Ended, NotStarted, bounded, stopped},
};
use crate::{Limits, grants::Checked};

/// A driver's component, bound.
pub(crate) struct DriverComponent {
    job: Job,
    facts: Vec<(String, String)>,
    /// What it may call: nothing.
    tools: Arc<dyn ToolDispatch>,
}

impl DriverComponent {
    pub(crate) fn new(
        program: Program,
        equipment: Equipment,
        sandbox: Arc<Sandbox>,
        facts: Vec<(String, String)>,
        tools: Arc<dyn ToolDispatch>,
    ) -> Self {
        let name = "driver".to_owned();
        let job = Job {
            name,
            program,
            equipment,
            sandbox,
        };
        Self { job, facts, tools }
    }

    /// The component with the environment of one call.
    fn job(&self, call: &ComponentCall) -> Job {
        let grants = Checked {
            env: call.env.clone(),
            ..(*self.job.equipment.grants).clone()
        };
        let mut job = self.job.clone();
        job.equipment.grants = Arc::new(grants);
        job
    }

    fn context(&self) -> ToolContext {
        ToolContext {
            call: CallId::new("request"),
            sink: Arc::new(Nobody),
            caller: Arc::new(NobodyThere),
            cancel: Cancel::new(),
            progress: None,
            tools: Arc::clone(&self.tools),
            depth: 0,
        }
    }
}

#[async_trait]
impl Component for DriverComponent {
    fn facts(&self) -> Vec<(String, String)> {
        self.facts.clone()
    }

    async fn run(&self, call: ComponentCall, heard: &mut (dyn FnMut(ComponentSignal) + Send)) -> ComponentReply {
        let limits = self.job.equipment.grants.limits;
        let record = Arc::new(CallRecord::new(Arc::clone(&self.job.sandbox.clock)));
        // The guest runs on threads of its own. What waits here is bounded: each signal counts against the limit of output.
        let (said, mut saying) = mpsc::unbounded_channel();
        let speech: Speech = Arc::new(move |signal| {
            // Nobody listens any more once the call was dropped.
            let _ = said.send(signal);
        });
        let work = self.job(&call).run(call.input, self.context(), Some(speech), &record);
        tokio::pin!(work);
        let ended = loop {
            tokio::select! {
                biased;
                Some(signal) = saying.recv() => heard(signal),
                ended = &mut work => break ended,
            }
        };
        while let Ok(signal) = saying.try_recv() {
            heard(signal);
        }
        reply(ended, &record, &limits)
    }
}

/// A driver's run is no call of a tool: there is no log of its own.
struct Nobody;

impl RunSink for Nobody {
    fn record(&self, _: RunEvent) {}
}

fn reply(ended: Ended, record: &CallRecord, limits: &Limits) -> ComponentReply {
    let mut reply = match ended {
        Ended::Returned(result) => returned(result, limits),
        Ended::Stopped(cause) => ComponentReply::new(match cause.downcast_ref::<NotStarted>() {
            Some(NotStarted(why)) => ComponentEnd::NotRun(why.clone()),
            None if record.limit().is_some() => ComponentEnd::Limit(stopped(&cause, record).1),
            None => ComponentEnd::Trapped(stopped(&cause, record).1),
        }),
        Ended::TimedOut => ComponentReply::new(ComponentEnd::TimedOut(HumanDuration(limits.deadline))),
        Ended::Cancelled(_) => ComponentReply::new(ComponentEnd::NotRun("the host is ending".to_owned())),
    };
    if matches!(reply.end, ComponentEnd::Passed | ComponentEnd::Failed) {
        reply.limit = record.limit().map(|limit| limit.to_string());
    }
    reply.denied = record.denied().map(str::to_owned);
    reply.stderr = record.stderr_tail();
    reply
}

fn returned(result: ToolResult, limits: &Limits) -> ComponentReply {
    let size = result.data.as_ref().map_or(0, String::len) + result.summary.as_ref().map_or(0, String::len);
    if size as u64 > limits.output {
        let limit = ByteSize(limits.output);
        let what = format!("returned {size} bytes, and may return {limit} (`limits.output`)");
        return ComponentReply::new(ComponentEnd::Limit(what));
    }
    let mut reply = ComponentReply::new(match result.status {
        Status::Passed => ComponentEnd::Passed,
        _ => ComponentEnd::Failed,
    });
    reply.data = result.data;
    reply.summary = result.summary;
    reply.truncated = result.truncated;
    reply.metadata = bounded(result.metadata, limits.output);
    reply
}
