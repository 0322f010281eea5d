//! Tool calls of codex over the bridge.

use std::sync::Arc;

use capsule_api::{CallId, ConversationSpec, Event, FoldedCall, Limit, Outcome, RunEvent, ToolSpec, ToolStatus};
use capsule_fakes::{Reply, Script};
use capsule_transport_kit::{Entry, TestTools};
use serde_json::{Value, json};

use crate::support::{Scene, codex, no_tools};

pub(crate) async fn scene(cli: &std::path::Path, script: Script) -> Scene {
    Scene::of("codex", cli, script, json!({})).await
}

pub(crate) fn warnings(events: &[Event]) -> Vec<(&'static str, &str)> {
    let warnings = events.iter().filter_map(|event| match event {
        Event::Warning { code, message } => Some((*code, message.as_str())),
        _ => None,
    });
    warnings.collect()
}

#[tokio::test]
async fn codex_a_tool_call_makes_the_round_trip_under_one_id() {
    let Some(cli) = codex() else { return };
    let script = Script::new()
        .then(Reply::text("Let me see.").call("call-1", "echo", json!({"text": "hello"})))
        .then(Reply::text("It said hello."));
    let scene = scene(&cli, script).await;

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
    assert_eq!(warnings(&told.log.events()), []);
    scene.provider.assert_clean();
}

#[tokio::test]
async fn codex_a_tool_that_fails_is_told_to_the_model_and_the_run_goes_on() {
    let Some(cli) = codex() else { return };
    let script = Script::new()
        .then(
            Reply::new()
                .call("call-1", "fail", json!({}))
                .call("call-2", "denied", json!({})),
        )
        .then(Reply::text("Both failed."));
    let scene = scene(&cli, script).await;

    let told = scene.ask("Try.").await;

    assert_eq!(told.answer(), "Both failed.");
    let fold = told.log.fold();
    let results = fold.calls().into_iter().map(|call| call.result.clone().unwrap().0);
    assert_eq!(results.collect::<Vec<_>>(), [ToolStatus::Failed, ToolStatus::Denied]);
    let second = scene.request(1)["input"].to_string();
    assert!(
        second.contains("kit-fail always fails") && second.contains("kit-denied lacks a grant"),
        "{second}"
    );
}

#[tokio::test]
async fn m_12_codex_calls_of_one_request_run_at_once() {
    let Some(cli) = codex() else { return };
    let script = Script::new()
        .then(
            Reply::new()
                .call("call-1", "meet", json!({}))
                .call("call-2", "meet", json!({})),
        )
        .then(Reply::text("They met."));
    let scene = scene(&cli, script).await;
    assert_eq!(scene.ask("Meet.").await.answer(), "They met.");
}

