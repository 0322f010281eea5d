//! A CLI that misbehaves, played by the stand-ins.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use capsule_api::{CallId, ConversationSpec, ErrorKind, Event, Input, Limit, Outcome, ToolStatus};
use capsule_transport_kit::Entry;
use serde_json::{Value, json};

use crate::{
    cli::{CLAUDE, CODEX, Cli, of_each_cli},
    own_tools::OwnTools,
    patience::{ask_with, ends},
    support::{Scene, Told, Under, no_tools},
    watch::processes,
};

of_each_cli!(
    a_run_in_order_is_completed,
    p_03_neither_an_exit_with_0_nor_a_missing_end_is_a_success,
    a_crash_shows_the_end_of_stderr,
    p_04_a_silent_cli_is_ended_by_the_idle_limit,
    p_04_a_cli_that_is_silent_while_its_tool_works_is_not_ended,
    a_turn_has_a_wall_clock_where_it_is_set,
    p_05_a_cli_that_stays_after_its_result_is_ended_and_its_answer_counts,
    p_10_the_input_is_closed_once_the_answer_is_there,
    p_11_a_child_that_the_cli_leaves_is_killed_and_told,
    p_11_a_cli_that_ignores_every_signal_is_gone_after_a_cancel,
    p_16_odd_output_is_read_past,
    p_18_a_cli_that_is_too_old_is_refused_naming_both_versions,
    p_09_the_token_is_there_and_a_cli_that_lost_it_gets_no_answer_through,
    m_01_a_cli_that_never_gets_the_tools_gets_no_answer_through,
    a_call_that_the_cli_does_not_tell_of_is_recorded_and_a_warning,
    a_probe_names_path_version_and_login,
);

pub(crate) fn without_tools(scene: &Scene) -> ConversationSpec {
    ConversationSpec {
        catalogue: no_tools(),
        ..scene.spec()
    }
}

/// One turn of the stand-in; no process of it may be left.
async fn ask(cli: &Cli, prompt: &str, settings: Value) -> Told {
    let scene = cli.faked(settings).await;
    let told = scene.ask_as(without_tools(&scene), prompt).await;
    assert_eq!(processes(&scene), Vec::<u32>::new());
    told
}

async fn a_run_in_order_is_completed(cli: &Cli) {
    let told = ask(cli, "answer", json!({})).await;
    assert_eq!((told.answer(), told.warnings()), ("Fine.", vec![]));
}

async fn p_03_neither_an_exit_with_0_nor_a_missing_end_is_a_success(cli: &Cli) {
    let told = ask(cli, "no end", json!({})).await;
    let error = told.error();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            cli.code("no-result").as_str(),
            "the CLI ended without a terminal event (exit status 0)"
        )
    );
    let stderr = error.context.iter().find(|(name, _)| *name == "stderr");
    assert_eq!(stderr.map(|(_, text)| text.as_str()), Some("the last words"));
    let failed = ask(cli, "failed", json!({})).await;
    assert_eq!(failed.error().code, cli.code("quota"));
}

async fn a_crash_shows_the_end_of_stderr(cli: &Cli) {
    let told = ask(cli, "crash", json!({})).await;
    let error = told.error();
    let stderr = &error.context.iter().find(|(name, _)| *name == "stderr").unwrap().1;
    assert_eq!(error.code, cli.code("no-result"));
    assert!(
        stderr.ends_with("line 3999 of what went wrong") && stderr.len() <= 16 * 1024,
        "{} bytes",
        stderr.len()
    );
    assert!(error.message.contains("exit status 3"), "{}", error.message);
}

async fn p_04_a_silent_cli_is_ended_by_the_idle_limit(cli: &Cli) {
    let told = ask(cli, "silence", json!({"idle_timeout": "300ms"})).await;
    assert_eq!(
        told.outcome.as_ref().unwrap(),
        &Outcome::LimitReached { which: Limit::Idle }
    );
    assert_eq!(told.warnings(), [cli.code("limit")]);
}

