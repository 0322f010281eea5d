//! A transport made of a closure, tools that answer at once, and the places of a test.

use std::{borrow::Cow, future::Future, path::Path, pin::Pin, sync::Arc, time::Duration};

use capsule_api::*;
use capsule_session::{Agent, CapsuleInfo, Places, Prompting, RunPlace, Task, Toolkit};
use serde_json::Value;

pub(crate) type Turn =
    Arc<dyn Fn(Input, TurnIo) -> Pin<Box<dyn Future<Output = Result<Outcome, Error>> + Send>> + Send + Sync>;

pub(crate) struct Scripted(pub(crate) Turn);

#[async_trait]
impl Transport for Scripted {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn probe(&self, _: bool) -> Probe {
        Probe::usable()
    }

    async fn open(&self, spec: ConversationSpec) -> Result<Box<dyn Conversation>, Error> {
        std::fs::write(spec.run_dir.join("scratch"), "left by the transport").unwrap();
        Ok(Box::new(Talk {
            turn: self.0.clone(),
            resumed: spec.resume,
        }))
    }
}

struct Talk {
    turn: Turn,
    resumed: Option<ResumeState>,
}

#[async_trait]
impl Conversation for Talk {
    async fn turn(&mut self, input: Input, io: TurnIo) -> Result<Outcome, Error> {
        (self.turn)(input, io).await
    }

    fn resume_state(&self) -> Option<ResumeState> {
        let turns = self.resumed.as_ref().map_or(0, |state| state.data.as_u64().unwrap());
        Some(ResumeState {
            transport: "scripted".into(),
            version: 1,
            data: (turns + 1).into(),
        })
    }
}

pub(crate) static SCRIPTED: TransportDescriptor = TransportDescriptor {
    name: "scripted",
    crate_name: "scripted-crate",
    family: "example",
    summary: "a closure",
    at_most: Capabilities {
        streams: false,
        thinking: false,
        usage: false,
        resumes: false,
        parallel_tools: false,
        interrupts: false,
        host_owns_loop: false,
    },
    stops_within: Duration::from_millis(50),
    settings_schema: |_| Value::Null,
    example: "",
    recognises: None,
    codes: &[],
    build: |_, _| unreachable!("the tests build it themselves"),
};

/// Answers every call with its arguments; `secrets/…` is denied.
struct Mirror {
    catalogue: Arc<Catalogue>,
    sink: Arc<dyn RunSink>,
}

#[async_trait]
impl ToolDispatch for Mirror {
    fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    async fn call(&self, call: ToolCall) -> ToolReply {
        let (id, name) = (call.id, call.name);
        self.sink.record(RunEvent::Started {
            call: id.clone(),
            name: name.clone(),
            arguments: call.arguments.clone(),
        });
        let denied = call.arguments["path"]
            .as_str()
            .is_some_and(|path| path.starts_with("secrets/"));
        let status = if denied { ToolStatus::Denied } else { ToolStatus::Passed };
        let reply = ToolReply::new(status, call.arguments.to_string());
        self.sink.record(RunEvent::Ended {
            call: id,
            name,
            reply: reply.clone(),
            duration: Duration::from_millis(3),
        });
        reply
    }

    fn missed(&self, _: CallId, _: &str) {}
}

struct Mirrors;

impl Toolkit for Mirrors {
    fn catalogue(&self) -> Arc<Catalogue> {
        Arc::default()
    }

    fn bind(&self, sink: Arc<dyn RunSink>, _: Arc<dyn Caller>, _: Cancel) -> Arc<dyn ToolDispatch> {
        Arc::new(Mirror {
            catalogue: Arc::default(),
            sink,
        })
    }
}

pub(crate) struct OneSecret(pub(crate) &'static str);

impl Secrets for OneSecret {
    fn expand(&self, text: &str) -> Result<String, Error> {
        Ok(text.to_owned())
    }

    fn protect(&self, _: &Secret) {}

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        text.replace(self.0, "[redacted]").into()
    }
}

pub(crate) struct NoHttp;

#[async_trait]
impl HttpClient for NoHttp {
    async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<Box<dyn HttpBody>>, Error> {
        unreachable!("nothing here sends requests")
    }
}

pub(crate) fn agent<F>(turn: impl Fn(Input, TurnIo) -> F + Send + Sync + 'static) -> Agent
where
    F: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    let secrets = Arc::new(OneSecret("hunter2-hunter2"));
    Agent {
        capsule: CapsuleInfo {
            name: "notes".into(),
            version: "0.1.0".into(),
        },
        descriptor: &SCRIPTED,
        chosen_by: None,
        transport: Box::new(Scripted(Arc::new(move |input, io| Box::pin(turn(input, io))))),
        toolkit: Arc::new(Mirrors),
        prompting: Prompting::default(),
        services: Services::new(Arc::new(SystemClock), secrets, Arc::new(NoHttp)),
    }
}

pub(crate) fn places(dir: &Path) -> Places {
    let dir = dir.as_os_str().to_owned();
    Places::of("notes", move |name| {
        matches!(name, "XDG_STATE_HOME" | "XDG_RUNTIME_DIR").then(|| dir.clone())
    })
}

pub(crate) fn place(dir: &Path, task: &Task) -> RunPlace {
    RunPlace {
        run_dir: places(dir).make_run_dir(task.log.task()).unwrap(),
        context: None,
    }
}
