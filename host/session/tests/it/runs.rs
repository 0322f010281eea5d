use std::{fs, future::pending};

use capsule_api::*;
use capsule_session::{KeptContext, Read, Reader, RunPlace, Task, What};
use serde_json::json;

use crate::support::{agent, place, places};

const BROKEN: Code = Code {
    id: "t-broken",
    kind: ErrorKind::Network,
    meaning: "",
    remedy: "Mend it.",
};

fn rest(mut reader: Reader) -> Vec<What> {
    let mut all = Vec::new();
    while let Some(read) = reader.try_next() {
        match read {
            Read::Entry(entry) => all.push(entry.what.clone()),
            Read::Missed(n) => panic!("missed {n}"),
        }
    }
    all
}

fn answer(text: &str) -> Result<Outcome, Error> {
    Ok(Outcome::Completed { text: text.into() })
}

#[tokio::test]
async fn a_task_completes_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(|input, io| async move {
        let call = ToolCall::new(CallId::new("c1"), "mirror", json!({"path": "secrets/key"}));
        io.tools.call(call).await;
        io.events.emit(Event::Usage(Usage {
            output: 7,
            ..Usage::default()
        }));
        answer(&input.as_text().unwrap())
    });
    let task = Task::new(&agent.services);
    let reader = task.log.reader();
    let report = agent.run(&task, Input::text("hi"), place(dir.path(), &task)).await;
    assert_eq!(report.outcome.unwrap(), Outcome::Completed { text: "hi".into() });
    assert_eq!((report.calls, report.denied, report.usage.output), (1, 1, 7));
    let scratch = Scratch {
        files: 1,
        bytes: 21,
        partial: false,
    };
    let gone_with_its_directory = Residue {
        scratch,
        ..Residue::default()
    };
    assert_eq!(report.residue, gone_with_its_directory);
    assert!(report.residue.is_empty());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let states: Vec<_> = rest(reader)
        .into_iter()
        .filter_map(|what| match what {
            What::State(state) => Some(state.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(states, ["working", "completed"]);
}

#[tokio::test]
async fn a_failure_shows_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(|_, _| async {
        let error = Error::new(&BROKEN, "the provider said: bad key hunter2-hunter2");
        Err(error.with("body", "hunter2-hunter2"))
    });
    let task = Task::new(&agent.services);
    let error = agent
        .run(&task, Input::text("hi"), place(dir.path(), &task))
        .await
        .outcome
        .unwrap_err();
    assert_eq!(error.message, "the provider said: bad key [redacted]");
    assert_eq!(error.context, [("body", "[redacted]".to_owned())]);
}

#[tokio::test]
async fn a_panic_is_an_error_that_names_the_crate() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(|_, _| async { panic!("index out of bounds") });
    let task = Task::new(&agent.services);
    let report = agent.run(&task, Input::text("hi"), place(dir.path(), &task)).await;
    let error = report.outcome.unwrap_err();
    assert_eq!(
        (error.code, &*error.message),
        (
            "session-plugin-panicked",
            "scripted-crate panicked: index out of bounds"
        )
    );
}

#[tokio::test]
async fn a_transport_that_ignores_a_cancel_is_dropped_and_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(|_, io| async move {
        io.events.emit(Event::RequestStarted { n: 1 });
        pending().await
    });
    let task = Task::new(&agent.services);
    let (mut first, reader) = (task.log.reader(), task.log.reader());
    let cancel = task.cancel.clone();
    let canceller = tokio::spawn(async move {
        while let Some(Read::Entry(entry)) = first.next().await {
            if matches!(entry.what, What::Model(_)) {
                cancel.cancel(CancelReason::Caller);
                return;
            }
        }
    });
    let report = agent.run(&task, Input::text("hi"), place(dir.path(), &task)).await;
    canceller.await.unwrap();
    assert_eq!(report.outcome.unwrap(), Outcome::Cancelled);
    let warnings: Vec<_> = rest(reader)
        .into_iter()
        .filter_map(|what| match what {
            What::Model(Event::Warning { code, .. }) => Some(code),
            _ => None,
        })
        .collect();
    assert_eq!(warnings, ["session-turn-overran"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_turn_that_was_stopped_by_a_deadline_reached_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(|_, io| async move {
        io.cancel.cancelled().await;
        Ok(Outcome::Cancelled)
    });
    let task = Task::new(&agent.services);
    task.cancel.cancel(CancelReason::Deadline);
    let report = agent.run(&task, Input::text("hi"), place(dir.path(), &task)).await;
    assert_eq!(report.outcome.unwrap(), Outcome::LimitReached { which: Limit::Wall });
}

#[tokio::test]
async fn events_after_the_turn_are_counted_and_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let kept = std::sync::Arc::new(std::sync::Mutex::new(None));
    let keep = kept.clone();
    let agent = agent(move |_, io| {
        *keep.lock().unwrap() = Some(io.events.clone());
        async { answer("done") }
    });
    let task = Task::new(&agent.services);
    let reader = task.log.reader();
    agent.run(&task, Input::text("hi"), place(dir.path(), &task)).await;
    let before = rest(reader).len();
    kept.lock()
        .unwrap()
        .take()
        .unwrap()
        .emit(Event::RequestStarted { n: 9 });
    assert_eq!(rest(task.log.reader()).len(), before);
}

