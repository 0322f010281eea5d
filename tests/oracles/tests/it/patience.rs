//! How long a tool may take is said by its own limit; the CLI's limits are made to fit.

use std::{path::Path, process::Stdio, sync::Arc, time::Duration};

use capsule_api::{CallId, ConversationSpec, Input, RunEvent, ToolStatus};
use capsule_fakes::{Reply, Script};
use capsule_transport_kit::{Entry, Recorder};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::{
    cli::{CLAUDE, Cli, of_each_cli},
    own_tools::OwnTools,
    support::{Scene, Told, Under},
    watch::{Seen, cli_of},
};

of_each_cli!(
    m_03_a_tool_has_all_of_its_own_time_and_is_then_ended_by_the_host,
    m_03_a_tool_of_ten_minutes_is_not_given_up_by_a_cli_that_else_would,
);

fn working(milliseconds: u64) -> Reply {
    Reply::new().call("call-1", "work", json!({"much": milliseconds}))
}

/// A turn with these tools.
pub(crate) async fn ask_with(scene: &Scene, spec: ConversationSpec, text: &str) -> Told {
    let (under, mut io) = Under::new();
    io.tools = Arc::new(OwnTools::new(spec.catalogue.clone(), under.log.clone()));
    let mut talk = scene.open(spec).await;
    let outcome = talk.0.turn(Input::text(text), io).await;
    under.log.close();
    talk.close().await;
    Told {
        outcome,
        log: under.log,
    }
}

/// The status of each call that ended, in order.
pub(crate) fn ends(log: &Recorder) -> Vec<(CallId, ToolStatus)> {
    let entries = log.entries().into_iter();
    let ends = entries.filter_map(|entry| match entry {
        Entry::Run(RunEvent::Ended { call, reply, .. }) => Some((call, reply.status)),
        _ => None,
    });
    ends.collect()
}

async fn m_03_a_tool_has_all_of_its_own_time_and_is_then_ended_by_the_host(cli: &Cli) {
    for (takes, status, told_of) in [
        (2_500, ToolStatus::Passed, "worked"),
        (3_600_000, ToolStatus::TimedOut, "its time is over"),
    ] {
        let script = Script::new().then(working(takes)).then(Reply::text("I see."));
        let Some(scene) = cli.scene(script).await else { return };
        let spec = ConversationSpec {
            catalogue: OwnTools::offered(Duration::from_secs(3), 1 << 20),
            ..scene.spec()
        };
        let told = ask_with(&scene, spec, "Work.").await;
        assert_eq!((told.answer(), told.warnings()), ("I see.", vec![]));
        assert_eq!(ends(&told.log), [(CallId::new("call-1"), status)]);
        let results = cli.results(&scene.request(1));
        assert!(results[0].1.contains(told_of), "{results:?}");
    }
}

/// What the CLI's own limit is lowered to, in seconds.
const LOWERED: &str = "1";

/// Runs the CLI with the arguments, files and environment of `seen`, its own limit on a call lowered, and with the capsule's or without it.
async fn run_again(cli: &Cli, path: &Path, seen: &Seen, with_ours: bool) {
    let home = tempfile::tempdir().unwrap();
    let mut args: Vec<String> = seen.args.lines().skip(1).map(str::to_owned).collect();
    let mut command = Command::new(path);
    command.env_clear().current_dir(home.path());
    command.envs(seen.environ.lines().filter_map(|line| line.split_once('=')));
    // Not the first run's: the end of that one kills whoever carries its directories.
    command.env("HOME", home.path()).env("TMPDIR", home.path());
    let prompt = if cli.name == CLAUDE.name {
        command.env("CLAUDE_CONFIG_DIR", home.path());
        command.env("MCP_TOOL_TIMEOUT", format!("{LOWERED}000"));
        if !with_ours {
            without_limit(&mut args, home.path());
        }
        let content = json!([{"type": "text", "text": "Work."}]);
        format!(
            "{}\n",
            json!({"type": "user", "message": {"role": "user", "content": content}})
        )
    } else {
        command.env("CODEX_HOME", home.path());
        for_one_prompt(&mut args, with_ours);
        "Work.".to_owned()
    };
    command.args(args).kill_on_drop(true);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(prompt.as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Claude's arguments, with a copy of the MCP file that says no limit.
fn without_limit(args: &mut [String], dir: &Path) {
    let at = args.iter().position(|arg| arg == "--mcp-config").unwrap() + 1;
    let mut config: Value = serde_json::from_slice(&std::fs::read(&args[at]).unwrap()).unwrap();
    let server = config["mcpServers"]["capsule"].as_object_mut().unwrap();
    let ours = server.remove("timeout").unwrap();
    assert!(ours.as_u64().unwrap() >= 600_000, "{ours}");
    let file = dir.join("mcp.json");
    std::fs::write(&file, config.to_string()).unwrap();
    args[at] = file.to_str().unwrap().to_owned();
}

/// Codex's arguments behind another command, for which the prompt is all its input. Its limit is one key, ours or the lowered one.
fn for_one_prompt(args: &mut Vec<String>, with_ours: bool) {
    args.splice(
        0..2,
        ["exec", "--json", "--ephemeral", "--skip-git-repo-check"].map(str::to_owned),
    );
    let limit = args.iter_mut().find(|arg| arg.contains(".tool_timeout_sec=")).unwrap();
    let (key, ours) = limit.split_once('=').unwrap();
    assert!(ours.parse::<u64>().unwrap() >= 600, "{ours}");
    if !with_ours {
        *limit = format!("{key}={LOWERED}");
    }
    args.push("-".to_owned());
}

async fn m_03_a_tool_of_ten_minutes_is_not_given_up_by_a_cli_that_else_would(cli: &Cli) {
    let again = |reply: &str| [working(2_500), Reply::text(reply)];
    let mut script = Script::new().then(working(3_600_000));
    for step in again("one").into_iter().chain(again("two")) {
        script = script.then(step);
    }
    // The first run asks again as well, if its call is hit.
    let script = script.repeat_last();
    let Some(scene) = cli.scene(script).await else { return };
    let path = cli.path().unwrap();
    let (under, mut io) = Under::new();
    let spec = ConversationSpec {
        catalogue: OwnTools::offered(Duration::from_secs(600), 1 << 20),
        ..scene.spec()
    };
    io.tools = Arc::new(OwnTools::new(spec.catalogue.clone(), under.log.clone()));
    let mut talk = scene.open(spec).await;
    let turn = talk.0.turn(Input::text("Work long."), io);
    // While it works, the CLI is run twice more as it was started, on the same bridge.
    let look = async {
        let started = |entry: &Entry| matches!(entry, Entry::Run(RunEvent::Started { .. }));
        under.log.wait_for(started).await;
        let seen = cli_of(&scene);
        run_again(cli, &path, &seen, true).await;
        run_again(cli, &path, &seen, false).await;
        let ends = ends(&under.log);
        under.cancel();
        ends
    };
    let (_, ends) = tokio::join!(turn, look);
    talk.close().await;
    // The bridge has one client, so a cancel of one CLI may hit the call of the other, which has the same id.
    let statuses: Vec<_> = ends.into_iter().map(|(_, status)| status).take(2).collect();
    assert_eq!(
        statuses,
        [ToolStatus::Passed, ToolStatus::Cancelled],
        "with the capsule's limit and without"
    );
    let results = cli.results(&scene.request(2));
    assert!(results[0].1.contains("worked"), "{results:?}");
    let given_up = cli.results(&scene.request(4));
    assert!(!given_up[0].1.contains("worked"), "{given_up:?}");
}
