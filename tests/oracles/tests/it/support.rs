//! What every story needs: the CLI, a scripted provider, a conversation and the log of its turns.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use capsule_api::{
    Cancel, CancelReason, Catalogue, Conversation, ConversationSpec, Error, Event, Events, Input, Limits, NobodyThere,
    Outcome, Probe, Registry, ResumeState, Settings, SystemClock, Transport, TransportDescriptor, TurnIo,
};
use capsule_fakes::{Provider, Script};
use capsule_transport_claude as _;
use capsule_transport_codex as _;
use capsule_transport_kit::{Recorder, TestTools, services};
use serde_json::{Map, Value};

pub(crate) use capsule_fakes::{claude, codex};

pub(crate) const KEY: &str = "sk-ant-dummy-0123456789";
pub(crate) const MODEL: &str = "claude-sonnet-4-5";
pub(crate) const CODEX_MODEL: &str = "gpt-5.5";
pub(crate) const SYSTEM: &str = "You are the agent of a test.";

/// A scripted provider, directories, and the transport that is led to it.
pub(crate) struct Scene {
    pub(crate) provider: Provider,
    pub(crate) dir: tempfile::TempDir,
    transport: Box<dyn Transport>,
    model: &'static str,
}

impl Scene {
    /// The transport of this name, with the CLI at this path and more settings.
    pub(crate) async fn of(transport: &str, cli: &Path, script: Script, more: Value) -> Self {
        let provider = Provider::start(script).await.unwrap();
        let mut values = Map::new();
        values.insert("command".into(), cli.to_str().unwrap().into());
        values.insert("endpoint".into(), provider.url().into());
        values.insert("api_key".into(), KEY.into());
        values.extend(more.as_object().unwrap().clone());
        let descriptor = Registry::<TransportDescriptor>::linked()
            .unwrap()
            .get(transport)
            .unwrap();
        let settings = Settings::new(values, &(descriptor.settings_schema)(None), ".");
        let transport = (descriptor.build)(settings, services(SystemClock)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        for place in ["run", "state"] {
            std::fs::create_dir(dir.path().join(place)).unwrap();
        }
        Self {
            provider,
            dir,
            transport,
            model: if descriptor.name == "codex" { CODEX_MODEL } else { MODEL },
        }
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    /// A conversation with the kit's tools, whose context is not kept.
    pub(crate) fn spec(&self) -> ConversationSpec {
        ConversationSpec {
            context: "test".into(),
            model: Some(self.model.into()),
            system_prompt: SYSTEM.into(),
            catalogue: TestTools::offered(),
            limits: Limits::default(),
            resume: None,
            run_dir: self.run_dir(),
            state_dir: None,
        }
    }

    /// The same, but kept.
    pub(crate) fn kept(&self, resume: Option<ResumeState>) -> ConversationSpec {
        ConversationSpec {
            resume,
            state_dir: Some(self.dir.path().join("state")),
            ..self.spec()
        }
    }

    pub(crate) async fn probe(&self) -> Probe {
        self.transport.probe(false).await
    }

    pub(crate) async fn open(&self, spec: ConversationSpec) -> Talk {
        Talk(self.transport.open(spec).await.unwrap())
    }

    /// Opens a conversation for one turn and closes it; nothing may be left.
    pub(crate) async fn ask(&self, text: &str) -> Told {
        self.ask_as(self.spec(), text).await
    }

    pub(crate) async fn ask_as(&self, spec: ConversationSpec, text: &str) -> Told {
        let mut talk = self.open(spec).await;
        let told = talk.turn(text).await;
        talk.close().await;
        assert_eq!(
            names_in(&self.run_dir()),
            Vec::<String>::new(),
            "the run directory is empty again"
        );
        told
    }

    /// The last message of the `n`-th model request (from 0), as JSON text.
    pub(crate) fn request(&self, n: usize) -> Value {
        self.provider.requests()[n].body.clone()
    }
}

pub(crate) fn no_tools() -> Arc<Catalogue> {
    Arc::new(Catalogue::default())
}

pub(crate) fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// What a turn came to.
pub(crate) struct Told {
    pub(crate) outcome: Result<Outcome, Error>,
    pub(crate) log: Arc<Recorder>,
}

impl Told {
    pub(crate) fn answer(&self) -> &str {
        match &self.outcome {
            Ok(Outcome::Completed { text }) => text,
            other => panic!("no answer: {other:?}\n{:#?}", self.log.events()),
        }
    }

    /// The codes of the warnings, in order.
    pub(crate) fn warnings(&self) -> Vec<&'static str> {
        let events = self.log.events().into_iter();
        let codes = events.filter_map(|event| match event {
            Event::Warning { code, .. } => Some(code),
            _ => None,
        });
        codes.collect()
    }

    pub(crate) fn error(&self) -> &Error {
        self.outcome.as_ref().expect_err("the turn should have failed")
    }
}

/// A turn under way.
pub(crate) struct Under {
    pub(crate) log: Arc<Recorder>,
    pub(crate) tools: Arc<TestTools>,
    pub(crate) cancel: Cancel,
}

impl Under {
    pub(crate) fn new() -> (Self, TurnIo) {
        let log = Arc::new(Recorder::new());
        let tools = Arc::new(TestTools::new(log.clone()));
        let cancel = Cancel::new();
        let io = TurnIo {
            events: Events::new(log.clone()),
            tools: tools.clone(),
            caller: Arc::new(NobodyThere),
            cancel: cancel.clone(),
        };
        (Self { log, tools, cancel }, io)
    }

    pub(crate) fn cancel(&self) {
        self.cancel.cancel(CancelReason::Caller);
    }
}

pub(crate) struct Talk(pub(crate) Box<dyn Conversation>);

impl Talk {
    pub(crate) async fn turn(&mut self, text: &str) -> Told {
        let (under, io) = Under::new();
        let outcome = self.0.turn(Input::text(text), io).await;
        under.log.close();
        Told {
            outcome,
            log: under.log,
        }
    }

    /// A turn that is cancelled once as many tool calls run.
    pub(crate) async fn cancelled_in_calls(&mut self, text: &str, calls: usize) -> Under {
        let (under, io) = Under::new();
        let stop = async {
            under.tools.live_calls(calls).await;
            under.cancel();
        };
        let (outcome, ()) = tokio::join!(self.0.turn(Input::text(text), io), stop);
        assert_eq!(outcome.unwrap(), Outcome::Cancelled);
        under
    }

    pub(crate) async fn close(self) {
        let residue = self.0.close(Duration::from_secs(5)).await;
        assert!(residue.is_empty(), "{residue:?}");
    }
}

/// Runs this very test again in a process of its own, where no other test opens descriptors, and holds it to its end. `true` in that process.
pub(crate) fn alone(test: &str) -> bool {
    alone_with(test, &[])
}

/// The same with more in its environment.
pub(crate) fn alone_with(test: &str, more: &[(&str, &str)]) -> bool {
    const ALONE: &str = "CAPSULE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let ran = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1")
        .envs(more.iter().copied())
        .stderr(std::process::Stdio::inherit())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{test}, in a process of its own: {said}");
    assert!(said.contains("1 passed"), "there is no test {test}");
    false
}
