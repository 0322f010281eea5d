use std::{os::unix::fs::PermissionsExt, sync::Arc, time::Duration};

use capsule_api::{Annotations, Catalogue, Limits, ResumeState, Secret, ToolSpec};
use capsule_transport_process::{CliSettings, Proxies};
use serde_json::{Value, json};

use super::*;

fn spec(dir: &Path, kept: bool, longest: &[u64]) -> ConversationSpec {
    let tool = |seconds: &u64| ToolSpec {
        name: format!("tool {seconds}"),
        alias: format!("tool_{seconds}"),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        annotations: Annotations::default(),
        longest: Duration::from_secs(*seconds),
        largest: 1 << 20,
    };
    ConversationSpec {
        context: "test".into(),
        model: Some("a-model".into()),
        system_prompt: "Be brief.".into(),
        catalogue: Arc::new(Catalogue {
            tools: longest.iter().map(tool).collect(),
        }),
        limits: Limits::default(),
        resume: None::<ResumeState>,
        run_dir: dir.to_owned(),
        state_dir: kept.then(|| dir.join("state")),
    }
}

fn config(credential: Credential) -> Config {
    let cli = CliSettings {
        command: "claude".into(),
        endpoint: None,
        credential,
        idle: Duration::from_secs(600),
        wall: None,
        proxies: Proxies::default(),
    };
    Config {
        cli,
        max_budget_usd: None,
    }
}

/// The arguments, with the run's directory as `$RUN`.
fn args(spec: &ConversationSpec, bridge: Option<&str>, session: Option<&str>) -> Vec<String> {
    args_as(&config(Credential::ApiKey(Secret::new("sk"))), spec, bridge, session)
}

fn args_as(config: &Config, spec: &ConversationSpec, bridge: Option<&str>, session: Option<&str>) -> Vec<String> {
    let dir = RunDir::create(&spec.run_dir, "run").unwrap();
    let files = Files::write(&dir, spec, bridge).unwrap();
    let run = Run {
        binary: Path::new("/opt/claude"),
        config,
        spec,
        dir: &dir,
        files: &files,
        bridge: None,
        session,
    };
    let root = dir.path().display().to_string();
    run.args().into_iter().map(|arg| arg.replace(&root, "$RUN")).collect()
}

#[test]
fn the_arguments_are_these_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let common = |mcp: &[&str], last: &[&str]| -> Vec<String> {
        let start = "-p --input-format stream-json --output-format stream-json --verbose --include-partial-messages \
                     --model a-model --setting-sources _ --strict-mcp-config";
        let rest = "--tools _ --allowedTools mcp__capsule --permission-mode dontAsk --disallowedTools Read(//**) \
                    --disable-slash-commands --max-turns 50 --system-prompt-file $RUN/system-prompt.txt";
        let words = start
            .split(' ')
            .chain(mcp.iter().copied())
            .chain(rest.split(' '))
            .chain(last.iter().copied());
        words
            .map(|word| if word == "_" { String::new() } else { word.to_owned() })
            .collect()
    };
    let mcp = ["--mcp-config", "$RUN/mcp.json"];
    let url = Some("http://127.0.0.1:1/mcp");
    assert_eq!(
        args(&spec(dir.path(), false, &[60]), url, None),
        common(&mcp, &["--no-session-persistence"])
    );
    assert_eq!(
        args(&spec(dir.path(), false, &[]), None, None),
        common(&[], &["--no-session-persistence"])
    );
    assert_eq!(args(&spec(dir.path(), true, &[60]), url, None), common(&mcp, &[]));
    let resumed = ["--resume", "s-1", "--system-prompt-snapshot", "off"];
    assert_eq!(
        args(&spec(dir.path(), true, &[60]), url, Some("s-1")),
        common(&mcp, &resumed)
    );
}