#[tokio::test]
async fn a_kept_context_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let places = places(dir.path());
    let agent = agent(|_, _| async { answer("ok") });
    for turn in 1..=2u64 {
        let task = Task::new(&agent.services);
        let run_dir = places.make_run_dir(task.log.task()).unwrap();
        let context = Some(KeptContext::open(&places, "release").unwrap());
        let report = agent.run(&task, Input::text("hi"), RunPlace { run_dir, context }).await;
        assert!(report.not_kept.is_none());
        let kept = KeptContext::open(&places, "release")
            .unwrap()
            .resume_for("scripted")
            .unwrap()
            .unwrap();
        assert_eq!(kept.data, json!(turn));
    }
}

#[tokio::test]
async fn a_context_that_cannot_be_kept_is_said_and_the_answer_stands() {
    let dir = tempfile::tempdir().unwrap();
    let places = places(dir.path());
    let agent = agent(|_, _| async { answer("ok") });
    let task = Task::new(&agent.services);
    let run_dir = places.make_run_dir(task.log.task()).unwrap();
    let context = KeptContext::open(&places, "release").unwrap();
    // A directory in the file's place cannot be replaced by a file, whoever tries.
    fs::create_dir_all(context.dir().unwrap().join("resume.json/in-the-way")).unwrap();
    let report = agent
        .run(
            &task,
            Input::text("hi"),
            RunPlace {
                run_dir,
                context: Some(context),
            },
        )
        .await;
    assert_eq!(report.outcome.unwrap(), Outcome::Completed { text: "ok".into() });
    assert_eq!(report.not_kept.unwrap().code, "session-storage");
}

/// A conversation that answers and then cannot be closed.
struct Unclosable;

#[async_trait]
impl Transport for Unclosable {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn probe(&self, _: bool) -> Probe {
        Probe::usable()
    }

    async fn open(&self, _: ConversationSpec) -> Result<Box<dyn Conversation>, Error> {
        Ok(Box::new(Self))
    }
}

#[async_trait]
impl Conversation for Unclosable {
    async fn turn(&mut self, _: Input, _: TurnIo) -> Result<Outcome, Error> {
        answer("ok")
    }

    async fn close(self: Box<Self>, _: std::time::Duration) -> Residue {
        panic!("the pipe was gone")
    }
}

#[tokio::test]
async fn a_conversation_that_cannot_be_closed_is_said_and_the_answer_stands() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = agent(|_, _| async { answer("unused") });
    agent.transport = Box::new(Unclosable);
    let task = Task::new(&agent.services);
    let reader = task.log.reader();
    let report = agent.run(&task, Input::text("hi"), place(dir.path(), &task)).await;
    assert_eq!(report.outcome.unwrap(), Outcome::Completed { text: "ok".into() });
    let warnings: Vec<_> = rest(reader)
        .into_iter()
        .filter_map(|what| match what {
            What::Model(Event::Warning { code, message }) => Some((code, message)),
            _ => None,
        })
        .collect();
    let said = "scripted-crate: the conversation could not be closed: scripted-crate panicked: the pipe was gone";
    assert_eq!(warnings, [("session-close-failed", said.to_owned())]);
}
