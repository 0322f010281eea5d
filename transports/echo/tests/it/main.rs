//! What each input does, and the conformance kit.
#![cfg(test)]

mod fixture;

use std::sync::Arc;

use capsule_api::{
    BlockId, BlockKind, CallId, CancelReason, Conversation, ConversationSpec, Error, Event, FoldedCall, Limits,
    Outcome, Settings, SystemClock, ToolStatus, TurnIo, Usage,
};
use capsule_transport_echo as _;
use capsule_transport_kit::{Fixture as _, Recorder, TestTools, assert_conforms, services};
use fixture::Echo;
use serde_json::{Value, json};

#[tokio::test]
async fn it_conforms() {
    assert_conforms(&Echo).await;
}

/// A conversation with this prefix, and the log of the turn it is about to run.
async fn open(prefix: &str) -> (Box<dyn Conversation>, Arc<Recorder>, TurnIo) {
    let values = json!({"prefix": prefix}).as_object().unwrap().clone();
    let descriptor = Echo.descriptor();
    let settings = Settings::new(values, &(descriptor.settings_schema)(None), ".");
    let transport = (descriptor.build)(settings, services(SystemClock)).unwrap();
    let spec = ConversationSpec {
        context: "test".into(),
        model: None,
        system_prompt: String::new(),
        catalogue: TestTools::offered(),
        limits: Limits::default(),
        resume: None,
        run_dir: ".".into(),
        state_dir: None,
    };
    let log = Arc::new(Recorder::new());
    let io = TurnIo {
        events: capsule_api::Events::new(log.clone()),
        tools: Arc::new(TestTools::new(log.clone())),
        caller: Arc::new(capsule_api::NobodyThere),
        cancel: capsule_api::Cancel::new(),
    };
    (transport.open(spec).await.unwrap(), log, io)
}

async fn turn(text: &str) -> (Result<Outcome, Error>, Arc<Recorder>) {
    let (mut talk, log, io) = open("> ").await;
    let outcome = talk.turn(capsule_api::Input::text(text), io).await;
    (outcome, log)
}

#[tokio::test]
async fn text_comes_back_word_by_word_and_then_whole() {
    let (outcome, log) = turn("two words").await;
    let text = "> two words".to_owned();
    assert_eq!(outcome.unwrap(), Outcome::Completed { text: text.clone() });
    let (block, kind) = (BlockId(0), BlockKind::Text);
    let delta = |text: &str| Event::Delta {
        block,
        kind,
        text: text.into(),
    };
    let usage = Usage {
        requests: 1,
        ..Usage::default()
    };
    assert_eq!(
        log.events()[1..],
        [
            Event::RequestStarted { n: 1 },
            delta("> "),
            delta("two "),
            delta("words"),
            Event::Block { block, kind, text },
            Event::RequestEnded {
                n: 1,
                stop: "end_turn".into()
            },
            Event::Usage(usage),
        ]
    );
}

#[tokio::test]
async fn calls_run_in_order_and_their_results_are_the_answer() {
    let (outcome, log) = turn("call kit-echo {\"text\": \"a\"}\ncall kit-fail {}\ncall nothing {}").await;
    let text = "a\nkit-fail always fails\nno tool is called `nothing`".to_owned();
    assert_eq!(outcome.unwrap(), Outcome::Completed { text });
    let call = |name: &str, arguments: Value, status, result: &str| FoldedCall {
        name: name.into(),
        arguments,
        result: Some((status, result.into())),
    };
    let wanted = [
        call("kit-echo", json!({"text": "a"}), ToolStatus::Passed, "a"),
        call("kit-fail", json!({}), ToolStatus::Failed, "kit-fail always fails"),
        call("nothing", json!({}), ToolStatus::Unknown, "no tool is called `nothing`"),
    ];
    assert_eq!(log.fold().calls(), wanted.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn no_call_id_comes_twice_in_a_conversation() {
    let (mut talk, log, io) = open("").await;
    for _ in 0..2 {
        let input = capsule_api::Input::text("call kit-fail {}\ncall kit-fail {}");
        talk.turn(input, io.clone()).await.unwrap();
    }
    let ids = log.events().into_iter().filter_map(|event| match event {
        Event::Call { call, .. } => Some(call),
        _ => None,
    });
    let wanted = ["echo-1-1", "echo-1-2", "echo-2-1", "echo-2-2"].map(CallId::new);
    assert_eq!(ids.collect::<Vec<_>>(), wanted);
}

#[tokio::test]
async fn a_call_that_cannot_be_read_runs_none_of_them() {
    for line in [
        "call kit-echo",
        "call kit-echo [1]",
        "call kit-echo {",
        "then call kit-echo {}",
    ] {
        let (outcome, log) = turn(&format!("call kit-fail {{}}\n{line}")).await;
        let error = outcome.unwrap_err();
        assert_eq!(
            (error.code, error.message.clone()),
            ("echo-malformed", format!("`{line}` is no call"))
        );
        assert!(log.fold().calls().is_empty(), "{line}");
    }
}

#[tokio::test]
async fn other_ends_are_what_they_are() {
    let prompt = "which one?".to_owned();
    assert_eq!(
        turn("ask which one?").await.0.unwrap(),
        Outcome::InputRequired { prompt }
    );
    assert_eq!(
        turn("refuse").await.0.unwrap(),
        Outcome::Refused { text: String::new() }
    );
    assert_eq!(turn("fail").await.0.unwrap_err().code, "echo-failed");
    let text = "> fail better".to_owned();
    assert_eq!(turn("fail better").await.0.unwrap(), Outcome::Completed { text });
}

#[tokio::test]
async fn a_cancel_ends_every_wait() {
    for text in ["wait", "wait a bit", "call kit-sleep {}"] {
        let (mut talk, _, io) = open("").await;
        io.cancel.cancel(CancelReason::Caller);
        let outcome = talk.turn(capsule_api::Input::text(text), io).await;
        assert_eq!(outcome.unwrap(), Outcome::Cancelled, "{text}");
    }
}
