use std::{os::unix::fs::PermissionsExt, sync::Arc};

use capsule_api::{Annotations, Catalogue, Limits, ResumeState, ToolSpec};
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

/// The arguments, with the run's directory as `$RUN`.
fn args(spec: &ConversationSpec, bridge: Option<&str>, session: Option<&str>) -> Vec<String> {
    let dir = RunDir::create(&spec.run_dir, "run").unwrap();
    let files = Files::write(&dir, spec, bridge).unwrap();
    let config: Config = serde_json::from_value(json!({"api_key": "sk"})).unwrap();
    let run = Run {
        binary: Path::new("/opt/claude"),
        config: &config,
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
        "timeout": 135_000,
        "headers": {"Authorization": "Bearer ${CAPSULE_MCP_TOKEN}"},
    });
    assert_eq!(written, json!({"mcpServers": {"capsule": server}}));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
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
