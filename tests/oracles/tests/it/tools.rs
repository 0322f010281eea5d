//! Tool calls over the bridge.

use std::{collections::BTreeSet, sync::Arc};

use capsule_api::{CallId, ConversationSpec, Event, FoldedCall, Limit, Outcome, RunEvent, ToolSpec, ToolStatus};
use capsule_fakes::{Reply, Script};
use capsule_transport_kit::{Entry, TestTools};
use serde_json::json;

use crate::{
    cli::{CLAUDE, CODEX, Cli, of_each_cli},
    support::{Told, no_tools},
};

of_each_cli!(
    a_tool_call_makes_the_round_trip_under_one_id,
    a_tool_that_fails_is_told_to_the_model_and_the_run_goes_on,
    m_12_calls_of_one_request_run_at_once,
    m_12_sixteen_calls_of_one_request_overlap,
    only_the_capsules_tools_are_offered_and_none_where_there_are_none,
    m_02_a_call_of_a_tool_that_is_not_there_is_recorded_as_missed,
    t_01_names_that_the_cli_would_merge_reach_their_own_tools,
    t_08_a_denial_is_told_and_recorded,
    the_limit_on_model_requests_is_exact_and_its_last_calls_run,
    a_hundred_tools_are_offered_and_called_by_their_names,
);

/// How the calls of a turn ended, in the order of the model's.
fn statuses(told: &Told) -> Vec<ToolStatus> {
    let fold = told.log.fold();
    let results = fold.calls().into_iter().map(|call| call.result.clone().unwrap().0);
    results.collect()
}

async fn a_tool_call_makes_the_round_trip_under_one_id(cli: &Cli) {
    let script = Script::new()
        .then(Reply::text("Let me see.").call("call-1", "echo", json!({"text": "hello"})))
        .then(Reply::text("It said hello."));
    let Some(scene) = cli.scene(script).await else { return };

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
    assert_eq!(told.warnings(), Vec::<&str>::new());
    scene.provider.assert_clean();
}

async fn a_tool_that_fails_is_told_to_the_model_and_the_run_goes_on(cli: &Cli) {
    let script = Script::new()
        .then(Reply::new().call("call-1", "fail", json!({})))
        .then(Reply::text("It failed."));
    let Some(scene) = cli.scene(script).await else { return };
    let told = scene.ask("Try.").await;
    assert_eq!(
        (told.answer(), statuses(&told)),
        ("It failed.", vec![ToolStatus::Failed])
    );
    let results = cli.results(&scene.request(1));
    assert!(results[0].1.contains("kit-fail always fails"), "{results:?}");
}

async fn t_08_a_denial_is_told_and_recorded(cli: &Cli) {
    let script = Script::new()
        .then(Reply::new().call("call-1", "denied", json!({})))
        .then(Reply::text("It was denied."));
    let Some(scene) = cli.scene(script).await else { return };
    let told = scene.ask("Try.").await;
    assert_eq!(
        (told.answer(), statuses(&told)),
        ("It was denied.", vec![ToolStatus::Denied])
    );
    let results = cli.results(&scene.request(1));
    assert!(results[0].1.contains("kit-denied lacks a grant"), "{results:?}");
}

async fn m_12_calls_of_one_request_run_at_once(cli: &Cli) {
    let script = Script::new()
        .then(
            Reply::new()
                .call("call-1", "meet", json!({}))
                .call("call-2", "meet", json!({})),
        )
        .then(Reply::text("They met."));
    let Some(scene) = cli.scene(script).await else { return };
    assert_eq!(scene.ask("Meet.").await.answer(), "They met.");
}

async fn m_12_sixteen_calls_of_one_request_overlap(cli: &Cli) {
    let mut reply = Reply::new();
    for n in 0..16 {
        reply = reply.call(&format!("call-{n}"), "sleep", json!({}));
    }
    let Some(scene) = cli.scene(Script::new().then(reply)).await else {
        return;
    };
    let mut talk = scene.open(scene.spec()).await;
    talk.cancelled_in_calls("Sleep.", 16).await;
    talk.close().await;
}

async fn only_the_capsules_tools_are_offered_and_none_where_there_are_none(cli: &Cli) {
    let Some(scene) = cli.scene(Script::new().then(Reply::text("Hello.")).forever()).await else {
        return;
    };
    assert_eq!(scene.ask("Hi.").await.answer(), "Hello.");
    let spec = ConversationSpec {
        catalogue: no_tools(),
        ..scene.spec()
    };
    assert_eq!(scene.ask_as(spec, "Hi.").await.answer(), "Hello.");

    // What codex keeps for itself reads resources of our own server, or asks a person who is not there.
    let kit = ["denied", "echo", "fail", "meet", "sleep"].map(|alias| format!("mcp__capsule__{alias}"));
    let mut wanted = cli.own_tools(true);
    wanted.extend(kit);
    assert_eq!(cli.offered(&scene.request(0)), wanted);
    assert_eq!(cli.offered(&scene.request(1)), cli.own_tools(false));
}

async fn m_02_a_call_of_a_tool_that_is_not_there_is_recorded_as_missed(cli: &Cli) {
    for name in ["Bash", "shell", "mcp__capsule__nothing"] {
        let script = Script::new()
            .then(Reply::new().call_raw_name("call-1", name, json!({"command": ["id"]})))
            .then(Reply::text("There is no such tool."));
        let Some(scene) = cli.scene(script).await else { return };

        let told = scene.ask("Run id.").await;

        assert_eq!(told.answer(), "There is no such tool.");
        let missed =
            told.log.entries().into_iter().any(
                |entry| matches!(entry, Entry::Run(RunEvent::Missed { call, .. }) if call == CallId::new("call-1")),
            );
        assert!(missed, "{name}: {:#?}", told.log.entries());
        assert_eq!(told.warnings(), [cli.code("call-missed")], "{name}");
    }
}

