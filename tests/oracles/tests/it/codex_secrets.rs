//! Key and token are in the environment of the one child, and nowhere else.

use std::collections::BTreeSet;

use capsule_api::{Event, Input};
use capsule_fakes::{Reply, Script};
use capsule_transport_kit::Entry;
use serde_json::json;

use crate::{
    codex_tools::scene,
    secrets::{descendants, files},
    support::{CODEX_MODEL, KEY, Under, codex, names_in},
};

#[tokio::test]
async fn p_08_codex_no_argument_of_any_process_and_no_file_holds_a_secret() {
    let Some(cli) = codex() else { return };
    let script = Script::new().then(Reply::new().call("call-1", "sleep", json!({})));
    let scene = scene(&cli, script).await;
    let mut talk = scene.open(scene.kept(None)).await;
    let (under, io) = Under::new();

    let turn = talk.0.turn(Input::text("THE-PROMPT: sleep."), io);
    let look = async {
        under.tools.live_calls(1).await;
        let seen = descendants();
        let mut on_disk = Vec::new();
        files(scene.dir.path(), &mut on_disk);
        under.cancel();
        (seen, on_disk)
    };
    let (_, (seen, on_disk)) = tokio::join!(turn, look);
    talk.close().await;

    let child = seen
        .iter()
        .find(|(_, _, environ)| environ.contains("CAPSULE_MCP_TOKEN="))
        .expect("the CLI runs");
    let token = child
        .2
        .lines()
        .find_map(|line| line.strip_prefix("CAPSULE_MCP_TOKEN="))
        .unwrap();
    assert!(token.len() >= 32 && child.2.contains(KEY));
    for (id, args, _) in &seen {
        for secret in [KEY, token, "THE-PROMPT"] {
            assert!(!args.contains(secret), "the arguments of {id} hold {secret}: {args}");
        }
    }
    for (path, content) in &on_disk {
        let content = String::from_utf8_lossy(content);
        assert!(!content.contains(KEY) && !content.contains(token), "{path}");
    }
    for event in under.log.entries() {
        let shown = format!("{event:?}");
        assert!(!shown.contains(KEY) && !shown.contains(token), "{shown}");
    }
}

#[tokio::test]
async fn p_12_codex_the_environment_is_the_allow_list() {
    let Some(cli) = codex() else { return };
    let script = Script::new().then(Reply::new().call("call-1", "sleep", json!({})));
    let scene = scene(&cli, script).await;
    let mut talk = scene.open(scene.spec()).await;
    let (under, io) = Under::new();
    let turn = talk.0.turn(Input::text("Sleep."), io);
    let look = async {
        under.tools.live_calls(1).await;
        let all = descendants();
        under.cancel();
        all
    };
    let (_, seen) = tokio::join!(turn, look);
    talk.close().await;
    let place = scene.dir.path().display().to_string();
    let (_, _, environ) = seen
        .into_iter()
        .find(|(_, args, environ)| args.contains("app-server") && environ.contains(&place))
        .expect("the CLI runs");
    let names: BTreeSet<_> = environ
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.to_owned())
        .collect();
    let wanted = [
        "CAPSULE_MCP_TOKEN",
        "CAPSULE_MODEL_KEY",
        "CODEX_HOME",
        "HOME",
        "NO_COLOR",
        "NO_PROXY",
        "PATH",
        "TMPDIR",
        "XDG_CACHE_HOME",
    ];
    assert_eq!(names, wanted.map(str::to_owned).into());
}

#[tokio::test]
async fn p_15_codex_home_configuration_and_working_directory_are_private_and_nothing_of_the_persons() {
    let Some(cli) = codex() else { return };
    let script = Script::new().then(Reply::new().call("call-1", "sleep", json!({})));
    let scene = scene(&cli, script).await;
    let mut talk = scene.open(scene.spec()).await;
    let (under, io) = Under::new();
    let turn = talk.0.turn(Input::text("Sleep."), io);
    let look = async {
        under.tools.live_calls(1).await;
        let all = descendants();
        let place = scene.dir.path().display().to_string();
        let (id, _, environ) = all
            .into_iter()
            .find(|(_, args, environ)| args.contains("app-server") && environ.contains(&place))
            .expect("the CLI runs");
        let work = std::fs::read_link(format!("/proc/{id}/cwd")).unwrap();
        let found = names_in(&work);
        under.cancel();
        (environ, work, found)
    };
    let (_, (environ, work, found)) = tokio::join!(turn, look);
    talk.close().await;
    let run_dir = scene.run_dir();
    for name in ["HOME", "CODEX_HOME", "TMPDIR", "XDG_CACHE_HOME"] {
        let start = format!("{name}=");
        let value = environ.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
        assert!(std::path::Path::new(value).starts_with(&run_dir), "{name} is {value}");
    }
    assert!(work.starts_with(&run_dir), "{}", work.display());
    assert_eq!(found, Vec::<String>::new(), "the working directory is empty");
}

#[tokio::test]
async fn codex_the_first_event_says_how_the_run_is_billed() {
    let Some(cli) = codex() else { return };
    let scene = scene(&cli, Script::new().then(Reply::text("Hello."))).await;
    let told = scene.ask("Hi.").await;
    let first = told.log.entries().into_iter().next().unwrap();
    let started = Event::Started {
        model: Some(CODEX_MODEL.into()),
        peer: Some("codex 0.171.0".into()),
        billing: capsule_api::Billing::ApiKey,
        resumed: false,
    };
    assert_eq!(first, Entry::Model(started));
    assert_eq!(scene.provider.requests()[0].key(), Some(KEY));
}
