use std::{
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll, Waker},
    time::Duration,
};

use capsule_api::{Annotations, CancelReason, NobodyThere, SystemClock, ToolSpec};
use serde_json::json;
use tokio::sync::watch;

use super::*;
use crate::toolbox::tools;

/// What a tool of these tests does.
#[derive(Clone)]
enum Does {
    Passes,
    Panics,
    /// Runs until it is let go.
    Waits(watch::Receiver<bool>),
}

struct Fake {
    spec: ToolSpec,
    does: Does,
}

#[async_trait]
impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, _: Value, _: ToolContext) -> ToolReply {
        match self.does.clone() {
            Does::Passes => ToolReply::text("done"),
            Does::Panics => panic!("at the worst moment"),
            Does::Waits(mut go) => {
                go.wait_for(|go| *go).await.unwrap();
                ToolReply::text("waited")
            }
        }
    }
}

#[derive(Default)]
struct Log(Mutex<Vec<RunEvent>>);

impl RunSink for Log {
    fn record(&self, event: RunEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl Log {
    /// Each event by its call and what it was.
    fn story(&self) -> Vec<String> {
        let events = self.0.lock().unwrap();
        let told = events.iter().map(|event| match event {
            RunEvent::Started { call, .. } => format!("{call} started"),
            RunEvent::Ended { call, reply, .. } => format!("{call} {}", reply.status.as_str()),
            RunEvent::Warning { code, message } => format!("{code}: {message}"),
            RunEvent::Missed { call, why } => format!("{call} missed: {why}"),
            other => format!("{other:?}"),
        });
        told.collect()
    }
}

struct Turn {
    dispatch: Arc<Dispatch>,
    log: Arc<Log>,
    cancel: Cancel,
}

/// A call that is polled by hand, so that the order of everything is the test's.
struct Call(Pin<Box<dyn Future<Output = ToolReply> + Send>>);

impl Call {
    fn poll(&mut self) -> Option<ToolReply> {
        match self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(reply) => Some(reply),
            Poll::Pending => None,
        }
    }
}

impl Turn {
    fn of(fakes: &[(&str, bool, Does)]) -> Self {
        let entries = fakes.iter().map(|(name, exclusive, does)| {
            let spec = ToolSpec {
                name: (*name).to_owned(),
                alias: (*name).to_owned(),
                description: String::new(),
                input_schema: json!({"type": "object"}),
                annotations: Annotations {
                    read_only: false,
                    exclusive: *exclusive,
                },
                longest: Duration::from_secs(60),
                largest: 1 << 20,
            };
            let validator = jsonschema::validator_for(&spec.input_schema).unwrap();
            let tool = Arc::new(Fake {
                spec,
                does: does.clone(),
            });
            Entry { tool, validator }
        });
        let (log, cancel) = (Arc::new(Log::default()), Cancel::new());
        let bindings = Bindings {
            sink: log.clone(),
            caller: Arc::new(NobodyThere),
            cancel: cancel.clone(),
        };
        let tools = Arc::new(tools(entries.collect(), Arc::new(SystemClock), 4));
        let dispatch = Arc::new(Dispatch {
            tools,
            bindings,
            stack: Stack::default(),
        });
        Self { dispatch, log, cancel }
    }

