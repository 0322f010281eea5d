//! Key and token are in the environment of the one child, and nowhere else.

use std::{collections::BTreeSet, fs, path::Path};

use capsule_api::{Event, Input};
use capsule_fakes::{Reply, Script};
use capsule_transport_kit::Entry;
use serde_json::json;

use crate::support::{KEY, Scene, Under, claude};

/// The processes below this one, with their arguments and environments.
pub(crate) fn descendants() -> Vec<(u32, String, String)> {
    let mut found = vec![std::process::id()];
    let mut at = 0;
    while at < found.len() {
        for task in fs::read_dir(format!("/proc/{}/task", found[at]))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().map(|id| id.parse::<u32>().unwrap()));
        }
        at += 1;
    }
    let read = |id: u32, what: &str| {
        String::from_utf8_lossy(&fs::read(format!("/proc/{id}/{what}")).unwrap_or_default()).replace('\0', "\n")
    };
    found[1..]
        .iter()
        .map(|id| (*id, read(*id, "cmdline"), read(*id, "environ")))
        .collect()
}

pub(crate) fn files(dir: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&entry.path(), found),
            kind if kind.is_file() => found.push((
                entry.path().display().to_string(),
                fs::read(entry.path()).unwrap_or_default(),
            )),
            _ => {}
        }
    }
}

#[tokio::test]
async fn p_08_no_argument_of_any_process_and_no_file_holds_a_secret() {
    let Some(cli) = claude() else { return };
    let script = Script::new().then(Reply::new().call("call-1", "sleep", json!({})));
    let scene = Scene::with(&cli, script).await;
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
async fn p_12_the_environment_is_the_allow_list() {
    let Some(cli) = claude() else { return };
    let script = Script::new().then(Reply::new().call("call-1", "sleep", json!({})));
    let scene = Scene::with(&cli, script).await;
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
        .find(|(_, _, environ)| environ.contains(&place))
        .expect("the CLI runs");
    let names: BTreeSet<_> = environ
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.to_owned())
        .collect();
    let wanted = [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "CAPSULE_MCP_TOKEN",
        "CLAUDE_CODE_DISABLE_ATTACHMENTS",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
        "CLAUDE_CODE_MAX_RETRIES",
        "CLAUDE_CONFIG_DIR",
        "DISABLE_AUTOUPDATER",
        "HOME",
        "NO_PROXY",
        "PATH",
        "TMPDIR",
        "XDG_CACHE_HOME",
    ];
    assert_eq!(names, wanted.map(str::to_owned).into());
}

#[tokio::test]
async fn the_first_event_says_how_the_run_is_billed() {
    let Some(cli) = claude() else { return };
    let scene = Scene::with(&cli, Script::new().then(Reply::text("Hello."))).await;
    let told = scene.ask("Hi.").await;
    let first = told.log.entries().into_iter().next().unwrap();
    let started = Event::Started {
        model: Some(crate::support::MODEL.into()),
        peer: Some("claude 2.1.332".into()),
        billing: capsule_api::Billing::ApiKey,
        resumed: false,
    };
    assert_eq!(first, Entry::Model(started));
    assert_eq!(scene.provider.requests()[0].key(), Some(KEY));
}
