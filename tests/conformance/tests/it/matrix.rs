//! One capsule, the real sandbox, every driver and every CLI: the same run.
//!
//! Equal means: the same outcome, the same number of calls and of denied calls, the same [`Fold`](capsule_api::Fold) (texts, reasoning, the
//! calls in the model's order with their arguments, how each ended and what the model was told), and the same story:
//!
//! - the host's and the model's side of the log in the same order of kinds. Left out is what depends on how a transport gets its stream or
//!   on who is at the other end: `Started`, `Delta`, `CallStarted`, `CallProgress`, `Usage`, `Note`.
//! - for each model request, the same calls executed, each started once and then ended once, before the next request. The order of
//!   executions among each other and against the model's events of that request is not compared: calls run at the same time, and a CLI
//!   starts one while the model still writes the next.

use capsule_api::{BlockKind, Event, FoldedCall, Outcome, RunEvent, ToolStatus};
use capsule_fakes::{Reply, Script};
use capsule_session::{TaskState, What};
use serde_json::json;

use crate::run::{
    Bench, DRIVERS, Ran, hello, hello_on_claude, hello_on_codex, hello_on_component, hello_on_driver, hello_on_tape,
    hello_script,
};

/// The story of a run.
#[derive(Debug, Default, PartialEq)]
struct Story {
    /// Kinds of what the host and the model's side said, in order.
    told: Vec<String>,
    /// What was executed between two model requests, sorted.
    ran: Vec<Vec<String>>,
}

fn story(ran: &Ran) -> Story {
    let mut story = Story::default();
    let mut running = Vec::new();
    for entry in &ran.log {
        let told = match &entry.what {
            What::RunStart(_) => "run start".to_owned(),
            What::State(TaskState::Working) => "working".to_owned(),
            What::State(TaskState::Completed) => "completed".to_owned(),
            What::RunEnd { late, .. } => format!("run end, {late} late"),
            What::Model(event) => {
                if matches!(event, Event::RequestStarted { .. }) {
                    assert!(
                        running.is_empty(),
                        "{running:?} still run when the model is asked again"
                    );
                    story.ran.push(Vec::new());
                }
                let Some(told) = kind(event) else { continue };
                told
            }
            What::Run(RunEvent::Started { call, .. }) => {
                running.push(call.clone());
                continue;
            }
            What::Run(RunEvent::Ended { call, name, reply, .. }) => {
                let at = running.iter().position(|other| other == call);
                running.remove(at.expect("a call that ends has started"));
                let request = story.ran.last_mut().expect("a call follows a request");
                request.push(format!("{name}: {:?}", reply.status));
                request.sort();
                continue;
            }
            other => panic!("the story has no word for {other:?}"),
        };
        story.told.push(told);
    }
    story
}

/// The word for what the model's side says; none for what is not compared.
fn kind(event: &Event) -> Option<String> {
    Some(match event {
        Event::Started { .. }
        | Event::Delta { .. }
        | Event::CallStarted { .. }
        | Event::CallProgress { .. }
        | Event::Usage(_)
        | Event::Note { .. } => return None,
        Event::RequestStarted { n } => format!("request {n}"),
        Event::RequestEnded { n, stop } => format!("request {n} ended: {stop}"),
        Event::Block {
            kind: BlockKind::Text, ..
        } => "text".to_owned(),
        Event::Block {
            kind: BlockKind::Thinking,
            ..
        } => "thinking".to_owned(),
        Event::Call { name, .. } => format!("call {name}"),
        other => format!("{other:?}"),
    })
}

/// Runs the script through each driver, through the tape of one of these runs and, where they are installed, through the CLIs. The
/// provider finds nothing wrong with any.
fn on_all(bench: &Bench, script: &Script) -> Vec<(&'static str, Ran)> {
    let mut runs = Vec::new();
    let mut tape = None;
    for driver in DRIVERS {
        let provider = bench.provider(script.clone());
        let (ran, recorded) = bench.run_recorded(&hello_on_driver(driver, &provider.url()));
        runs.push((driver, ran));
        tape = Some(recorded);
        provider.assert_clean();
    }
    let tape = tape.expect("there are drivers");
    runs.push(("cassette", bench.run(&hello_on_tape(&tape))));
    let provider = bench.provider(script.clone());
    runs.push(("component", bench.run(&hello_on_component(&provider.url()))));
    provider.assert_clean();
    if let Some(cli) = capsule_fakes::claude() {
        let provider = bench.provider(script.clone());
        runs.push(("claude", bench.run(&hello_on_claude(&cli, &provider.url()))));
        provider.assert_clean();
    }
    if let Some(cli) = capsule_fakes::codex() {
        let provider = bench.provider(script.clone());
        runs.push(("codex", bench.run(&hello_on_codex(&cli, &provider.url()))));
        provider.assert_clean();
    }
    runs
}

