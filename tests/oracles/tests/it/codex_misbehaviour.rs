//! A codex that misbehaves, played by `fake-codex`.

use std::path::{Path, PathBuf};

use capsule_api::{ConversationSpec, Event, Input, Limit, Outcome};
use capsule_fakes::Script;
use capsule_transport_kit::Entry;
use serde_json::{Value, json};

use crate::{
    cancel::processes,
    support::{Scene, Told, Under, no_tools},
};

const FAKE: &str = env!("CARGO_BIN_EXE_fake-codex");

async fn scene(settings: Value) -> Scene {
    Scene::of("codex", Path::new(FAKE), Script::new(), settings).await
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

/// The fake under another name, which chooses what it lacks.
fn named(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::copy(FAKE, &path).unwrap();
    path.canonicalize().unwrap()
}

#[tokio::test]
async fn codex_a_run_in_order_is_completed() {
    let told = ask("answer").await;
    assert_eq!((told.answer(), warnings(&told)), ("Fine.", vec![]));
}

#[tokio::test]
async fn p_03_codex_neither_an_exit_with_0_nor_a_missing_end_is_a_success() {
    let told = ask("no end").await;
    assert_eq!(
        (told.error().code, told.error().message.as_str()),
        (
            "codex-no-result",
            "the CLI ended without a terminal event (exit status 0)"
        )
    );
    assert_eq!(ask("failed").await.error().code, "codex-quota");
}

#[tokio::test]
async fn p_05_codex_that_stays_after_its_turn_is_ended_and_its_answer_counts() {
    assert_eq!(ask("stay").await.answer(), "Fine.");
}

#[tokio::test]
async fn p_16_codex_odd_output_is_read_past() {
    let told = ask("odd output").await;
    assert_eq!(told.answer(), "Fine.");
    let events = told.log.events();
    let notes = events.into_iter().filter(|event| matches!(event, Event::Note { .. }));
    let note = |code, data| Event::Note { code, data };
    assert_eq!(
        notes.collect::<Vec<_>>(),
        [
            note("codex-junk", json!({"first": "Welcome! This is no message."})),
            note("codex-unknown-events", json!({"padding": 1})),
        ]
    );
}

#[tokio::test]
async fn p_19_codex_that_works_by_itself_is_ended() {
    let told = ask("own work").await;
    assert_eq!(told.error().code, "codex-tools");
    assert!(
        told.error().message.contains("commandExecution"),
        "{}",
        told.error().message
    );
}

#[tokio::test]
async fn p_11_codex_a_child_that_the_cli_leaves_is_killed_and_told() {
    let told = ask("leave a child").await;
    assert_eq!((told.answer(), warnings(&told)), ("Fine.", vec!["codex-leftovers"]));
}

#[tokio::test]
async fn p_11_codex_that_ignores_every_signal_is_gone_after_a_cancel() {
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
async fn p_04_codex_that_is_silent_is_ended_by_the_idle_limit() {
    let scene = scene(json!({"idle_timeout": "300ms"})).await;
    let told = scene.ask_as(spec(&scene), "silence").await;
    assert_eq!(
        told.outcome.as_ref().unwrap(),
        &Outcome::LimitReached { which: Limit::Idle }
    );
    assert_eq!(warnings(&told), ["codex-limit"]);
    assert_eq!(processes(&scene), Vec::<String>::new());
}

#[tokio::test]
async fn m_01_codex_that_never_asks_for_the_tools_gets_no_turn() {
    let scene = scene(json!({})).await;
    let told = scene.ask("answer").await;
    assert_eq!(told.error().code, "codex-tools");
    assert_eq!(told.log.events(), [], "nothing was asked or told");
}

#[tokio::test]
async fn p_18_codex_that_cannot_be_contained_is_refused_naming_version_and_switch() {
    for (name, code, what) in [
        (
            "codex-old",
            "codex-too-old",
            "is version 0.90.0; the oldest that is run is 0.171.0",
        ),
        (
            "codex-no-shell-switch",
            "codex-containment",
            "is version 0.171.0; it does not know the feature `shell_tool`",
        ),
        (
            "codex-no-server",
            "codex-no-app-server",
            "is version 0.171.0; it has no app-server",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let cli = named(dir.path(), name);
        let scene = Scene::of("codex", &cli, Script::new(), json!({})).await;
        let error = scene.probe().await.usable.unwrap_err();
        let message = format!("{} {what}", cli.display());
        assert_eq!((error.code, error.message.as_str()), (code, message.as_str()));
    }
}

#[tokio::test]
async fn p_18_codex_that_refuses_a_switch_when_it_starts_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let scene = Scene::of("codex", &named(dir.path(), "codex-strict"), Script::new(), json!({})).await;
    let told = scene.ask_as(spec(&scene), "answer").await;
    let message = "codex 0.171.0: Error: Unknown feature flag: unified_exec";
    assert_eq!(
        (told.error().code, told.error().message.as_str()),
        ("codex-config", message)
    );
}

#[tokio::test]
async fn codex_a_probe_names_path_version_and_login() {
    let scene = scene(json!({})).await;
    let probe = scene.probe().await;
    assert!(probe.usable.is_ok());
    let path = Path::new(FAKE).canonicalize().unwrap().display().to_string();
    let facts = [("path", path.as_str()), ("version", "0.171.0"), ("login", "api_key")];
    assert_eq!(
        probe.facts,
        facts.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}