/// Names of the tools on offer: those of a group with its name.
fn offered(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let names = tools.iter().flat_map(|tool| {
        let name = tool["name"].as_str().unwrap().to_owned();
        match tool["tools"].as_array() {
            None => vec![name],
            Some(inside) => inside
                .iter()
                .map(|tool| format!("{name}__{}", tool["name"].as_str().unwrap()))
                .collect(),
        }
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn codex_only_the_capsules_tools_are_offered_and_none_where_there_are_none() {
    let Some(cli) = codex() else { return };
    let scene = scene(&cli, Script::new().then(Reply::text("Hello.")).forever()).await;

    assert_eq!(scene.ask("Hi.").await.answer(), "Hello.");
    let spec = ConversationSpec {
        catalogue: no_tools(),
        ..scene.spec()
    };
    assert_eq!(scene.ask_as(spec, "Hi.").await.answer(), "Hello.");

    // What the CLI keeps for itself reads resources of our own server, or asks a person who is not there.
    let kit = ["denied", "echo", "fail", "meet", "sleep"].map(|alias| format!("mcp__capsule__{alias}"));
    let own = [
        "list_mcp_resource_templates",
        "list_mcp_resources",
        "read_mcp_resource",
        "request_user_input",
    ];
    let mut wanted: Vec<_> = own.iter().map(|name| (*name).to_owned()).chain(kit).collect();
    wanted.sort();
    assert_eq!(offered(&scene.request(0)), wanted);
    assert_eq!(offered(&scene.request(1)), ["request_user_input"]);
}

#[tokio::test]
async fn m_02_codex_a_call_of_a_tool_that_is_not_there_is_recorded_as_missed() {
    let Some(cli) = codex() else { return };
    let script = Script::new()
        .then(Reply::new().call_raw_name("call-1", "shell", json!({"command": ["id"]})))
        .then(Reply::text("There is no such tool."));
    let scene = scene(&cli, script).await;

    let told = scene.ask("Run id.").await;

    assert_eq!(told.answer(), "There is no such tool.");
    let missed = told
        .log
        .entries()
        .into_iter()
        .any(|entry| matches!(entry, Entry::Run(RunEvent::Missed { call, .. }) if call == CallId::new("call-1")));
    assert!(missed, "{:#?}", told.log.entries());
    let codes: Vec<_> = warnings(&told.log.events()).iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, ["codex-call-missed"]);
}

#[tokio::test]
async fn codex_the_limit_on_model_requests_is_exact_and_its_last_calls_run() {
    let Some(cli) = codex() else { return };
    let script = Script::new()
        .then(Reply::new().call("call-1", "echo", json!({"text": "a"})))
        .then(
            Reply::new()
                .call("call-2", "echo", json!({"text": "b"}))
                .call("call-3", "fail", json!({})),
        );
    let scene = scene(&cli, script).await;
    let mut spec = scene.spec();
    spec.limits.requests = 2;

    let told = scene.ask_as(spec, "Go on and on.").await;

    let limit = Outcome::LimitReached { which: Limit::Requests };
    assert_eq!(told.outcome.as_ref().unwrap(), &limit);
    assert_eq!(scene.provider.requests().len(), 2);
    let fold = told.log.fold();
    let results = fold.calls().into_iter().map(|call| call.result.clone().unwrap().0);
    assert_eq!(
        results.collect::<Vec<_>>(),
        [ToolStatus::Passed, ToolStatus::Passed, ToolStatus::Failed]
    );
}

#[tokio::test]
async fn codex_a_large_result_reaches_the_model_whole() {
    let Some(cli) = codex() else { return };
    let large = "0123456789".repeat(40_000);
    let script = Script::new()
        .then(Reply::new().call("call-1", "echo", json!({"text": large})))
        .then(Reply::text("Read."));
    let scene = scene(&cli, script).await;
    assert_eq!(scene.ask("Read it.").await.answer(), "Read.");
    let results = scene.request(1)["input"].as_array().unwrap().clone();
    let result = results
        .iter()
        .find(|item| item["type"] == "function_call_output")
        .unwrap();
    assert!(result["output"].to_string().contains(&large), "it was cut");
}

#[tokio::test]
async fn codex_a_hundred_tools_are_offered_and_called_by_their_names() {
    let Some(cli) = codex() else { return };
    let mut catalogue = (*TestTools::offered()).clone();
    let template = catalogue.tools[0].clone();
    catalogue.tools.extend((0..95).map(|n| ToolSpec {
        name: format!("tool number {n}"),
        alias: format!("tool-{n}-with-dashes"),
        ..template.clone()
    }));
    let script = Script::new()
        .then(Reply::new().call("call-1", "tool-94-with-dashes", json!({"text": "hello"})))
        .then(Reply::text("Done."));
    let scene = scene(&cli, script).await;
    let spec = ConversationSpec {
        catalogue: Arc::new(catalogue),
        ..scene.spec()
    };

    let told = scene.ask_as(spec, "Use the last.").await;

    assert_eq!(told.answer(), "Done.");
    let names = offered(&scene.request(0));
    let ours = names.iter().filter(|name| name.starts_with("mcp__capsule__"));
    assert_eq!(ours.count(), 100);
    assert!(
        names.contains(&"mcp__capsule__tool_94_with_dashes".to_owned()),
        "{names:?}"
    );
    let fold = told.log.fold();
    assert_eq!(fold.calls()[0].name, "tool number 94");
}

#[tokio::test]
async fn codex_in_code_mode_scripts_call_the_tools() {
    let Some(cli) = codex() else { return };
    let script = r#"text((await tools.mcp__capsule__echo({"text": "from a script"})).content[0].text);"#;
    let exec = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "call-1", "name": "exec", "input": script});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": exec});
    let run = Reply::new().event("response.output_item.done", &done);
    let script = Script::new().then(run).then(Reply::text("It ran."));
    let scene = Scene::of("codex", &cli, script, json!({"code_mode": true})).await;

    let told = scene.ask("Use a script.").await;

    assert_eq!(told.answer(), "It ran.");
    let call = FoldedCall {
        name: "kit-echo".into(),
        arguments: json!({"text": "from a script"}),
        result: Some((ToolStatus::Passed, "from a script".into())),
    };
    assert_eq!(told.log.fold().calls(), [&call]);
    assert_eq!(warnings(&told.log.events()), []);
    scene.provider.assert_clean();
}
