//! One call: what the model is shown, and what the log has of it.

use std::time::Duration;

use capsule_api::{BlockKind, CallId, NoAnswer, Progress, RunEvent, ToolReply, ToolStatus};
use serde_json::json;

use crate::{
    guests,
    support::{Capsule, SlowCaller, said},
};

#[tokio::test]
async fn a_call_passes_its_arguments_and_is_recorded_once() {
    let turn = Capsule::with("echo", guests::echo().build()).turn();
    let reply = turn.call("echo", json!({"b": 1, "a": [true]})).await;
    assert_eq!(reply, ToolReply::text(r#"{"b":1,"a":[true]}"#));
    let call = CallId::new("call-1");
    assert_eq!(
        turn.log.events(),
        [
            RunEvent::Started {
                call: call.clone(),
                name: "echo".into(),
                arguments: json!({"b": 1, "a": [true]})
            },
            RunEvent::Ended {
                call,
                name: "echo".into(),
                reply,
                duration: Duration::ZERO
            },
        ]
    );
}

#[tokio::test]
async fn t_05_missing_arguments_are_an_empty_object_if_the_schema_allows_it() {
    let mut capsule = Capsule::with("echo", guests::echo().build()).tool("strict", guests::echo().build());
    capsule.sources[1].input_schema = Some(json!({"type": "object", "properties": {"n": {}}, "required": ["n"]}));
    let turn = capsule.turn();
    for none in [json!(null), json!(""), json!({})] {
        assert_eq!(turn.call("echo", none.clone()).await, ToolReply::text("{}"));
        let text = "tool 'strict' was not run: the arguments do not fit its schema:\n- \"n\" is a required property";
        assert_eq!(
            turn.call("strict", none).await,
            ToolReply::new(ToolStatus::Invalid, text)
        );
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_do_not_reach_the_tool() {
    let mut capsule = Capsule::with("trap", guests::trap().build());
    capsule.sources[0].input_schema = Some(json!({"properties": {"n": {"type": "integer"}}}));
    let turn = capsule.turn();
    let reply = turn.call("trap", json!({"n": "x"})).await;
    let text =
        "tool 'trap' was not run: the arguments do not fit its schema:\n- at /n: \"x\" is not of type \"integer\"";
    assert_eq!(reply, ToolReply::new(ToolStatus::Invalid, text));
    assert_eq!(turn.log.ends(), (1, vec![ToolStatus::Invalid]));
}

#[tokio::test]
async fn a_tool_that_says_no_has_failed_in_its_own_words() {
    let capsule = Capsule::new()
        .tool("failed", guests::says(1).build_with_data("no such city"))
        .tool("error", guests::says(2).build_with_data("no map"));
    let turn = capsule.turn();
    assert_eq!(
        turn.ask("failed").await,
        said(ToolStatus::Failed, "tool 'failed' failed: no such city")
    );
    assert_eq!(
        turn.ask("error").await,
        said(ToolStatus::Failed, "tool 'error' failed: no map")
    );
}

#[tokio::test]
async fn w_02_a_trap_carries_the_end_of_standard_error_and_the_next_call_is_clean() {
    let capsule = Capsule::new()
        .tool("trap", guests::trap().build())
        .tool(
            "tells",
            guests::writes("stderr", false).build_with_data("thread main panicked at 7\n"),
        )
        .tool("echo", guests::echo().build());
    let turn = capsule.turn();
    let trapped = said(
        ToolStatus::Trapped,
        "tool 'trap' trapped: wasm trap: wasm `unreachable` instruction executed",
    );
    for _ in 0..3 {
        assert_eq!(turn.ask("trap").await, trapped);
        assert_eq!(turn.ask("echo").await, said(ToolStatus::Passed, "{}"));
    }
    assert_eq!(
        turn.ask("tells").await,
        said(
            ToolStatus::Trapped,
            "tool 'tells' trapped: wasm trap: wasm `unreachable` instruction executed\n\
             end of its standard error:\nthread main panicked at 7"
        )
    );
}

#[tokio::test]
async fn text_that_is_not_utf_8_ends_the_call() {
    let turn = Capsule::with("bad", guests::bad_utf8().build()).turn();
    let (status, text) = turn.ask("bad").await;
    assert_eq!(status, ToolStatus::Trapped);
    assert!(
        text.starts_with("tool 'bad' was stopped: invalid utf-8 sequence"),
        "{text}"
    );
}

#[tokio::test]
async fn streamed_text_belongs_to_its_call_by_either_interface() {
    let capsule = Capsule::new()
        .tool(
            "new",
            guests::streams("murmur:stream/events@0.1.0").build_with_data("half"),
        )
        .tool(
            "old",
            guests::streams("murmur:text/chunks@0.1.0").build_with_data("half"),
        );
    let turn = capsule.turn();
    for (name, id) in [("new", "call-1"), ("old", "call-2")] {
        assert_eq!(turn.ask(name).await, said(ToolStatus::Passed, "half"));
        let chunk = |kind| RunEvent::Chunk {
            call: CallId::new(id),
            kind,
            text: "half".into(),
        };
        let events = turn.log.events();
        let chunks = events[events.len() - 3..events.len() - 1].to_vec();
        assert_eq!(chunks, [chunk(BlockKind::Text), chunk(BlockKind::Thinking)]);
    }
}

#[tokio::test]
async fn a_tool_cannot_speak_for_the_model() {
    let turn = Capsule::with("pretends", guests::pretends().build()).turn();
    assert_eq!(turn.ask("pretends").await, said(ToolStatus::Passed, "some text"));
    assert_eq!(turn.log.events().len(), 2);
}

#[tokio::test]
async fn a_question_stops_the_deadline_until_the_answer_comes() {
    let capsule = Capsule::with("asks", guests::asks().build_with_data("Which one?"));
    let caller = SlowCaller::new();
    let turn = capsule.turn_with(caller.clone());
    let call = tokio::spawn(turn.call("asks", json!({})));
    assert_eq!(caller.asked(1).await, ["Which one?"]);
    capsule.clock.advance(24 * capsule.grants.limits.deadline);
    caller.answer(Ok(json!("the blue one")));
    assert_eq!(call.await.unwrap(), ToolReply::text("the blue one"));
    let steps: Vec<_> = turn
        .log
        .events()
        .into_iter()
        .filter(|event| matches!(event, RunEvent::Progress { .. }))
        .collect();
    let step = |progress| RunEvent::Progress {
        call: CallId::new("call-1"),
        progress,
    };
    assert_eq!(steps, [step(Progress::WaitingForCaller), step(Progress::Resumed)]);
}

#[tokio::test]
async fn a_question_that_nobody_answers_ends_the_call() {
    let capsule = Capsule::with("asks", guests::asks().build());
    assert_eq!(
        capsule.turn().ask("asks").await,
        said(
            ToolStatus::Failed,
            "tool 'asks' failed: it asked a question and there is nobody to answer"
        )
    );
    let caller = SlowCaller::new();
    caller.answer(Err(NoAnswer::TimedOut));
    assert_eq!(
        capsule.turn_with(caller).ask("asks").await,
        said(
            ToolStatus::Failed,
            "tool 'asks' failed: it asked a question and no answer came in time"
        )
    );
}
