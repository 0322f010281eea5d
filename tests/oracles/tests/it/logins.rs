//! Runs on a person's own login: lent to the CLI alone, renewed in its place, and never billed to anything else.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use capsule_api::{Billing, Event, Input};
use capsule_fakes::{Reply, Script};
use serde_json::{Value, json};

use crate::{
    cli::{CLAUDE, CODEX, Cli, of_each_cli},
    support::{Told, Under, no_tools},
    watch::cli_of,
};

of_each_cli!(
    p_13_a_subscription_pays_with_the_lent_login_and_nothing_else_of_that_home_is_used,
    p_13_a_login_is_in_the_run_alone_and_gone_with_it_also_where_the_context_is_kept,
    a_renewed_login_is_put_back_into_its_place,
    a_probe_tells_the_login_without_a_request,
    a_file_without_a_login_ends_the_run_before_the_cli_starts,
);

/// A token as ChatGPT's are: good until 2100.
const JWT: &str =
    "e30.eyJleHAiOjQxMDI0NDQ4MDAsImh0dHBzOi8vYXBpLm9wZW5haS5jb20vYXV0aCI6eyJjaGF0Z3B0X3BsYW5fdHlwZSI6InBsdXMifX0.sig";
const ACCESS: &str = "sk-ant-oat01-dummy-access";

/// What is in the file, and the token that goes to the provider.
fn login_of(cli: &Cli) -> (&'static str, Value, &'static str) {
    match cli.name {
        "claude" => {
            let oauth = json!({"accessToken": ACCESS, "refreshToken": "sk-ant-ort01-dummy", "expiresAt": 4_102_444_800_000_u64,
                "scopes": ["user:inference", "user:mcp_servers"], "subscriptionType": "max"});
            let servers = json!({"some-server": {"accessToken": "FOREIGN-TOKEN"}});
            (
                ".credentials.json",
                json!({"claudeAiOauth": oauth, "mcpOAuth": servers}),
                ACCESS,
            )
        }
        _ => {
            let tokens =
                json!({"id_token": JWT, "access_token": JWT, "refresh_token": "rt-dummy", "account_id": "acc-1"});
            let now = "2026-11-29T00:00:00Z";
            (
                "auth.json",
                json!({"auth_mode": "chatgpt", "OPENAI_API_KEY": "FOREIGN-TOKEN", "tokens": tokens, "last_refresh": now}),
                JWT,
            )
        }
    }
}

/// A person's home of the CLI, with a login and with what must not be used.
pub(crate) struct Home(tempfile::TempDir, &'static str);

impl Home {
    pub(crate) fn of(cli: &Cli) -> Self {
        let (file, content, _) = login_of(cli);
        let home = tempfile::tempdir().unwrap();
        for (name, content) in [
            (file, content.to_string().as_str()),
            (
                "settings.json",
                r#"{"env": {"ANTHROPIC_API_KEY": "FOREIGN-TOKEN"}, "model": "FOREIGN-MODEL"}"#,
            ),
            ("config.toml", "model = \"FOREIGN-MODEL\"\n"),
            ("CLAUDE.md", "FOREIGN-WORDS"),
            ("AGENTS.md", "FOREIGN-WORDS"),
        ] {
            fs::write(home.path().join(name), content).unwrap();
        }
        fs::set_permissions(home.path().join(file), fs::Permissions::from_mode(0o600)).unwrap();
        Self(home, file)
    }

    fn file(&self) -> PathBuf {
        self.0.path().join(self.1)
    }

    pub(crate) fn settings(&self) -> Value {
        json!({"api_key": null, "login_home": self.0.path()})
    }

    fn content(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file()).unwrap()).unwrap()
    }
}

fn billing(told: &Told) -> Vec<Billing> {
    let events = told.log.events().into_iter();
    let billed = events.filter_map(|event| match event {
        Event::Started { billing, .. } => Some(billing),
        _ => None,
    });
    billed.collect()
}

async fn p_13_a_subscription_pays_with_the_lent_login_and_nothing_else_of_that_home_is_used(cli: &Cli) {
    let home = Home::of(cli);
    let script = Script::new()
        .then(Reply::new().call("call-1", "echo", json!({"text": "hello"})))
        .then(Reply::text("Done."));
    let Some(scene) = cli.set(script, home.settings()).await else {
        return;
    };
    let before = fs::metadata(home.file()).unwrap();
    let told = scene.ask("Echo.").await;
    assert_eq!((told.answer(), told.warnings()), ("Done.", vec![]));
    assert_eq!(billing(&told), [Billing::Subscription]);
    let requests = scene.provider.requests();
    let (_, content, token) = login_of(cli);
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!(request.key(), Some(token));
        let shown = format!("{} {:?}", request.body, request.headers);
        assert!(!shown.contains("FOREIGN"), "{shown}");
    }
    let shown = format!("{:?}", told.log.entries());
    assert!(!shown.contains(token) && !shown.contains("dummy"), "{shown}");
    let after = fs::metadata(home.file()).unwrap();
    assert_eq!(
        (after.ino(), after.mtime_nsec(), home.content()),
        (before.ino(), before.mtime_nsec(), content)
    );
}

