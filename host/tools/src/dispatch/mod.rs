//! The dispatch chain: validate, gate, execute, record. The same for every transport.

mod nested;
mod record;
mod validate;

pub(crate) use nested::{REFUSED, Stack};

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use async_trait::async_trait;
use capsule_api::{
    CallId, Caller, Cancel, Catalogue, Clock, RunEvent, RunSink, Tool, ToolCall, ToolContext, ToolDispatch, ToolReply,
    ToolStatus, nearest,
};
use futures_util::FutureExt;
use jsonschema::Validator;
use serde_json::Value;
use tokio::sync::RwLock;

use crate::codes;
use record::Recorded;

/// Bytes that are repeated of a name that no tool has.
const LONGEST_NAME: usize = 256;

/// What binds a dispatch to one turn.
#[derive(Clone)]
pub struct Bindings {
    /// The task's log.
    pub sink: Arc<dyn RunSink>,
    /// Who can be asked.
    pub caller: Arc<dyn Caller>,
    /// Fires when the turn's calls are no longer wanted.
    pub cancel: Cancel,
}

/// A tool with its compiled schema.
pub(crate) struct Entry {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) validator: Validator,
}

/// The tools, in the order of the catalogue, and what orders their calls.
pub(crate) struct Tools {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) entries: Vec<Entry>,
    /// Held for reading by every call, for writing by an exclusive one. Fair, and a waiter that is dropped leaves the queue.
    pub(crate) gate: RwLock<()>,
    pub(crate) clock: Arc<dyn Clock>,
    /// How many calls may be in one another.
    pub(crate) deepest: u32,
}

/// The tools as one turn sees them.
pub(crate) struct Dispatch {
    pub(crate) tools: Arc<Tools>,
    pub(crate) bindings: Bindings,
    /// The calls that this dispatch is for; none for a transport's.
    pub(crate) stack: Stack,
}

#[async_trait]
impl ToolDispatch for Dispatch {
    fn catalogue(&self) -> &Arc<Catalogue> {
        &self.tools.catalogue
    }

    async fn call(&self, call: ToolCall) -> ToolReply {
        let ToolCall {
            id,
            name,
            arguments,
            progress,
            ..
        } = call;
        let arguments = validate::or_none(arguments);
        let (sink, clock) = (Arc::clone(&self.bindings.sink), Arc::clone(&self.tools.clock));
        let recorded = Recorded::start(id.clone(), name.clone(), arguments.clone(), sink, clock);
        let context = ToolContext {
            call: id,
            sink: Arc::clone(&self.bindings.sink),
            caller: Arc::clone(&self.bindings.caller),
            cancel: self.bindings.cancel.clone(),
            progress,
            tools: self.inside(&name),
            depth: self.stack.depth(),
        };
        let reply = self.reply(&name, arguments, context).await;
        recorded.end(&reply);
        reply
    }

    fn missed(&self, call: CallId, why: &str) {
        let why = why.to_owned();
        self.bindings.sink.record(RunEvent::Missed { call, why });
    }
}

impl Dispatch {
    /// The same tools as a call of this one sees them.
    fn inside(&self, name: &str) -> Arc<dyn ToolDispatch> {
        let exclusive = self
            .entry(name)
            .is_some_and(|entry| entry.tool.spec().annotations.exclusive);
        Arc::new(Self {
            tools: Arc::clone(&self.tools),
            bindings: self.bindings.clone(),
            stack: self.stack.inside(name, exclusive),
        })
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.tools.entries.iter().find(|entry| entry.tool.spec().name == name)
    }

    async fn reply(&self, name: &str, arguments: Value, context: ToolContext) -> ToolReply {
        let Some(entry) = self.entry(name) else {
            return ToolReply::new(ToolStatus::Unknown, self.unknown(name));
        };
        if let Some(why) = validate::violations(&entry.validator, &arguments) {
            return ToolReply::new(ToolStatus::Invalid, format!("tool '{name}' was not run: {why}"));
        }
        let exclusive = entry.tool.spec().annotations.exclusive;
        if let Some(refusal) = self.stack.refusal(name, exclusive, self.tools.deepest) {
            return refusal;
        }
        let cancel = context.cancel.clone();
        // The tool's own end first: it can say more about a cancel.
        tokio::select! {
            biased;
            reply = self.execute(entry, arguments, context) => reply,
            _ = cancel.cancelled() => ToolReply::new(ToolStatus::Cancelled, format!("tool '{name}' was cancelled")),
        }
    }

    async fn execute(&self, entry: &Entry, arguments: Value, context: ToolContext) -> ToolReply {
        let exclusive = entry.tool.spec().annotations.exclusive;
        let (_alone, _beside) = match exclusive {
            // The outermost call holds the order for all inside it: a second hold could wait for the first.
            _ if self.stack.is_nested() => (None, None),
            true => (Some(self.tools.gate.write().await), None),
            false => (None, Some(self.tools.gate.read().await)),
        };
        let (call, sink) = (context.call.clone(), Arc::clone(&context.sink));
        // A panic of a tool ends its own call. It owns all that it could leave in pieces, except what it locked itself.
        let execution = AssertUnwindSafe(entry.tool.execute(arguments, context)).catch_unwind();
        execution.await.unwrap_or_else(|panic| {
            let name = &entry.tool.spec().name;
            let said = panic_text(&*panic);
            let code = codes::PANICKED;
            let message = format!("the host's code for tool '{name}' panicked in call {call}: {said}");
            sink.record(RunEvent::Warning { code, message });
            ToolReply::new(
                ToolStatus::Failed,
                format!("tool '{name}' failed: a fault of the host ({said})"),
            )
        })
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self
            .tools
            .catalogue
            .tools
            .iter()
            .map(|tool| tool.alias.as_str())
            .collect();
        let there = match names.is_empty() {
            true => "there are no tools".to_owned(),
            false => format!("there are: {}", names.join(", ")),
        };
        let near = nearest(name, names);
        let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
        match near {
            Some(near) => format!("no tool is called '{name}'; {there}. Did you mean '{near}'?"),
            None => format!("no tool is called '{name}'; {there}"),
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests;
