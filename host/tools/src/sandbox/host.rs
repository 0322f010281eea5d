//! The capsule's own interfaces, as a running component sees them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use capsule_api::{BlockKind, ComponentSignal, NoAnswer, Progress, Question, RunEvent, ToolContext, ToolStatus};
use serde_json::Value;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::{http::Policy, limits::Limiter, record::CallRecord, registry::Asks, reply::cut};
use crate::codes;

mod bindings {
    wasmtime::component::bindgen!({
        path: "wit",
        inline: "
            package capsule:host;
            world tool {
                include murmur:worlds/imports@0.1.0;
                export murmur:tool/run@0.1.0;
            }
        ",
        world: "capsule:host/tool",
        imports: {
            "murmur:task/task.request-input": async | trappable,
            "murmur:tool-registry/invoke.invoke": async,
        },
        exports: { default: async },
    });
}

use bindings::murmur::{stream, task, text, tool, tool_registry};
pub(super) use bindings::{
    Tool as ToolWorld, ToolPre as ToolWorldPre,
    exports::murmur::tool::run::{Status, ToolInput, ToolResult},
};

/// Takes what a guest says for the model. Must not block.
pub(super) type Speech = Arc<dyn Fn(ComponentSignal) + Send + Sync>;

/// What a piece counts against the limit of output beside its text: about what it takes until it is heard, even where it is empty.
const SIGNAL: usize = 32;

/// Why a call ended inside `request-input`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unanswered(pub(super) NoAnswer);

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            NoAnswer::TimedOut => "it asked a question and no answer came in time",
            NoAnswer::Cancelled => "it was cancelled while it waited for an answer",
            NoAnswer::NobodyThere => "it asked a question and there is nobody to answer",
        })
    }
}

impl std::error::Error for Unanswered {}

/// All that belongs to one call of a guest.
pub(crate) struct Guest {
    pub(super) wasi: WasiCtx,
    pub(super) table: ResourceTable,
    pub(super) http: WasiHttpCtx,
    pub(super) policy: Policy,
    pub(super) limiter: Limiter,
    pub(super) record: Arc<CallRecord>,
    pub(super) context: ToolContext,
    /// Where it speaks for the model, if it is a driver.
    pub(super) speech: Option<Speech>,
    pub(super) asks: Asks,
    pub(super) config: Arc<BTreeMap<String, String>>,
    /// The most text that a call may stream, or ask at once, in bytes.
    pub(super) output_limit: u64,
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.policy,
            table: &mut self.table,
            ctx: &mut self.http,
        }
    }
}

impl Guest {
    /// Passes text on. Never fails: what is over the limit is dropped, with one warning.
    fn stream(&self, kind: BlockKind, text: String) {
        if self.speech.is_some() {
            return self.speak(match kind {
                BlockKind::Thinking => ComponentSignal::Thinking(text),
                _ => ComponentSignal::Text(text),
            });
        }
        let (before, after) = self.record.streamed(text.len() + SIGNAL);
        let call = self.context.call.clone();
        let event = if after <= self.output_limit {
            RunEvent::Chunk { call, kind, text }
        } else if before <= self.output_limit {
            let limit = self.output_limit;
            RunEvent::Warning {
                code: codes::STREAM_CUT,
                message: format!("call {call} streams more than {limit} bytes; the rest is dropped"),
            }
        } else {
            return;
        };
        self.record.report(|| self.context.sink.record(event));
    }

    /// Speaks for the model, where it may. What is over the limit is dropped: the answer that is returned holds all of it.
    fn speak(&self, signal: ComponentSignal) {
        let Some(speech) = &self.speech else { return };
        let words = match &signal {
            ComponentSignal::Text(text) | ComponentSignal::Thinking(text) => text.len(),
            ComponentSignal::CallStarted { id, name } => id.len() + name.len(),
            ComponentSignal::CallBytes { id, .. } => id.len(),
            _ => 0,
        };
        let (_, after) = self.record.streamed(words + SIGNAL);
        if after <= self.output_limit {
            self.record.report(|| speech(signal));
        }
    }

    fn progress(&self, progress: Progress) {
        let call = self.context.call.clone();
        self.record.report(|| {
            if let Some(sink) = &self.context.progress {
                sink(progress.clone());
            }
            self.context.sink.record(RunEvent::Progress { call, progress });
        });
    }
}

impl stream::events::Host for Guest {
    fn emit_chunk(&mut self, chunk: String) {
        self.stream(BlockKind::Text, chunk);
    }

    fn emit_thinking_chunk(&mut self, chunk: String) {
        self.stream(BlockKind::Thinking, chunk);
    }

    // These two speak for the model; a tool has nothing to say there.
    fn tool_call_started(&mut self, id: String, name: String) {
        self.speak(ComponentSignal::CallStarted { id, name });
    }

    fn tool_call_input_bytes(&mut self, id: String, bytes: u64) {
        self.speak(ComponentSignal::CallBytes { id, bytes });
    }
}

impl text::chunks::Host for Guest {
    fn emit_chunk(&mut self, chunk: String) {
        self.stream(BlockKind::Text, chunk);
    }

    fn emit_thinking_chunk(&mut self, chunk: String) {
        self.stream(BlockKind::Thinking, chunk);
    }
}

impl task::task::Host for Guest {
    async fn request_input(&mut self, prompt: String) -> wasmtime::Result<String> {
        let (prompt, _) = cut(prompt, self.output_limit);
        let question = Question { prompt, schema: None };
        self.record.set_waiting(true);
        self.progress(Progress::WaitingForCaller);
        let answer = self.context.caller.ask(question).await;
        self.record.set_waiting(false);
        self.progress(Progress::Resumed);
        match answer {
            Ok(Value::String(text)) => Ok(text),
            Ok(other) => Ok(other.to_string()),
            Err(why) => Err(wasmtime::Error::new(Unanswered(why))),
        }
    }
}

impl tool::run::Host for Guest {
    /// Linked because `murmur:tool-registry/invoke` takes its types from the interface; a tool has no tool below it.
    fn run(&mut self, _: tool::run::ToolInput) -> tool::run::ToolResult {
        tool::run::ToolResult {
            status: tool::run::Status::Error,
            summary: Some("not available here: a tool cannot run the tool interface".into()),
            data: None,
            data_path: None,
            truncated: false,
            metadata: Vec::new(),
        }
    }
}

impl tool_registry::invoke::Host for Guest {
    async fn invoke(&mut self, name: String, input: tool::run::ToolInput) -> Result<tool::run::ToolResult, String> {
        let reply = self.asks.call(name, input.data, self.output_limit).await?;
        let status = match reply.status {
            ToolStatus::Passed => tool::run::Status::Passed,
            ToolStatus::Failed | ToolStatus::Denied => tool::run::Status::Failed,
            _ => tool::run::Status::Error,
        };
        let data = Some(reply.joined_text());
        let truncated = reply.full_bytes.is_some();
        let mut metadata = reply.metadata;
        if reply.status == ToolStatus::Denied {
            metadata.push(("denied".into(), "true".into()));
        }
        Ok(tool::run::ToolResult {
            status,
            summary: None,
            data,
            data_path: None,
            truncated,
            metadata,
        })
    }
}