/// The kit's catalogue with copies of its first tool under these names and aliases.
fn with_copies(copies: impl IntoIterator<Item = (String, String)>) -> Arc<capsule_api::Catalogue> {
    let mut catalogue = (*TestTools::offered()).clone();
    let template = catalogue.tools[0].clone();
    catalogue.tools.extend(copies.into_iter().map(|(name, alias)| ToolSpec {
        name,
        alias,
        ..template.clone()
    }));
    Arc::new(catalogue)
}

async fn t_01_names_that_the_cli_would_merge_reach_their_own_tools(cli: &Cli) {
    // As the host gives them out: at most 50 characters, and different also where `-` counts as `_`.
    let longest = "a".repeat(49);
    let tools = [
        ("fs.read/file".to_owned(), "fs_read_file_1f3c".to_owned()),
        ("fs_read_file".to_owned(), "fs_read_file".to_owned()),
        ("a-b".to_owned(), "a-b".to_owned()),
        ("long 1".to_owned(), format!("{longest}1")),
        ("long 2".to_owned(), format!("{longest}2")),
    ];
    let mut reply = Reply::new();
    for (n, (_, alias)) in tools.iter().enumerate() {
        reply = reply.call(&format!("call-{n}"), alias, json!({"text": "hello"}));
    }
    let script = Script::new().then(reply).then(Reply::text("Done."));
    let Some(scene) = cli.scene(script).await else { return };
    let spec = ConversationSpec {
        catalogue: with_copies(tools.clone()),
        ..scene.spec()
    };

    let told = scene.ask_as(spec, "Use all.").await;

    assert_eq!(told.answer(), "Done.");
    let fold = told.log.fold();
    let called: Vec<_> = fold.calls().iter().map(|call| call.name.clone()).collect();
    assert_eq!(called, tools.map(|(name, _)| name));
    let ran: BTreeSet<_> = told
        .log
        .entries()
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Run(RunEvent::Started { name, .. }) => Some(name),
            _ => None,
        })
        .collect();
    assert_eq!(ran, called.into_iter().collect());
}

async fn the_limit_on_model_requests_is_exact_and_its_last_calls_run(cli: &Cli) {
    let script = Script::new()
        .then(Reply::new().call("call-1", "echo", json!({"text": "a"})))
        .then(
            Reply::new()
                .call("call-2", "echo", json!({"text": "b"}))
                .call("call-3", "fail", json!({})),
        );
    let Some(scene) = cli.scene(script).await else { return };
    let mut spec = scene.spec();
    spec.limits.requests = 2;

    let told = scene.ask_as(spec, "Go on and on.").await;

    let limit = Outcome::LimitReached { which: Limit::Requests };
    assert_eq!(told.outcome.as_ref().unwrap(), &limit);
    assert_eq!(scene.provider.requests().len(), 2);
    assert_eq!(
        statuses(&told),
        [ToolStatus::Passed, ToolStatus::Passed, ToolStatus::Failed]
    );
}

/// Codex has no such limit of its own.
#[tokio::test]
async fn what_a_turn_may_cost_is_a_limit_and_no_error() {
    let script = Script::new()
        .then(Reply::new().call("call-1", "echo", json!({"text": "a"})))
        .then(Reply::text("Done."))
        .repeat_last();
    let Some(scene) = CLAUDE.set(script, json!({"max_budget_usd": 0.000001})).await else {
        return;
    };

    let told = scene.ask("Go on.").await;

    let limit = Outcome::LimitReached { which: Limit::Cost };
    assert_eq!(told.outcome.as_ref().unwrap(), &limit);
    assert_eq!(scene.provider.requests().len(), 1);
}

async fn a_hundred_tools_are_offered_and_called_by_their_names(cli: &Cli) {
    let script = Script::new()
        .then(Reply::new().call("call-1", "tool-94-with-dashes", json!({"text": "hello"})))
        .then(Reply::text("Done."));
    let Some(scene) = cli.scene(script).await else { return };
    let copies = (0..95).map(|n| (format!("tool number {n}"), format!("tool-{n}-with-dashes")));
    let spec = ConversationSpec {
        catalogue: with_copies(copies),
        ..scene.spec()
    };

    let told = scene.ask_as(spec, "Use the last.").await;

    assert_eq!(told.answer(), "Done.");
    let offered = cli.offered(&scene.request(0));
    let ours = offered.iter().filter(|name| name.starts_with("mcp__capsule__"));
    assert_eq!(ours.count(), 100);
    assert_eq!(told.log.fold().calls()[0].name, "tool number 94");
    assert_eq!(cli.results(&scene.request(1)).len(), 1);
    assert_eq!(told.warnings(), Vec::<&str>::new());
}

#[tokio::test]
async fn codex_in_code_mode_scripts_call_the_tools() {
    let script = r#"text((await tools.mcp__capsule__echo({"text": "from a script"})).content[0].text);"#;
    let exec = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "call-1", "name": "exec", "input": script});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": exec});
    let run = Reply::new().event("response.output_item.done", &done);
    let script = Script::new().then(run).then(Reply::text("It ran."));
    let Some(scene) = CODEX.set(script, json!({"code_mode": true})).await else {
        return;
    };

    let told = scene.ask("Use a script.").await;

    assert_eq!(told.answer(), "It ran.");
    let call = FoldedCall {
        name: "kit-echo".into(),
        arguments: json!({"text": "from a script"}),
        result: Some((ToolStatus::Passed, "from a script".into())),
    };
    assert_eq!(told.log.fold().calls(), [&call]);
    assert_eq!(told.warnings(), Vec::<&str>::new());
    scene.provider.assert_clean();
}