async fn p_04_a_cli_that_is_silent_while_its_tool_works_is_not_ended(cli: &Cli) {
    let scene = cli.faked(json!({"idle_timeout": "300ms"})).await;
    let spec = ConversationSpec {
        catalogue: OwnTools::offered(Duration::from_secs(60), 1 << 20),
        ..scene.spec()
    };
    let told = ask_with(&scene, spec, "work in silence").await;
    assert_eq!((told.answer(), told.warnings()), ("Fine.", vec![]));
    assert_eq!(ends(&told.log), [(CallId::new("call-1"), ToolStatus::Passed)]);
}

async fn a_turn_has_a_wall_clock_where_it_is_set(cli: &Cli) {
    let told = ask(cli, "silence", json!({"wall_clock": "300ms"})).await;
    assert_eq!(
        told.outcome.as_ref().unwrap(),
        &Outcome::LimitReached { which: Limit::Wall }
    );
}

async fn p_05_a_cli_that_stays_after_its_result_is_ended_and_its_answer_counts(cli: &Cli) {
    assert_eq!(ask(cli, "stay", json!({})).await.answer(), "Fine.");
}

async fn p_10_the_input_is_closed_once_the_answer_is_there(cli: &Cli) {
    let scene = cli.faked(json!({})).await;
    let state = scene.dir.path().join("state");
    let spec = ConversationSpec {
        catalogue: no_tools(),
        ..scene.kept(None)
    };
    // It reads its input to the end before it exits, and then leaves a file: had it been killed, there would be none.
    assert_eq!(scene.ask_as(spec, "read to the end").await.answer(), "Fine.");
    let left = std::fs::read_to_string(state.join(cli.name).join("input-ended"));
    assert_eq!(left.unwrap(), "yes");
}

async fn p_11_a_child_that_the_cli_leaves_is_killed_and_told(cli: &Cli) {
    let told = ask(cli, "leave a child", json!({})).await;
    assert_eq!(
        (told.answer(), told.warnings()),
        ("Fine.", vec![cli.code("leftovers").as_str()])
    );
}

async fn p_11_a_cli_that_ignores_every_signal_is_gone_after_a_cancel(cli: &Cli) {
    let scene = cli.faked(json!({})).await;
    let mut talk = scene.open(without_tools(&scene)).await;
    let (under, io) = Under::new();
    let stop = async {
        let delta = |entry: &Entry| matches!(entry, Entry::Model(Event::Delta { .. }));
        under.log.wait_for(delta).await;
        under.cancel();
    };
    let (outcome, ()) = tokio::join!(talk.0.turn(Input::text("ignore signals"), io), stop);
    assert_eq!(outcome.unwrap(), Outcome::Cancelled);
    assert_eq!(processes(&scene), Vec::<u32>::new());
    talk.close().await;
}

async fn p_16_odd_output_is_read_past(cli: &Cli) {
    let told = ask(cli, "odd output", json!({})).await;
    assert_eq!((told.answer(), told.warnings()), ("Fine.", vec![]));
    let notes: Vec<_> = told
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Note { code, data } => Some((code.to_owned(), data)),
            _ => None,
        })
        .collect();
    assert_eq!(
        notes,
        [
            (cli.code("junk"), json!({"first": "Welcome! This is no event."})),
            (cli.code("unknown-events"), json!({"padding": 1})),
        ]
    );
}

async fn p_18_a_cli_that_is_too_old_is_refused_naming_both_versions(cli: &Cli) {
    let dir = tempfile::tempdir().unwrap();
    let old = named(cli, dir.path(), "cli-old");
    let error = cli.faked_as(&old, json!({})).await.probe().await.usable.unwrap_err();
    let version = if cli.name == CLAUDE.name { "2.1.197" } else { "0.90.0" };
    let message = format!(
        "{} is version {version}; the oldest that is run is {}",
        old.display(),
        cli.version
    );
    assert_eq!(
        (error.code, error.message.as_str()),
        (cli.code("too-old").as_str(), message.as_str())
    );
}

/// The stand-in under another name gets no answer through, and it is known why.
async fn gets_nothing_through(cli: &Cli, name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let scene = cli.faked_as(&named(cli, dir.path(), name), json!({})).await;
    let told = scene.ask("answer").await;
    assert_eq!(
        (told.error().code, told.error().kind),
        (cli.code("tools").as_str(), ErrorKind::ToolsUnavailable)
    );
    assert_eq!(told.log.fold().texts(), Vec::<&str>::new());
    assert_eq!(processes(&scene), Vec::<u32>::new());
}

