//! The driver `cassette`: recorded streams, real tools.

use std::{path::Path, sync::Arc};

use capsule_api::{
    Billing, Cancel, Error, Event, Events, Input, NobodyThere, Outcome, TurnIo, Usage,
    serde_json::{Value, json},
};

use crate::{
    log::{Log, Tools},
    stand::{build, completed, spec},
    time::ManualClock,
};

const CALL: &str = include_str!("../streams/call.sse");
const ANSWER: &str = include_str!("../streams/answer.sse");

fn entry(roles: &[&str], last: &str, stream: &str) -> Value {
    // Cut in the middle, at some character.
    let middle = (stream.len() / 2..).find(|at| stream.is_char_boundary(*at)).unwrap();
    let (first, second) = stream.split_at(middle);
    json!({
        "request": {"roles": roles, "tools": ["demo__fail", "demo__greet", "demo__hang", "demo__meet"], "last": [last]},
        "wire": "anthropic", "status": 200, "chunks": [[0, first], [1500, second]]
    })
}

fn tape(result: &str) -> Value {
    json!({"version": 1, "capsule": "demo", "entries": [
        entry(&["user"], "Greet Ada", CALL),
        entry(&["user", "assistant", "tool"], result, ANSWER),
    ]})
}

async fn run(tape: &Value, extra: Value, clock: &Arc<ManualClock>) -> (Result<Outcome, Error>, Arc<Log>) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("tape.json"), tape.to_string()).unwrap();
    let mut settings = json!({"driver": "cassette", "tape": "tape.json"});
    settings
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    let transport = build(&settings, directory.path(), clock.clone()).unwrap();
    let mut conversation = transport.open(spec()).await.unwrap();
    let log = Log::new();
    let io = TurnIo {
        events: Events::new(log.clone()),
        tools: Tools::new(log.clone()),
        caller: Arc::new(NobodyThere),
        cancel: Cancel::new(),
    };
    let outcome = conversation.turn(Input::text("Greet Grace, please"), io).await;
    let at = format!("{}/", directory.path().display());
    (
        outcome.map_err(|error| error.map_text(|text| text.replace(&at, ""))),
        log,
    )
}

async fn play(tape: &Value) -> (Result<Outcome, Error>, Arc<Log>) {
    run(tape, json!({}), &Arc::new(ManualClock::new())).await
}

#[tokio::test]
async fn a_tape_answers_and_the_tools_really_run() {
    let (outcome, log) = play(&tape("Hello, Ada!")).await;
    assert_eq!(outcome.unwrap(), completed("I greeted Ada — done. 🦀"));
    let fold = log.fold();
    assert_eq!(fold.texts(), ["I will greet.", "I greeted Ada — done. 🦀"]);
    assert_eq!(fold.calls()[0].result.clone().unwrap().1, "Hello, Ada!");
    let usage = Usage {
        input: 50,
        output: 30,
        requests: 2,
        ..Usage::default()
    };
    assert_eq!(log.usage(), usage);
    let Event::Started { peer, billing, .. } = log.events()[0].clone() else {
        panic!("the first event of a turn is its start");
    };
    assert_eq!((peer.as_deref(), billing), (Some("cassette"), Billing::Free));
}

#[tokio::test]
async fn another_input_than_the_recorded_one_is_a_warning_once_and_the_same_one_none() {
    let warnings = |log: &Log| {
        let warning = |event| match event {
            Event::Warning { code, message } => Some((code, message)),
            _ => None,
        };
        log.events().into_iter().filter_map(warning).collect::<Vec<_>>()
    };
    let (_, log) = play(&tape("Hello, Ada!")).await;
    let message = "the tape was recorded with another input, and answers that one\n  \
                   recorded: Greet Ada\n  now:      Greet Grace, please";
    assert_eq!(warnings(&log), [("cassette-other-input", message.to_owned())]);
    let mut same = tape("Hello, Ada!");
    same["entries"][0]["request"]["last"] = json!(["Greet Grace, please"]);
    let (_, log) = play(&same).await;
    assert_eq!(warnings(&log), []);
}

#[tokio::test]
async fn a_tool_that_answers_something_else_is_drift_and_both_are_shown() {
    let (outcome, _) = play(&tape("Hello, Ada Lovelace!")).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.code, "cassette-drift");
    assert_eq!(
        error.message,
        "model request 2 of the run is not the one on the tape tape.json: demo__greet {\"name\":\"Ada\"} answers something else\n  \
         recorded: Hello, Ada Lovelace!\n  now:      Hello, Ada!"
    );
}

#[tokio::test]
async fn a_run_that_is_longer_than_the_tape_is_told() {
    let mut short = tape("Hello, Ada!");
    short["entries"].as_array_mut().unwrap().pop();
    let error = play(&short).await.0.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            "cassette-exhausted",
            "the tape tape.json has 1 answers, and this is request 2"
        )
    );
}

#[tokio::test]
async fn keys_of_another_driver_do_not_matter() {
    let extra = json!({"endpoint": "nonsense", "api_key": "${UNSET}"});
    let (outcome, _) = run(&tape("Hello, Ada!"), extra, &Arc::new(ManualClock::new())).await;
    assert_eq!(outcome.unwrap(), completed("I greeted Ada — done. 🦀"));
}

#[tokio::test]
async fn a_tape_keeps_its_timing_on_request() {
    let clock = Arc::new(ManualClock::new());
    let gap = std::time::Duration::from_millis(1500);
    let waits = async {
        for _ in 0..3 {
            clock.pass(gap).await;
        }
    };
    let tape = tape("Hello, Ada!");
    let played = run(&tape, json!({"timing": true}), &clock);
    tokio::pin!(played, waits);
    let outcome = tokio::select! {
        (outcome, _) = &mut played => outcome,
        () = &mut waits => panic!("the tape has two waits, not three"),
    };
    assert_eq!(outcome.unwrap(), completed("I greeted Ada — done. 🦀"));
}

#[tokio::test]
async fn a_recorded_failure_is_tried_again_without_waiting() {
    let mut failing = tape("Hello, Ada!");
    let mut first = entry(
        &["user"],
        "Greet Ada",
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    );
    first["status"] = json!(529);
    failing["entries"].as_array_mut().unwrap().insert(0, first);
    // The clock stands still.
    let (outcome, log) = play(&failing).await;
    assert_eq!(outcome.unwrap(), completed("I greeted Ada — done. 🦀"));
    let cause = capsule_api::ErrorKind::Overloaded;
    assert!(log.events().contains(&Event::Retrying {
        attempt: 1,
        after: std::time::Duration::ZERO,
        cause
    }));
}

#[tokio::test]
async fn a_tape_of_a_wire_that_is_not_linked_names_it() {
    let mut other = tape("Hello, Ada!");
    other["entries"][0]["wire"] = json!("elsewhere");
    let error = play(&other).await.0.unwrap_err();
    assert_eq!(
        error.message,
        "no driver is called `elsewhere`; there are: anthropic, cassette, ollama, openai, openai-responses"
    );
}

#[test]
fn a_tape_that_is_missing_is_told_when_the_transport_is_built() {
    let settings = json!({"driver": "cassette", "tape": "none.json"});
    let error = build(&settings, Path::new("/nonexistent"), Arc::new(ManualClock::new()))
        .err()
        .unwrap();
    assert_eq!(error.code, "cassette-unreadable");
}
