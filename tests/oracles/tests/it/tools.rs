//! Tool calls over the bridge.

use capsule_api::{CallId, Event, FoldedCall, Outcome, RunEvent, ToolStatus};
use capsule_fakes::{Reply, Script};
use capsule_transport_kit::Entry;
use serde_json::json;

use crate::support::{Scene, claude, no_tools};

#[tokio::test]
async fn a_tool_call_makes_the_round_trip_under_one_id() {
    let Some(cli) = claude() else { return };
    let script = Script::new()
        .then(Reply::text("Let me see.").call("call-1", "echo", json!({"text": "hello"})))
        .then(Reply::text("It said hello."));
    let scene = Scene::with(&cli, script).await;

    let told = scene.ask("Greet me.").await;

    assert_eq!(told.answer(), "It said hello.");
    let fold = told.log.fold();
    assert_eq!(fold.texts(), ["Let me see.", "It said hello."]);
    let call = FoldedCall {
        name: "kit-echo".into(),
        arguments: json!({"text": "hello"}),
        result: Some((ToolStatus::Passed, "hello".into())),
    };
    assert_eq!(fold.calls(), [&call]);
    let ran = told.log.entries().into_iter().find_map(|entry| match entry {
        Entry::Run(RunEvent::Started { call, .. }) => Some(call),
        _ => None,
    });
    let said = told.log.events().into_iter().find_map(|event| match event {
        Event::Call { call, .. } => Some(call),
        _ => None,
    });
    assert_eq!((ran, said), (Some(CallId::new("call-1")), Some(CallId::new("call-1"))));
    assert_eq!(warnings(&told.log.events()), Vec::<String>::new());
    scene.provider.assert_clean();
}

#[tokio::test]
async fn a_tool_that_fails_is_told_to_the_model_and_the_run_goes_on() {
    let Some(cli) = claude() else { return };
    let script = Script::new()
        .then(
            Reply::new()
                .call("call-1", "fail", json!({}))
                .call("call-2", "denied", json!({})),
        )
        .then(Reply::text("Both failed."));
    let scene = Scene::with(&cli, script).await;

    let told = scene.ask("Try.").await;

    assert_eq!(told.answer(), "Both failed.");
    let fold = told.log.fold();
    let results: Vec<_> = fold
        .calls()
        .into_iter()
        .map(|call| call.result.clone().unwrap().0)
        .collect();
    assert_eq!(results, [ToolStatus::Failed, ToolStatus::Denied]);
    let second = scene.request(1)["messages"].to_string();
    assert!(
        second.contains("kit-fail always fails") && second.contains("kit-denied lacks a grant"),
        "{second}"
    );
}

#[tokio::test]
async fn calls_of_one_request_run_at_once() {
    let Some(cli) = claude() else { return };
    let script = Script::new()
        .then(
            Reply::new()
                .call("call-1", "meet", json!({}))
                .call("call-2", "meet", json!({})),
        )
        .then(Reply::text("They met."));
    let scene = Scene::with(&cli, script).await;
    assert_eq!(scene.ask("Meet.").await.answer(), "They met.");
}

#[tokio::test]
async fn only_the_capsules_tools_are_offered_and_none_where_there_are_none() {
    let Some(cli) = claude() else { return };
    let script = Script::new().then(Reply::text("Hello.")).forever();
    let scene = Scene::with(&cli, script).await;

    assert_eq!(scene.ask("Hi.").await.answer(), "Hello.");
    let spec = capsule_api::ConversationSpec {
        catalogue: no_tools(),
        ..scene.spec()
    };
    assert_eq!(scene.ask_as(spec, "Hi.").await.answer(), "Hello.");

    let offered: Vec<Vec<String>> = scene
        .provider
        .requests()
        .iter()
        .map(|request| {
            let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned())
                .collect()
        })
        .collect();
    let kit = ["echo", "fail", "denied", "sleep", "meet"].map(|alias| format!("mcp__capsule__{alias}"));
    let mut first = offered[0].clone();
    first.sort();
    let mut wanted = kit.to_vec();
    wanted.sort();
    assert_eq!((first, &offered[1]), (wanted, &Vec::new()));
}

#[tokio::test]
async fn a_call_of_a_tool_that_is_not_there_is_recorded_as_missed() {
    let Some(cli) = claude() else { return };
    let script = Script::new()
        .then(Reply::new().call_raw_name("call-1", "Bash", json!({"command": "id"})))
        .then(Reply::text("There is no such tool."));
    let scene = Scene::with(&cli, script).await;

    let told = scene.ask("Run id.").await;

    assert_eq!(told.answer(), "There is no such tool.");
    let missed = told
        .log
        .entries()
        .into_iter()
        .any(|entry| matches!(entry, Entry::Run(RunEvent::Missed { call, .. }) if call == CallId::new("call-1")));
    assert!(missed, "{:#?}", told.log.entries());
    assert_eq!(warnings(&told.log.events()), ["claude-call-missed"]);
}

#[tokio::test]
async fn the_limit_on_model_requests_is_an_outcome() {
    let Some(cli) = claude() else { return };
    let script = Script::new().then(Reply::new().call("call-1", "echo", json!({"text": "a"})));
    let scene = Scene::with(&cli, script).await;
    let mut spec = scene.spec();
    spec.limits.requests = 1;

    let told = scene.ask_as(spec, "Go on and on.").await;

    let limit = Outcome::LimitReached {
        which: capsule_api::Limit::Requests,
    };
    assert_eq!(told.outcome.as_ref().unwrap(), &limit);
    assert_eq!(scene.provider.requests().len(), 1);
}

fn warnings(events: &[Event]) -> Vec<String> {
    let codes = events.iter().filter_map(|event| match event {
        Event::Warning { code, .. } => Some((*code).to_owned()),
        _ => None,
    });
    codes.collect()
}