async fn p_09_the_token_is_there_and_a_cli_that_lost_it_gets_no_answer_through(cli: &Cli) {
    let told = cli.faked(json!({})).await.ask("answer").await;
    assert_eq!((told.answer(), told.warnings()), ("Fine.", vec![]));
    gets_nothing_through(cli, "cli-no-token").await;
}

async fn m_01_a_cli_that_never_gets_the_tools_gets_no_answer_through(cli: &Cli) {
    gets_nothing_through(cli, "cli-no-tools").await;
}

async fn a_call_that_the_cli_does_not_tell_of_is_recorded_and_a_warning(cli: &Cli) {
    let scene = cli.faked(json!({})).await;
    let told = scene.ask("call in secret").await;
    assert_eq!(
        (told.answer(), told.warnings()),
        ("Fine.", vec![cli.code("call-untold").as_str()])
    );
    assert_eq!(ends(&told.log), [(CallId::new("secret-1"), ToolStatus::Passed)]);
}

async fn a_probe_names_path_version_and_login(cli: &Cli) {
    let probe = cli.faked(json!({})).await.probe().await;
    assert!(probe.usable.is_ok());
    let path = Path::new(cli.fake).canonicalize().unwrap().display().to_string();
    let facts = [
        ("program", path.as_str()),
        ("version", cli.version),
        ("tested", "yes"),
        ("login", "api_key, from the settings"),
    ];
    assert_eq!(
        probe.facts,
        facts.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

/// The stand-in under another name, which chooses what it lacks.
pub(crate) fn named(cli: &Cli, dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::copy(cli.fake, &path).unwrap();
    path.canonicalize().unwrap()
}

#[tokio::test]
async fn p_04_codex_that_asks_and_does_not_listen_is_ended_by_the_idle_limit() {
    let told = ask(&CODEX, "ask and not listen", json!({"idle_timeout": "300ms"})).await;
    let which = Limit::Idle;
    assert_eq!(told.outcome.as_ref().unwrap(), &Outcome::LimitReached { which });
}

#[tokio::test]
async fn p_19_codex_a_remark_is_told_and_the_run_goes_on() {
    let told = ask(&CODEX, "remark", json!({})).await;
    assert_eq!(told.answer(), "Fine.");
    let notes = told
        .log
        .events()
        .into_iter()
        .filter(|event| matches!(event, Event::Note { .. }));
    let shown = format!("{:?}", notes.collect::<Vec<_>>());
    assert!(
        shown.contains("codex-remark") && shown.contains("nothing to worry about"),
        "{shown}"
    );
}

#[tokio::test]
async fn p_19_codex_that_works_by_itself_is_ended() {
    let told = ask(&CODEX, "own work", json!({})).await;
    assert_eq!(told.error().code, "codex-tools");
    assert!(
        told.error().message.contains("commandExecution"),
        "{}",
        told.error().message
    );
}

#[tokio::test]
async fn p_19_codex_that_ignores_a_part_of_its_configuration_is_ended() {
    let told = ask(&CODEX, "ignored key", json!({})).await;
    assert_eq!(told.error().code, "codex-config");
    assert!(
        told.error().message.contains("approval_policy"),
        "{}",
        told.error().message
    );
}

#[tokio::test]
async fn p_18_codex_that_cannot_be_contained_is_refused_naming_version_and_switch() {
    for (name, code, what) in [
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
        let path = named(&CODEX, dir.path(), name);
        let error = CODEX.faked_as(&path, json!({})).await.probe().await.usable.unwrap_err();
        let message = format!("{} {what}", path.display());
        assert_eq!((error.code, error.message.as_str()), (code, message.as_str()));
    }
}

#[tokio::test]
async fn p_18_codex_that_refuses_a_switch_when_it_starts_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = named(&CODEX, dir.path(), "codex-strict");
    let scene = CODEX.faked_as(&path, json!({})).await;
    let told = scene.ask_as(without_tools(&scene), "answer").await;
    let message = "codex 0.171.0: Error: Unknown feature flag: unified_exec";
    assert_eq!(
        (told.error().code, told.error().message.as_str()),
        ("codex-config", message)
    );
}
