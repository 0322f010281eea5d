//! Script capsules: a component that calls the tools, in the place that a transport has otherwise. So task, log, trace, cancel and exit code
//! are those of any run.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use capsule_api::{
    Billing, BlockKind, CallId, Capabilities, Conversation, ConversationSpec, Error, Event, Events, Input, Outcome,
    Probe, RunEvent, RunSink, Tool, ToolContext, ToolReply, ToolStatus, Transport, TransportDescriptor, TurnIo,
    async_trait,
};
use serde_json::json;

use crate::failure::codes;

/// Calls of the script's are inside a call of this id, which is in no log.
const CALL: &str = "script";
const CAPABILITIES: Capabilities = Capabilities {
    streams: true,
    thinking: true,
    usage: false,
    resumes: false,
    parallel_tools: false,
    interrupts: true,
    host_owns_loop: false,
};

/// What the trace says in the place of a transport. It is in no registry: a manifest names the component, not this.
pub(crate) static DESCRIPTOR: TransportDescriptor = TransportDescriptor {
    name: "script",
    crate_name: env!("CARGO_PKG_NAME"),
    family: "script",
    summary: "the capsule's own program, without a model",
    at_most: CAPABILITIES,
    stops_within: Duration::from_secs(1),
    settings_schema: |_| json!({"type": "object"}),
    example: "",
    recognises: None,
    codes: &[&codes::SCRIPT],
    build: |_, _| {
        Err(Error::new(
            &codes::SCRIPT,
            "a script is built from a manifest with `script:`",
        ))
    },
};

/// Runs a script.
pub(crate) struct Script(pub(crate) Arc<dyn Tool>);

#[async_trait]
impl Transport for Script {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    async fn probe(&self, _: bool) -> Probe {
        Probe::usable()
    }

    async fn open(&self, _: ConversationSpec) -> Result<Box<dyn Conversation>, Error> {
        Ok(Box::new(Run(self.0.clone())))
    }
}

struct Run(Arc<dyn Tool>);

#[async_trait]
impl Conversation for Run {
    async fn turn(&mut self, _: Input, io: TurnIo) -> Result<Outcome, Error> {
        io.events.emit(Event::Started {
            model: None,
            peer: None,
            billing: Billing::Free,
            resumed: false,
        });
        let shown = Arc::new(Shown::new(io.events.clone()));
        let context = ToolContext {
            call: CallId::new(CALL),
            sink: shown.clone(),
            caller: io.caller.clone(),
            cancel: io.cancel.clone(),
            progress: None,
            tools: io.tools.clone(),
            depth: 0,
        };
        let reply = self.0.execute(json!({}), context).await;
        let text = shown.end();
        match reply.status {
            ToolStatus::Passed => Ok(Outcome::Completed { text }),
            ToolStatus::Cancelled => Ok(Outcome::Cancelled),
            _ => Err(failed(&reply)),
        }
    }
}

fn failed(reply: &ToolReply) -> Error {
    Error::new(&codes::SCRIPT, reply.joined_text())
}

/// What the script shows, as a model would: text is the answer.
struct Shown {
    events: Events,
    blocks: Mutex<Vec<Block>>,
}

struct Block {
    id: capsule_api::BlockId,
    kind: BlockKind,
    text: String,
}

impl Shown {
    fn new(events: Events) -> Self {
        Self {
            events,
            blocks: Mutex::default(),
        }
    }

    fn show(&self, kind: BlockKind, text: String) {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if blocks.last().is_none_or(|block| block.kind != kind) {
            blocks.push(Block {
                id: self.events.block(),
                kind,
                text: String::new(),
            });
        }
        if let Some(block) = blocks.last_mut() {
            block.text.push_str(&text);
            self.events.emit(Event::Delta {
                block: block.id,
                kind,
                text,
            });
        }
    }

    /// Ends the blocks; all of the text is the answer.
    fn end(&self) -> String {
        let blocks = std::mem::take(&mut *self.blocks.lock().unwrap_or_else(PoisonError::into_inner));
        let mut answer = String::new();
        for Block { id, kind, text } in blocks {
            if kind == BlockKind::Text {
                answer.push_str(&text);
            }
            self.events.emit(Event::Block { block: id, kind, text });
        }
        answer
    }
}

impl RunSink for Shown {
    fn record(&self, event: RunEvent) {
        match event {
            RunEvent::Chunk { kind, text, .. } => self.show(kind, text),
            RunEvent::Warning { code, message } => self.events.emit(Event::Warning { code, message }),
            // What the script waits for is the caller's to see, not a call's progress.
            _ => {}
        }
    }
}
