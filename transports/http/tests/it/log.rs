//! The task's log and the capsule's tools, in memory.

use std::sync::{Arc, Mutex};

use capsule_api::{
    Annotations, BlockId, CallId, Catalogue, Event, EventSink, Fold, RunEvent, ToolCall, ToolDispatch, ToolReply,
    ToolSpec, ToolStatus, async_trait,
    serde_json::{Value, json},
};
use std::time::Duration;
use tokio::sync::watch;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    Model(Event),
    Ran(RunEvent),
}

/// Everything that was said in a turn, in order.
pub(crate) struct Log {
    entries: watch::Sender<Vec<Entry>>,
    blocks: Mutex<u32>,
}

impl Log {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            entries: watch::Sender::new(Vec::new()),
            blocks: Mutex::new(0),
        })
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        let model = |entry: &Entry| match entry {
            Entry::Model(event) => Some(event.clone()),
            Entry::Ran(_) => None,
        };
        self.entries.borrow().iter().filter_map(model).collect()
    }

    /// The last usage total that was reported.
    pub(crate) fn usage(&self) -> capsule_api::Usage {
        let usages = self.events().into_iter().filter_map(|event| match event {
            Event::Usage(usage) => Some(usage),
            _ => None,
        });
        usages.last().unwrap()
    }

    pub(crate) fn fold(&self) -> Fold {
        let mut fold = Fold::default();
        for entry in self.entries.borrow().iter() {
            match entry {
                Entry::Model(event) => fold.event(event),
                Entry::Ran(event) => fold.run(event),
            }
        }
        fold
    }

    pub(crate) async fn wait_for(&self, found: impl Fn(&Entry) -> bool) {
        self.wait_for_some(|entry| found(entry).then_some(())).await;
    }

    /// Waits for an entry of which `found` makes something.
    pub(crate) async fn wait_for_some<T>(&self, found: impl Fn(&Entry) -> Option<T>) -> T {
        let mut entries = self.entries.subscribe();
        let some = entries.wait_for(|entries| entries.iter().any(|entry| found(entry).is_some()));
        let entries = some.await.unwrap();
        entries.iter().find_map(found).unwrap()
    }

    pub(crate) fn record(&self, entry: Entry) {
        self.entries.send_modify(|entries| entries.push(entry));
    }
}

#[async_trait]
impl EventSink for Log {
    fn emit(&self, event: Event) {
        self.record(Entry::Model(event));
    }

    fn next_block(&self) -> BlockId {
        let mut blocks = self.blocks.lock().unwrap();
        *blocks += 1;
        BlockId(*blocks - 1)
    }

    async fn ready(&self) {}
}

/// `greet` greets, `fail` fails, `hang` never ends, `meet` ends once two calls of it run.
pub(crate) struct Tools {
    catalogue: Arc<Catalogue>,
    log: Arc<Log>,
    met: watch::Sender<usize>,
}

pub(crate) fn catalogue() -> Arc<Catalogue> {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        alias: format!("demo__{name}"),
        description: format!("The tool {name}."),
        input_schema: json!({"type": "object", "properties": {"name": {"type": "string"}}}),
        annotations: Annotations::default(),
        longest: Duration::from_secs(60),
        largest: 1 << 20,
    };
    Arc::new(Catalogue {
        tools: ["greet", "fail", "hang", "meet"].map(tool).into(),
    })
}

impl Tools {
    pub(crate) fn new(log: Arc<Log>) -> Arc<Self> {
        Arc::new(Self {
            catalogue: catalogue(),
            log,
            met: watch::Sender::new(0),
        })
    }

    async fn execute(&self, name: &str, arguments: &Value) -> ToolReply {
        match name {
            "greet" => ToolReply::text(format!("Hello, {}!", arguments["name"].as_str().unwrap_or("whoever"))),
            "fail" => ToolReply::new(ToolStatus::Failed, "it did not work"),
            "meet" => {
                let mut met = self.met.subscribe();
                self.met.send_modify(|met| *met += 1);
                met.wait_for(|met| *met >= 2).await.unwrap();
                ToolReply::text("met")
            }
            "hang" => std::future::pending().await,
            other => ToolReply::new(ToolStatus::Unknown, format!("there is no tool {other}")),
        }
    }
}

/// Records the end of a call whatever becomes of it.
struct Running<'a>(&'a Log, CallId, String, Option<ToolReply>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let cancelled = || ToolReply::new(ToolStatus::Cancelled, "cancelled");
        self.0.record(Entry::Ran(RunEvent::Ended {
            call: self.1.clone(),
            name: self.2.clone(),
            reply: self.3.take().unwrap_or_else(cancelled),
            duration: Duration::ZERO,
        }));
    }
}

#[async_trait]
impl ToolDispatch for Tools {
    fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    async fn call(&self, call: ToolCall) -> ToolReply {
        self.log.record(Entry::Ran(RunEvent::Started {
            call: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        }));
        let mut running = Running(&self.log, call.id, call.name.clone(), None);
        let reply = self.execute(&call.name, &call.arguments).await;
        running.3 = Some(reply.clone());
        reply
    }

    fn missed(&self, _: CallId, _: &str) {}
}