    fn call(&self, id: &str, name: &str, arguments: Value) -> Call {
        let (dispatch, call) = (
            Arc::clone(&self.dispatch),
            ToolCall::new(CallId::new(id), name, arguments),
        );
        Call(Box::pin(async move { dispatch.call(call).await }))
    }
}

#[test]
fn a_panic_in_a_tool_fails_its_call_and_is_a_warning() {
    let turn = Turn::of(&[("bad", false, Does::Panics), ("good", false, Does::Passes)]);
    let text = "tool 'bad' failed: a fault of the host (at the worst moment)";
    let reply = turn.call("a", "bad", json!({})).poll();
    assert_eq!(reply, Some(ToolReply::new(ToolStatus::Failed, text)));
    assert_eq!(turn.call("b", "good", json!({})).poll(), Some(ToolReply::text("done")));
    assert_eq!(
        turn.log.story(),
        [
            "a started",
            "tool-panicked: the host's code for tool 'bad' panicked in call a: at the worst moment",
            "a failed",
            "b started",
            "b passed",
        ]
    );
}

#[test]
fn an_unknown_tool_is_answered_with_what_there_is() {
    let turn = Turn::of(&[("read", false, Does::Passes), ("write", false, Does::Passes)]);
    let text = "no tool is called 'reed'; there are: read, write. Did you mean 'read'?";
    assert_eq!(
        turn.call("a", "reed", json!({})).poll(),
        Some(ToolReply::new(ToolStatus::Unknown, text))
    );
    let none = Turn::of(&[]);
    assert_eq!(
        none.call("a", "read", json!({})).poll(),
        Some(ToolReply::new(
            ToolStatus::Unknown,
            "no tool is called 'read'; there are no tools"
        ))
    );
    assert_eq!(none.log.story(), ["a started", "a unknown"]);
}

#[test]
fn arguments_that_are_no_object_are_invalid() {
    let turn = Turn::of(&[("read", false, Does::Passes)]);
    let text = "tool 'read' was not run: the arguments are a string; they must be a JSON object";
    assert_eq!(
        turn.call("a", "read", json!("x")).poll(),
        Some(ToolReply::new(ToolStatus::Invalid, text))
    );
}

#[test]
fn an_exclusive_call_runs_alone_and_others_wait_behind_it() {
    let (go, gone) = watch::channel(false);
    let waits = Does::Waits(gone);
    let turn = Turn::of(&[("slow", false, waits.clone()), ("alone", true, waits)]);
    let mut beside = [turn.call("a", "slow", json!({})), turn.call("b", "slow", json!({}))];
    let mut alone = turn.call("c", "alone", json!({}));
    let mut behind = turn.call("d", "slow", json!({}));
    for call in &mut beside {
        assert_eq!(call.poll(), None);
    }
    assert_eq!(alone.poll(), None);
    assert_eq!(behind.poll(), None);
    go.send_replace(true);
    // The exclusive call waits for both, whatever is polled first; who comes later waits for it.
    assert_eq!(alone.poll(), None);
    assert_eq!(behind.poll(), None);
    for call in &mut beside {
        assert_eq!(call.poll(), Some(ToolReply::text("waited")));
    }
    assert_eq!(behind.poll(), None);
    assert_eq!(alone.poll(), Some(ToolReply::text("waited")));
    assert_eq!(behind.poll(), Some(ToolReply::text("waited")));
}

#[test]
fn an_exclusive_call_that_is_dropped_while_it_waits_holds_nobody() {
    let (_go, gone) = watch::channel(false);
    let turn = Turn::of(&[
        ("slow", false, Does::Waits(gone)),
        ("alone", true, Does::Passes),
        ("quick", false, Does::Passes),
    ]);
    let mut slow = turn.call("a", "slow", json!({}));
    let mut alone = turn.call("b", "alone", json!({}));
    let mut quick = turn.call("c", "quick", json!({}));
    assert_eq!((slow.poll(), alone.poll(), quick.poll()), (None, None, None));
    drop(alone);
    assert_eq!(quick.poll(), Some(ToolReply::text("done")));
    assert_eq!(
        turn.log.story(),
        ["a started", "b started", "c started", "b cancelled", "c passed"]
    );
}

#[test]
fn a_cancel_ends_calls_of_tools_that_do_not_heed_it() {
    let (_go, gone) = watch::channel(false);
    let turn = Turn::of(&[("slow", false, Does::Waits(gone))]);
    let mut call = turn.call("a", "slow", json!({}));
    assert_eq!(call.poll(), None);
    turn.cancel.cancel(CancelReason::Caller);
    assert_eq!(
        call.poll(),
        Some(ToolReply::new(ToolStatus::Cancelled, "tool 'slow' was cancelled"))
    );
    assert_eq!(turn.log.story(), ["a started", "a cancelled"]);
}

#[test]
fn a_call_is_recorded_once_however_often_it_is_dropped() {
    let (_go, gone) = watch::channel(false);
    let turn = Turn::of(&[("slow", false, Does::Waits(gone))]);
    drop(turn.call("never polled", "slow", json!({})));
    let mut call = turn.call("a", "slow", json!({}));
    assert_eq!(call.poll(), None);
    drop(call);
    turn.dispatch.missed(CallId::new("x"), "the peer ran it");
    assert_eq!(
        turn.log.story(),
        ["a started", "a cancelled", "x missed: the peer ran it"]
    );
}
