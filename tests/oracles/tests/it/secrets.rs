//! Key and token are in the environment of the one child, and nowhere else.

use std::time::SystemTime;

use capsule_api::{Billing, ConversationSpec, Event, Input, Outcome};
use capsule_fakes::{Answer, Reply, Script};
use capsule_transport_kit::Entry;
use serde_json::json;

use crate::{
    cli::{Cli, of_each_cli},
    support::{KEY, Scene, Under},
    watch::{Seen, cli_of, descendants, files, others_can_read, written_elsewhere},
};

of_each_cli!(
    p_08_a_run_that_completes_shows_no_secret_and_leaves_none,
    p_08_a_run_that_is_cancelled_shows_no_secret_and_leaves_none,
    p_08_a_run_that_fails_shows_no_secret_and_leaves_none,
    the_first_event_says_how_the_run_is_billed,
);

/// How a run ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Completed,
    Cancelled,
    Failed,
}

async fn p_08_a_run_that_completes_shows_no_secret_and_leaves_none(cli: &Cli) {
    for kept in [false, true] {
        shows_and_leaves_nothing(cli, End::Completed, kept).await;
    }
}

async fn p_08_a_run_that_is_cancelled_shows_no_secret_and_leaves_none(cli: &Cli) {
    for kept in [false, true] {
        shows_and_leaves_nothing(cli, End::Cancelled, kept).await;
    }
}

async fn p_08_a_run_that_fails_shows_no_secret_and_leaves_none(cli: &Cli) {
    for kept in [false, true] {
        shows_and_leaves_nothing(cli, End::Failed, kept).await;
    }
}

/// What nobody may see, unlike anything else on the machine.
struct Hidden {
    key: String,
    prompt: String,
    system_prompt: String,
}

impl Hidden {
    fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let mark = format!("{:020}", now.as_nanos());
        // Its last twenty characters are unlike anything else too: CLIs write down the ends of keys.
        let end: String = mark.chars().rev().collect();
        Self {
            key: format!("sk-ant-dummy-{end}"),
            prompt: format!("THE-PROMPT-{mark}"),
            system_prompt: format!("THE-SYSTEM-PROMPT-{mark}"),
        }
    }

    fn key_end(&self) -> &str {
        &self.key[self.key.len() - 20..]
    }

    fn prompts(&self) -> [&str; 2] {
        [&self.prompt, &self.system_prompt]
    }
}

async fn shows_and_leaves_nothing(cli: &Cli, end: End, kept: bool) {
    let start = SystemTime::now();
    let hidden = Hidden::new();
    let held = Reply::text(["first ", "second"])
        .call("call-1", "echo", json!({"text": "hello"}))
        .stall(cli.first_piece());
    let script = match end {
        End::Failed => Script::new().then(held).then(Answer::error(400, "no")).repeat_last(),
        _ => Script::new().then(held).then(Reply::text("Done.")),
    };
    let Some(scene) = cli.set(script, json!({"api_key": hidden.key})).await else {
        return;
    };
    let spec = if kept { scene.kept(None) } else { scene.spec() };
    let spec = ConversationSpec {
        system_prompt: hidden.system_prompt.clone(),
        ..spec
    };
    let mut talk = scene.open(spec).await;
    let (under, io) = Under::new();
    let turn = talk.0.turn(Input::text(&hidden.prompt), io);
    let look = async {
        let delta = |entry: &Entry| matches!(entry, Entry::Model(Event::Delta { .. }));
        under.log.wait_for(delta).await;
        let token = assert_nothing_shows(&scene, &hidden);
        match end {
            End::Cancelled => under.cancel(),
            _ => scene.provider.gate().open(),
        }
        token
    };
    let (outcome, token) = tokio::join!(turn, look);
    match (end, &outcome) {
        (End::Completed, Ok(Outcome::Completed { .. })) | (End::Cancelled, Ok(Outcome::Cancelled)) => {}
        (End::Failed, Err(error)) => assert_eq!(error.code, cli.code("bad-request")),
        (_, other) => panic!("{other:?}"),
    }
    talk.close().await;
    for event in under.log.entries() {
        let shown = format!("{event:?}");
        assert!(!shown.contains(hidden.key_end()) && !shown.contains(&token), "{shown}");
    }
    assert_nothing_is_left(&scene, &hidden, &token, start);
}

/// What the machine shows while a run goes on. Gives the bridge's token.
fn assert_nothing_shows(scene: &Scene, hidden: &Hidden) -> String {
    let child = cli_of(scene);
    let token = child.variable("CAPSULE_MCP_TOKEN").unwrap().to_owned();
    assert!(token.len() >= 32 && child.environ.contains(&hidden.key));
    for Seen { id, args, .. } in descendants() {
        for secret in [hidden.key_end(), &token, &hidden.prompt, &hidden.system_prompt] {
            assert!(!args.contains(secret), "the arguments of {id} hold {secret}: {args}");
        }
    }
    for file in files(scene.dir.path()) {
        let path = file.path.display();
        assert!(!file.holds(hidden.key_end()) && !file.holds(&token), "{path}");
        if hidden.prompts().iter().any(|prompt| file.holds(prompt)) {
            assert!(!others_can_read(&file.path, scene.dir.path()), "{path}");
        }
    }
    token
}

/// What is left after it: nothing, but the prompts where the context is kept.
fn assert_nothing_is_left(scene: &Scene, hidden: &Hidden, token: &str, start: SystemTime) {
    let state = scene.dir.path().join("state");
    for file in files(scene.dir.path()) {
        let path = file.path.display();
        assert!(!file.holds(hidden.key_end()) && !file.holds(token), "{path}");
        let is_record = file.path.starts_with(&state);
        assert!(
            is_record || !hidden.prompts().iter().any(|prompt| file.holds(prompt)),
            "{path}"
        );
        assert!(!is_record || !others_can_read(&file.path, scene.dir.path()), "{path}");
    }
    for file in written_elsewhere(start) {
        if file.path.starts_with(scene.dir.path()) {
            continue;
        }
        for secret in [hidden.key_end(), token, &hidden.prompt, &hidden.system_prompt] {
            assert!(!file.holds(secret), "{} holds {secret}", file.path.display());
        }
    }
}

async fn the_first_event_says_how_the_run_is_billed(cli: &Cli) {
    let Some(scene) = cli.scene(Script::new().then(Reply::text("Hello."))).await else {
        return;
    };
    let told = scene.ask("Hi.").await;
    let first = told.log.entries().into_iter().next().unwrap();
    let started = Event::Started {
        model: Some(cli.model.into()),
        peer: Some(format!("{} {}", cli.name, cli.version)),
        billing: Billing::ApiKey,
        resumed: false,
    };
    assert_eq!(first, Entry::Model(started));
    assert_eq!(scene.provider.requests()[0].key(), Some(KEY));
}
