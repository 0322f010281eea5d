//! A CLI that misbehaves, played by `fake-cli`.

use std::path::Path;

use capsule_api::{ConversationSpec, Event, Input, Limit, Outcome};
use capsule_fakes::Script;
use capsule_transport_kit::Entry;
use serde_json::json;

use crate::{
    cancel::processes,
    support::{Scene, Told, Under, no_tools},
};

async fn scene(settings: serde_json::Value) -> Scene {
    Scene::set(Path::new(env!("CARGO_BIN_EXE_fake-cli")), Script::new(), settings).await
}

fn spec(scene: &Scene) -> ConversationSpec {
    ConversationSpec {
        catalogue: no_tools(),
        ..scene.spec()
    }
}

/// One turn of the fake; no process of it may be left.
async fn ask(prompt: &str) -> Told {
    let scene = scene(json!({})).await;
    let told = scene.ask_as(spec(&scene), prompt).await;
    assert_eq!(processes(&scene), Vec::<String>::new());
    told
}

fn warnings(told: &Told) -> Vec<&'static str> {
    let events = told.log.events().into_iter();
    let codes = events.filter_map(|event| match event {
        Event::Warning { code, .. } => Some(code),
        _ => None,
    });
    codes.collect()
}

#[tokio::test]
async fn a_run_in_order_is_completed() {
    let told = ask("answer").await;
    assert_eq!((told.answer(), warnings(&told)), ("Fine.", vec![]));
}

#[tokio::test]
async fn p_03_an_exit_with_0_and_without_a_result_is_a_crash() {
    let told = ask("no result").await;
    let error = told.error();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            "claude-no-result",
            "the CLI ended without a terminal event (exit status 0)"
        )
    );
}

#[tokio::test]
async fn a_crash_shows_the_end_of_stderr() {
    let told = ask("crash").await;
    let error = told.error();
    let stderr = &error.context.iter().find(|(name, _)| *name == "stderr").unwrap().1;
    assert_eq!(error.code, "claude-no-result");
    assert!(
        stderr.ends_with("line 3999 of what went wrong") && stderr.len() <= 16 * 1024,
        "{} bytes",
        stderr.len()
    );
    assert!(error.context.contains(&("exit", "3".into())));
}

#[tokio::test]
async fn p_05_a_cli_that_stays_after_its_result_is_ended_and_its_answer_counts() {
    assert_eq!(ask("stay").await.answer(), "Fine.");
}

#[tokio::test]
async fn p_16_odd_output_is_read_past() {
    let told = ask("odd output").await;
    assert_eq!(told.answer(), "Fine.");
    let notes: Vec<_> = told
        .log
        .events()
        .into_iter()
        .filter(|event| matches!(event, Event::Note { .. }))
        .collect();
    let note = |code, data| Event::Note { code, data };
    assert_eq!(
        notes,
        [
            note("claude-junk", json!({"first": "Welcome! This is no event."})),
            note("claude-unknown-events", json!({"padding": 1})),
        ]
    );
}

#[tokio::test]
async fn p_11_a_child_that_the_cli_leaves_is_killed_and_told() {
    let told = ask("leave a child").await;
    assert_eq!((told.answer(), warnings(&told)), ("Fine.", vec!["claude-leftovers"]));
}

#[tokio::test]
async fn p_11_a_cli_that_ignores_every_signal_is_gone_after_a_cancel() {
    let scene = scene(json!({})).await;
    let mut talk = scene.open(spec(&scene)).await;
    let (under, io) = Under::new();
    let stop = async {
        under
            .log
            .wait_for(|entry| matches!(entry, Entry::Model(Event::Delta { .. })))
            .await;
        under.cancel();
    };
    let (outcome, ()) = tokio::join!(talk.0.turn(Input::text("ignore signals"), io), stop);
    assert_eq!(outcome.unwrap(), Outcome::Cancelled);
    assert_eq!(processes(&scene), Vec::<String>::new());
    talk.close().await;
}

#[tokio::test]
async fn p_04_a_silent_cli_is_ended_by_the_idle_limit() {
    let scene = scene(json!({"idle_timeout": "300ms"})).await;
    let told = scene.ask_as(spec(&scene), "silence").await;
    assert_eq!(
        told.outcome.as_ref().unwrap(),
        &Outcome::LimitReached { which: Limit::Idle }
    );
    assert_eq!(warnings(&told), ["claude-limit"]);
    assert_eq!(processes(&scene), Vec::<String>::new());
}

#[tokio::test]
async fn a_turn_has_a_wall_clock_where_it_is_set() {
    let scene = scene(json!({"wall_clock": "300ms"})).await;
    let told = scene.ask_as(spec(&scene), "silence").await;
    assert_eq!(
        told.outcome.as_ref().unwrap(),
        &Outcome::LimitReached { which: Limit::Wall }
    );
}

#[tokio::test]
async fn p_18_a_cli_that_is_too_old_is_refused_naming_both_versions() {
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("old-claude");
    std::fs::copy(env!("CARGO_BIN_EXE_fake-cli"), &old).unwrap();
    let scene = Scene::with(&old, Script::new()).await;
    let error = scene.probe().await.usable.unwrap_err();
    let message = format!(
        "{} is version 2.1.197; the oldest that is run is 2.1.332",
        old.canonicalize().unwrap().display()
    );
    assert_eq!(
        (error.code, error.message.as_str()),
        ("claude-too-old", message.as_str())
    );
}

#[tokio::test]
async fn a_probe_names_path_version_and_login() {
    let scene = scene(json!({})).await;
    let probe = scene.probe().await;
    assert!(probe.usable.is_ok());
    let path = Path::new(env!("CARGO_BIN_EXE_fake-cli"))
        .canonicalize()
        .unwrap()
        .display()
        .to_string();
    let facts = [("path", path.as_str()), ("version", "2.1.332"), ("login", "api_key")];
    assert_eq!(
        probe.facts,
        facts.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}