#[test]
fn a_budget_is_the_clis_to_keep() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(Credential::ApiKey(Secret::new("sk")));
    config.max_budget_usd = Some(0.25);
    let args = args_as(&config, &spec(dir.path(), false, &[]), None, None);
    let at = args.iter().position(|arg| arg == "--max-budget-usd").unwrap();
    assert_eq!(args[at + 1], "0.25");
}

#[test]
fn m_03_the_clis_limit_on_a_call_is_longer_than_the_longest_tools_own() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path(), "run").unwrap();
    let files = Files::write(
        &run,
        &spec(dir.path(), false, &[30, 75, 60]),
        Some("http://127.0.0.1:7/mcp"),
    )
    .unwrap();
    let path = files.mcp.unwrap();
    let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let server = json!({
        "type": "http",
        "url": "http://127.0.0.1:7/mcp",
        "timeout": 680_000,
        "headers": {"Authorization": "Bearer ${CAPSULE_MCP_TOKEN}"},
    });
    assert_eq!(written, json!({"mcpServers": {"capsule": server}}));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_result_may_be_as_long_as_the_tools_own_limit_says_and_the_cli_takes() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), false, &[1]);
    let told = |largest: u64| {
        tool_meta(&ToolSpec {
            largest,
            ..spec.catalogue.tools[0].clone()
        })
    };
    for (largest, chars) in [(10, 50_000), (60_000, 61_000), (1 << 20, 500_000), (u64::MAX, 500_000)] {
        assert_eq!(
            told(largest),
            json!({"anthropic/maxResultSizeChars": chars}),
            "{largest}"
        );
    }
}

#[test]
fn p_13_the_environment_holds_the_one_credential_that_pays() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), true, &[]);
    let dir = RunDir::create(&spec.run_dir, "run").unwrap();
    let files = Files::write(&dir, &spec, None).unwrap();
    let secret = || Secret::new("sk-secret");
    for (credential, variable) in [
        (Credential::Subscription(None), None),
        (Credential::Token(secret()), Some("CLAUDE_CODE_OAUTH_TOKEN")),
        (Credential::ApiKey(secret()), Some("ANTHROPIC_API_KEY")),
    ] {
        let run = Run {
            binary: Path::new("/opt/claude"),
            config: &config(credential),
            spec: &spec,
            dir: &dir,
            files: &files,
            bridge: None,
            session: None,
        };
        let shown = format!("{:?}", run.program());
        let names = ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"];
        let set: Vec<_> = names.into_iter().filter(|name| shown.contains(name)).collect();
        assert_eq!(set, Vec::from_iter(variable));
        assert!(!shown.contains("sk-secret"), "{shown}");
    }
}

#[test]
fn a_proxy_that_is_passed_on_is_in_the_environment_alone() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), false, &[]);
    let dir = RunDir::create(&spec.run_dir, "run").unwrap();
    let files = Files::write(&dir, &spec, None).unwrap();
    let host = |name: &str| (name == "https_proxy").then(|| "http://ada:pass-word@proxy.example".into());
    for (proxies, passed) in [(Proxies::of(host), true), (Proxies::default(), false)] {
        let mut config = config(Credential::Subscription(None));
        config.cli.proxies = proxies;
        let run = Run {
            binary: Path::new("/opt/claude"),
            config: &config,
            spec: &spec,
            dir: &dir,
            files: &files,
            bridge: None,
            session: None,
        };
        let shown = format!("{:?} {config:?}", run.program());
        assert_eq!(shown.contains("\"https_proxy\", \"NO_PROXY\""), passed, "{shown}");
        assert!(
            shown.contains("\"NO_PROXY\"") && !shown.contains("pass-word"),
            "{shown}"
        );
    }
}

#[test]
fn a_prompt_is_one_line_whatever_it_holds() {
    let line = String::from_utf8(prompt_line("first\nsecond")).unwrap();
    assert_eq!(line.matches('\n').count(), 1);
    let message: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&message["client_composed"], &message["message"]["content"][0]["text"]),
        (&json!(true), &json!("first\nsecond"))
    );
}