fn lines<const N: usize>(lines: [&str; N]) -> Vec<String> {
    lines.map(str::to_owned).to_vec()
}

#[test]
fn the_capsule_hello_is_the_same_run_on_every_driver_and_on_the_clis() {
    let bench = Bench::new();
    let tape = bench.run(&hello());
    let wanted = Story {
        told: lines([
            "run start",
            "working",
            "request 1",
            "text",
            "call read-file",
            "call read-file",
            "request 1 ended: tool_call",
            "request 2",
            "call hello",
            "call hello",
            "call hello",
            "request 2 ended: tool_call",
            "request 3",
            "text",
            "request 3 ended: end_turn",
            "completed",
            "run end, 0 late",
        ]),
        ran: vec![
            lines(["read-file: Denied", "read-file: Passed"]),
            lines(["hello: Passed", "hello: Passed", "hello: Passed"]),
            Vec::new(),
        ],
    };
    assert_eq!(story(&tape), wanted);
    assert_eq!((tape.report.calls, tape.report.denied), (5, 1));
    let greetings: Vec<_> = tape.fold().calls()[2..]
        .iter()
        .map(|call| call.result.clone())
        .collect();
    let passed = |text: &str| Some((ToolStatus::Passed, text.to_owned()));
    assert_eq!(
        greetings,
        [
            passed("Bonjour, Amélie !"),
            passed("こんにちは、Kenjiさん！"),
            passed("Cześć, Zofia!")
        ]
    );

    for (transport, ran) in on_all(&bench, &hello_script()) {
        assert_eq!(ran.outcome(), tape.outcome(), "{transport}");
        assert_eq!((ran.report.calls, ran.report.denied), (5, 1), "{transport}");
        assert_eq!(ran.fold(), tape.fold(), "{transport}");
        assert_eq!(story(&ran), wanted, "{transport}");
    }
}

#[test]
fn reasoning_and_failed_calls_are_the_same_on_every_driver_and_on_the_clis() {
    let first = Reply::new()
        .thinking(["Whom ", "to greet?"].as_slice(), "seal")
        .and_text(["I begin ", "with nobody."].as_slice())
        .call("toolu_1", "hello", json!({"name": 7, "language": "French"}))
        .call("toolu_2", "read-file", json!({"path": "/notes/nobody.md"}));
    let script = Script::new().then(first).then(Reply::text("Neither worked."));
    let wanted = Story {
        told: lines([
            "run start",
            "working",
            "request 1",
            "thinking",
            "text",
            "call hello",
            "call read-file",
            "request 1 ended: tool_call",
            "request 2",
            "text",
            "request 2 ended: end_turn",
            "completed",
            "run end, 0 late",
        ]),
        ran: vec![lines(["hello: Invalid", "read-file: Failed"]), Vec::new()],
    };
    let bench = Bench::new();
    let runs = on_all(&bench, &script);
    for (transport, ran) in &runs {
        let text = "Neither worked.".to_owned();
        assert_eq!(ran.outcome(), &Outcome::Completed { text }, "{transport}");
        assert_eq!((ran.report.calls, ran.report.denied), (2, 0), "{transport}");
        let fold = ran.fold();
        assert_eq!(fold.thinking(), ["Whom to greet?"], "{transport}");
        assert_eq!(fold.texts(), ["I begin with nobody.", "Neither worked."], "{transport}");
        let told = |call: &&FoldedCall| call.result.as_ref().is_some_and(|(_, text)| !text.is_empty());
        assert!(fold.calls().iter().all(told), "{transport}: {:?}", fold.calls());
        assert_eq!(fold, runs[0].1.fold(), "{transport}");
        assert_eq!(story(ran), wanted, "{transport}");
    }
}
