//! What the stories share: a capsule with tools, its log, and a caller that waits to be told.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use capsule_api::{
    CallId, Caller, Cancel, Error, NoAnswer, NobodyThere, Question, RunEvent, RunSink, ToolCall, ToolDispatch,
    ToolReply, ToolStatus,
};
use capsule_tools::{Bindings, Grants, Options, ToolSource, Toolbox};
use capsule_transport_kit::ManualClock;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

/// A folder with components, and what the capsule grants them.
pub(crate) struct Capsule {
    pub(crate) dir: TempDir,
    pub(crate) sources: Vec<ToolSource>,
    pub(crate) grants: Grants,
    pub(crate) clock: ManualClock,
    pub(crate) options: Options,
}

impl Capsule {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::new();
        Self {
            dir: TempDir::new().unwrap(),
            sources: Vec::new(),
            grants: Grants::default(),
            options: Options {
                clock: Arc::new(clock.clone()),
                ..Options::default()
            },
            clock,
        }
    }

    /// A capsule with one tool.
    pub(crate) fn with(name: &str, component: impl AsRef<[u8]>) -> Self {
        Self::new().tool(name, component)
    }

    pub(crate) fn tool(mut self, name: &str, component: impl AsRef<[u8]>) -> Self {
        let path = self.path(&format!("{name}.wasm"));
        std::fs::write(&path, component).unwrap();
        self.sources.push(ToolSource::new(name, path));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A directory in the capsule's folder.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        path.canonicalize().unwrap()
    }

    pub(crate) fn load(&self) -> Result<Toolbox, Vec<Error>> {
        Toolbox::load(&self.sources, &self.grants, &self.options)
    }

    /// The messages of a load that must fail, with the folder's path taken out.
    pub(crate) fn refusals(&self) -> Vec<(&'static str, String)> {
        let errors = self.load().unwrap_err();
        let folder = format!("{}/", self.dir.path().display());
        errors
            .iter()
            .map(|error| (error.code, error.message.replace(&folder, "")))
            .collect()
    }

    /// A turn of this capsule, with nobody to ask.
    pub(crate) fn turn(&self) -> Turn {
        self.turn_with(Arc::new(NobodyThere))
    }

    pub(crate) fn turn_with(&self, caller: Arc<dyn Caller>) -> Turn {
        Turn::of(self.load().unwrap(), caller)
    }
}

/// A turn in which tools are called.
pub(crate) struct Turn {
    pub(crate) toolbox: Toolbox,
    pub(crate) log: Arc<Log>,
    pub(crate) cancel: Cancel,
    pub(crate) tools: Arc<dyn ToolDispatch>,
    next: AtomicU32,
}

impl Turn {
    fn of(toolbox: Toolbox, caller: Arc<dyn Caller>) -> Self {
        let (log, cancel) = (Arc::new(Log::default()), Cancel::new());
        let tools = toolbox.dispatch(Bindings {
            sink: Arc::clone(&log) as Arc<dyn RunSink>,
            caller,
            cancel: cancel.clone(),
        });
        Self {
            toolbox,
            log,
            cancel,
            tools,
            next: AtomicU32::new(1),
        }
    }

    /// Calls a tool. The ids count from `call-1`.
    pub(crate) fn call(
        &self,
        name: &str,
        arguments: Value,
    ) -> impl Future<Output = ToolReply> + Send + 'static + use<> {
        let id = format!("call-{}", self.next.fetch_add(1, Ordering::SeqCst));
        let (tools, call) = (Arc::clone(&self.tools), ToolCall::new(CallId::new(id), name, arguments));
        async move { tools.call(call).await }
    }

    /// Calls a tool without arguments; status and text.
    pub(crate) async fn ask(&self, name: &str) -> (ToolStatus, String) {
        let reply = self.call(name, json!({})).await;
        (reply.status, reply.joined_text())
    }
}

/// Status and text, to compare.
pub(crate) fn said(status: ToolStatus, text: &str) -> (ToolStatus, String) {
    (status, text.to_owned())
}

/// What the dispatch reported.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<RunEvent>>);

impl RunSink for Log {
    fn record(&self, event: RunEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl Log {
    pub(crate) fn events(&self) -> Vec<RunEvent> {
        self.0.lock().unwrap().clone()
    }

    /// Forgets what was reported.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    /// How many calls started, and the status with which each ended.
    pub(crate) fn ends(&self) -> (usize, Vec<ToolStatus>) {
        let events = self.events();
        let started = events
            .iter()
            .filter(|event| matches!(event, RunEvent::Started { .. }))
            .count();
        let ended = events.iter().filter_map(|event| match event {
            RunEvent::Ended { reply, .. } => Some(reply.status),
            _ => None,
        });
        (started, ended.collect())
    }
}

/// A caller that notes each question and answers all of them once it is told to.
pub(crate) struct SlowCaller {
    asked: watch::Sender<Vec<String>>,
    answer: watch::Sender<Option<Result<Value, NoAnswer>>>,
}

impl SlowCaller {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            asked: watch::Sender::new(Vec::new()),
            answer: watch::Sender::new(None),
        })
    }

    /// Waits until so many questions wait.
    pub(crate) async fn asked(&self, count: usize) -> Vec<String> {
        let mut asked = self.asked.subscribe();
        asked.wait_for(|asked| asked.len() >= count).await.unwrap().clone()
    }

    pub(crate) fn answer(&self, answer: Result<Value, NoAnswer>) {
        self.answer.send_replace(Some(answer));
    }
}

#[async_trait]
impl Caller for SlowCaller {
    async fn ask(&self, question: Question) -> Result<Value, NoAnswer> {
        self.asked.send_modify(|asked| asked.push(question.prompt));
        let mut answer = self.answer.subscribe();
        let answer = answer.wait_for(Option::is_some).await.unwrap().clone();
        answer.unwrap()
    }
}

/// A prebuilt component of the product; where `CAPSULE_TEST_REBUILT` names a folder with rebuilt ones, the one there.
pub(crate) fn prebuilt(name: &str) -> PathBuf {
    let committed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/tools/prebuilt");
    std::env::var_os("CAPSULE_TEST_REBUILT")
        .map_or_else(committed, PathBuf::from)
        .join(name)
}
