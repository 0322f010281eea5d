//! Tools that call tools: the same chain, and an end to it.

use std::time::Duration;

use capsule_api::{Annotations, CancelReason, RunEvent, ToolReply, ToolStatus};
use serde_json::json;

use crate::{
    guests::{self, delegates},
    support::{Capsule, Log, SlowCaller, said},
};

/// Each start and end by its call.
fn story(log: &Log) -> Vec<String> {
    let told = log.events().into_iter().filter_map(|event| match event {
        RunEvent::Started { call, name, .. } => Some(format!("{call} {name}")),
        RunEvent::Ended { call, reply, .. } => Some(format!("{call} {}", reply.status.as_str())),
        _ => None,
    });
    told.collect()
}

/// Tools of these names, each of which calls the next; with one place at the top.
fn chain(names: &[&str]) -> Capsule {
    let mut capsule = names.windows(2).fold(Capsule::new(), |capsule, pair| {
        capsule.tool(pair[0], delegates().build_with_data(pair[1]))
    });
    capsule.grants.limits.concurrent_calls = 1;
    capsule
}

#[tokio::test]
async fn a_nested_call_runs_through_the_same_chain_under_an_id_of_its_own() {
    let mut capsule = chain(&["outer", "echo"]).tool("echo", guests::echo().build());
    capsule.sources[1].input_schema = Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    let turn = capsule.turn();
    assert_eq!(turn.call("outer", json!({"n": 1})).await, ToolReply::text(r#"{"n":1}"#));
    let told = ["call-1 outer", "call-1/1 echo", "call-1/1 passed", "call-1 passed"];
    assert_eq!(story(&turn.log), told);
    let text = "tool 'outer' failed: tool 'echo' was not run: the arguments do not fit its schema:\n\
        - at /n: \"x\" is not of type \"integer\"";
    let refused = ToolReply::new(ToolStatus::Failed, text);
    assert_eq!(turn.call("outer", json!({"n": "x"})).await, refused);
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_said_to_the_calling_tool() {
    let turn = chain(&["outer", "other"]).turn();
    let text = "tool 'outer' failed: no tool is called 'other'; there are: outer. Did you mean 'outer'?";
    assert_eq!(turn.ask("outer").await, said(ToolStatus::Failed, text));
}

#[tokio::test]
async fn w_04_a_call_with_too_long_a_name_or_too_much_to_say_is_not_made() {
    let long = "x".repeat(700);
    let mut capsule = chain(&["named", &long])
        .tool("asked", delegates().build_with_data("echo"))
        .tool("echo", guests::echo().build());
    capsule.grants.limits.output = 1024;
    let turn = capsule.turn();
    let text = "tool 'named' failed: no tool has a name of 700 bytes";
    assert_eq!(turn.ask("named").await, said(ToolStatus::Failed, text));

    let text = "tool 'asked' failed: tool 'echo' was not called: its arguments have 1034 bytes, and may have 1KiB (`limits.output`)";
    let refused = ToolReply::new(ToolStatus::Failed, text);
    assert_eq!(turn.call("asked", json!({"text": "x".repeat(1023)})).await, refused);
    let told = ["call-1 named", "call-1 failed", "call-2 asked", "call-2 failed"];
    assert_eq!(story(&turn.log), told);
}

#[tokio::test]
async fn recursion_is_refused_before_anything_runs() {
    let turn = chain(&["a", "b", "a"]).turn();
    let text = "tool 'a' failed: tool 'b' failed: tool 'a' was not run: it would call itself (a -> b -> a)";
    assert_eq!(turn.ask("a").await, said(ToolStatus::Failed, text));
    let told = [
        "call-1 a",
        "call-1/1 b",
        "call-1/1/1 a",
        "call-1/1/1 denied",
        "call-1/1 failed",
        "call-1 failed",
    ];
    assert_eq!(story(&turn.log), told);
}

#[tokio::test]
async fn calls_are_so_deep_and_no_deeper_and_never_wait_for_a_place_that_is_held_above() {
    let turn = chain(&["a", "b", "c", "d", "e"])
        .tool("e", guests::echo().build())
        .turn();
    assert_eq!(turn.ask("b").await, said(ToolStatus::Passed, "{}"));
    let (status, text) = turn.ask("a").await;
    assert_eq!(status, ToolStatus::Failed);
    let end = "tool 'e' was not run: calls may be 4 deep (a -> b -> c -> d -> e; `limits.registry_depth`)";
    assert!(text.ends_with(end), "{text}");
}

#[tokio::test]
async fn many_calls_that_call_all_come_through() {
    let mut capsule = chain(&["a", "b", "c"]).tool("c", guests::echo().build());
    capsule.grants.limits.concurrent_calls = 4;
    let turn = capsule.turn();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..64 {
        calls.spawn(turn.call("a", json!({})));
    }
    assert_eq!(calls.join_all().await, vec![ToolReply::text("{}"); 64]);
}

#[tokio::test]
async fn a_nested_call_ends_with_the_one_around_it() {
    let capsule = chain(&["outer", "sleep"]).tool("sleep", guests::sleep().build());
    let turn = capsule.turn();
    let call = tokio::spawn(turn.call("outer", json!({})));
    capsule.clock.sleepers(2).await;
    turn.cancel.cancel(CancelReason::Caller);
    assert_eq!(call.await.unwrap().status, ToolStatus::Cancelled);
    let told = [
        "call-1 outer",
        "call-1/1 sleep",
        "call-1/1 cancelled",
        "call-1 cancelled",
    ];
    let mut sorted = story(&turn.log);
    sorted[2..].sort();
    assert_eq!(sorted, [told[0], told[1], told[3], told[2]]);
    // Dropped, and at the deadline of the outer one.
    for end in ["drop", "deadline"] {
        let turn = capsule.turn();
        let call = tokio::spawn(turn.call("outer", json!({})));
        capsule.clock.sleepers(2).await;
        if end == "drop" {
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled());
            assert_eq!(story(&turn.log), told);
        } else {
            capsule.clock.advance(Duration::from_secs(60));
            assert_eq!(call.await.unwrap().status, ToolStatus::TimedOut);
        }
        assert_eq!(turn.log.ends().0, turn.log.ends().1.len());
    }
}

#[tokio::test]
async fn a_question_of_a_nested_call_stops_every_deadline_around_it() {
    let capsule = chain(&["outer", "asks"]).tool("asks", guests::asks().build_with_data("Which?"));
    let caller = SlowCaller::new();
    let turn = capsule.turn_with(caller.clone());
    let call = tokio::spawn(turn.call("outer", json!({})));
    assert_eq!(caller.asked(1).await, ["Which?"]);
    capsule.clock.advance(24 * capsule.grants.limits.deadline);
    caller.answer(Ok(json!("this one")));
    assert_eq!(call.await.unwrap(), ToolReply::text("this one"));
}

#[tokio::test]
async fn an_exclusive_tool_is_called_by_an_exclusive_one_alone() {
    let mut capsule = chain(&["outer", "alone"]).tool("alone", guests::echo().build());
    let exclusive = Some(Annotations {
        exclusive: true,
        ..Annotations::default()
    });
    capsule.sources[1].annotations = exclusive;
    let text = "tool 'outer' failed: tool 'alone' was not run: it runs alone, and the tool that calls it does not: \
        declare that one exclusive too";
    assert_eq!(capsule.turn().ask("outer").await, said(ToolStatus::Failed, text));
    capsule.sources[0].annotations = exclusive;
    assert_eq!(capsule.turn().ask("outer").await, said(ToolStatus::Passed, "{}"));
}

#[tokio::test]
async fn t_08_a_denial_inside_a_nested_call_is_recorded_and_told() {
    let capsule = chain(&["outer", "requests"]).tool("requests", guests::requests().build_with_data("example.com"));
    let turn = capsule.turn();
    let (status, text) = turn.ask("outer").await;
    assert_eq!(status, ToolStatus::Failed);
    assert!(
        text.contains("an HTTP request to https://example.com was denied: no grant covers it"),
        "{text}"
    );
    let told = ["call-1 outer", "call-1/1 requests", "call-1/1 denied", "call-1 failed"];
    assert_eq!(story(&turn.log), told);
}