async fn p_13_a_login_is_in_the_run_alone_and_gone_with_it_also_where_the_context_is_kept(cli: &Cli) {
    let home = Home::of(cli);
    let script = Script::new().then(Reply::new().call("call-1", "sleep", json!({})));
    let Some(scene) = cli.set(script, home.settings()).await else {
        return;
    };
    let mut talk = scene.open(scene.kept(None)).await;
    let (under, io) = Under::new();
    let turn = talk.0.turn(Input::text("Sleep."), io);
    let look = async {
        under.tools.live_calls(1).await;
        let seen = cli_of(&scene);
        let holders = holders_of_a_token(cli, scene.dir.path());
        under.cancel();
        (seen, holders)
    };
    let (_, (seen, holders)) = tokio::join!(turn, look);
    talk.close().await;
    assert_eq!(holders.len(), 1, "{holders:?}");
    assert!(
        holders[0].0.starts_with(scene.run_dir()) && holders[0].1 & 0o777 == 0o600,
        "{holders:?}"
    );
    assert!(!seen.args.contains(login_of(cli).2) && !seen.environ.contains(login_of(cli).2));
    assert_eq!(holders_of_a_token(cli, scene.dir.path()), []);
}

/// The files below a directory that hold the token, and their modes.
fn holders_of_a_token(cli: &Cli, dir: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            found.extend(holders_of_a_token(cli, &entry.path()));
        } else if about.is_file() {
            let content = fs::read(entry.path()).unwrap_or_default();
            if String::from_utf8_lossy(&content).contains(login_of(cli).2) {
                found.push((entry.path(), about.mode()));
            }
        }
    }
    found
}

async fn a_renewed_login_is_put_back_into_its_place(cli: &Cli) {
    let home = Home::of(cli);
    let before = fs::metadata(home.file()).unwrap().ino();
    let scene = cli.faked(home.settings()).await;
    let mut spec = scene.spec();
    spec.catalogue = no_tools();
    let told = scene.ask_as(spec, "renew the login").await;
    assert_eq!((told.answer(), billing(&told)), ("Fine.", vec![Billing::Subscription]));
    let (_, mut wanted, _) = login_of(cli);
    if cli.name == CLAUDE.name {
        wanted["claudeAiOauth"]["accessToken"] = json!("sk-ant-oat01-renewed");
        wanted["claudeAiOauth"]["expiresAt"] = json!(4_102_444_900_000_u64);
    } else {
        wanted["tokens"]["refresh_token"] = json!("rt-renewed");
        wanted["last_refresh"] = json!("2026-12-01T00:00:00.5Z");
    }
    assert_eq!(home.content(), wanted, "the login is renewed, the rest stays");
    let after = fs::metadata(home.file()).unwrap();
    assert!(
        after.ino() != before && after.mode() & 0o777 == 0o600,
        "replaced as a whole"
    );
    let left: Vec<_> = fs::read_dir(home.0.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 5, "{left:?}");
}

async fn a_probe_tells_the_login_without_a_request(cli: &Cli) {
    let home = Home::of(cli);
    let scene = cli.faked(home.settings()).await;
    let probe = scene.probe().await;
    assert!(probe.usable.is_ok(), "{:?}", probe.usable);
    let login = &probe.facts.iter().find(|(name, _)| name == "login").unwrap().1;
    let plan = if cli.name == CODEX.name { "plus" } else { "max" };
    let file = fs::canonicalize(home.file()).unwrap();
    let start = format!(
        "subscription ({plan}), from {}; its access token is good for ",
        file.display()
    );
    assert!(login.starts_with(&start), "{login}");
    assert_eq!(scene.provider.requests().len(), 0);

    fs::remove_file(home.file()).unwrap();
    let probe = scene.probe().await;
    let error = probe.usable.unwrap_err();
    assert_eq!(error.code, "process-login-missing");
    assert!(error.hint.contains(&format!("`{}", cli.name)), "{}", error.hint);
    let names: Vec<_> = probe.facts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["program", "version", "tested", "login"]);
}

async fn a_file_without_a_login_ends_the_run_before_the_cli_starts(cli: &Cli) {
    let home = Home::of(cli);
    // A key of the API is no subscription, whatever file it is in.
    fs::write(
        home.file(),
        json!({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-key"}).to_string(),
    )
    .unwrap();
    let scene = cli.faked(home.settings()).await;
    let mut spec = scene.spec();
    spec.catalogue = no_tools();
    let told = scene.ask_as(spec, "answer").await;
    let error = told.error();
    assert_eq!((error.code, told.log.events().len()), ("process-login-unreadable", 0));
    assert!(!format!("{error:?}").contains("sk-key"));
}

#[tokio::test]
async fn p_13_a_token_of_the_settings_pays_as_a_token() {
    let settings = json!({"api_key": null, "token": "sk-ant-oat01-long-lived"});
    let Some(scene) = CLAUDE.set(Script::new().then(Reply::text("Hello.")), settings).await else {
        return;
    };
    let told = scene.ask("Hi.").await;
    assert_eq!((told.answer(), billing(&told)), ("Hello.", vec![Billing::Token]));
    assert_eq!(scene.provider.requests()[0].key(), Some("sk-ant-oat01-long-lived"));
}

#[tokio::test]
async fn p_13_two_runs_at_once_share_a_login() {
    let home = Home::of(&CLAUDE);
    let answer = || Script::new().then(Reply::text("Hello."));
    let (Some(one), Some(two)) = (
        CLAUDE.set(answer(), home.settings()).await,
        CLAUDE.set(answer(), home.settings()).await,
    ) else {
        return;
    };
    let (first, second) = tokio::join!(one.ask("Hi."), two.ask("Hi."));
    assert_eq!((first.answer(), second.answer()), ("Hello.", "Hello."));
    assert_eq!(home.content(), login_of(&CLAUDE).1);
}
