use std::{os::unix::fs::PermissionsExt, sync::Arc};

use capsule_api::{Annotations, Catalogue, ContextWindow, Limits, Settings, ToolSpec};
use capsule_transport_kit::NoSecrets;
use capsule_transport_process::Proxies;

use super::*;

fn spec(dir: &Path, longest: &[u64]) -> ConversationSpec {
    let tool = |seconds: &u64| ToolSpec {
        name: format!("tool {seconds}"),
        alias: format!("tool_{seconds}"),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        annotations: Annotations::default(),
        longest: Duration::from_secs(*seconds),
        largest: 1000 * seconds,
    };
    ConversationSpec {
        context: "test".into(),
        model: Some("a-model".into()),
        system_prompt: "THE SYSTEM PROMPT".into(),
        catalogue: Arc::new(Catalogue {
            tools: longest.iter().map(tool).collect(),
        }),
        limits: Limits::default(),
        resume: None,
        run_dir: dir.to_owned(),
        state_dir: None,
    }
}

fn config(values: &Value) -> Config {
    let settings = Settings::new(values.as_object().unwrap().clone(), &Value::Null, ".");
    Config::read(&settings, &NoSecrets).unwrap()
}

fn with_key() -> Config {
    config(&json!({"api_key": "sk-secret"}))
}

fn args(spec: &ConversationSpec, config: &Config) -> Vec<String> {
    let dir = RunDir::create(&spec.run_dir, "run").unwrap();
    let binary = Binary {
        path: "/opt/codex".into(),
        version: semver::Version::new(0, 171, 0),
        denied: vec!["shell_tool".into(), "unified_exec".into()],
    };
    let run = Run {
        binary: &binary,
        config,
        spec,
        dir: &dir,
        catalogue: Path::new("/run/models.json"),
        bridge: None,
    };
    let shown = format!("{:?}", run.program());
    assert!(
        !shown.contains("sk-secret") && !shown.contains("THE SYSTEM PROMPT"),
        "{shown}"
    );
    run.args()
}

#[test]
fn the_arguments_are_these_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = r#"app-server --stdio --strict-config --disable shell_tool --disable unified_exec
        -c approval_policy="never" -c sandbox_mode="read-only" -c web_search="disabled"
        -c analytics.enabled=false -c feedback.enabled=false -c check_for_update_on_startup=false
        -c history.persistence="none" -c cli_auth_credentials_store="file" -c project_doc_max_bytes=0
        -c skills.include_instructions=false -c skills.bundled.enabled=false
        -c include_environment_context=false -c include_permissions_instructions=false
        -c include_apps_instructions=false -c allow_login_shell=false -c shell_environment_policy.inherit="none"
        -c model_provider="capsule" -c model_catalog_json="/run/models.json" -c tool_output_token_limit=500
        -c model_providers.capsule.name="capsule" -c model_providers.capsule.base_url="https://api.openai.com/v1"
        -c model_providers.capsule.wire_api="responses" -c model_providers.capsule.env_key="CAPSULE_MODEL_KEY"
        -c model_providers.capsule.request_max_retries=0 -c model_providers.capsule.stream_max_retries=3
        -c model_providers.capsule.stream_idle_timeout_ms=600000"#;
    let wanted: Vec<_> = wanted.split_whitespace().collect();
    assert_eq!(args(&spec(dir.path(), &[]), &with_key()), wanted);
}

/// What a run with a bridge is started with: its arguments, its program as it is shown, and the bridge's token.
async fn with_bridge(longest: &[u64]) -> (Vec<String>, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), longest);
    let run = RunDir::create(dir.path(), "run").unwrap();
    let clock = Arc::new(capsule_api::SystemClock);
    let options = capsule_transport_process::BridgeOptions::new("capsule", "1");
    let bridge = Bridge::start(spec.catalogue.clone(), options, None, clock)
        .await
        .unwrap();
    let binary = Binary {
        path: "/opt/codex".into(),
        version: semver::Version::new(0, 171, 0),
        denied: Vec::new(),
    };
    let run = Run {
        binary: &binary,
        config: &with_key(),
        spec: &spec,
        dir: &run,
        catalogue: Path::new("/run/models.json"),
        bridge: Some(&bridge),
    };
    let token = bridge.token().expose().to_owned();
    let started = (run.args(), format!("{:?}", run.program()), token);
    bridge.close(Duration::ZERO).await;
    started
}

fn server<'a>(args: &'a [String], key: &str) -> Option<&'a str> {
    let start = format!("mcp_servers.capsule.{key}=");
    args.iter().find_map(|arg| arg.strip_prefix(&start))
}

#[tokio::test]
async fn m_03_the_clis_limit_on_a_call_is_longer_than_the_longest_tools_own() {
    let (args, ..) = with_bridge(&[30, 75, 60]).await;
    assert_eq!(server(&args, "tool_timeout_sec"), Some("680"));
}

#[tokio::test]
async fn a_result_may_be_as_long_as_the_tools_own_limit_says() {
    let (args, ..) = with_bridge(&[30, 75, 60]).await;
    assert!(args.contains(&"tool_output_token_limit=19250".to_owned()), "{args:?}");
}

#[test]
fn p_13_with_a_subscription_no_key_is_in_the_environment_and_the_cli_must_use_its_login() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), &[]);
    let config = config(&json!({}));
    let args = args(&spec, &config);
    let provider = |key: &str| {
        args.iter()
            .find_map(|arg| arg.strip_prefix(&format!("model_providers.capsule.{key}=")))
    };
    assert_eq!(
        (
            provider("requires_openai_auth"),
            provider("env_key"),
            provider("base_url")
        ),
        (Some("true"), None, Some("\"https://chatgpt.com/backend-api/codex\""))
    );
}

#[test]
fn an_endpoint_is_asked_about_the_account_too() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), &[]);
    let asked = |values: Value| {
        let args = args(&spec, &config(&values));
        args.into_iter().find(|arg| arg.starts_with("chatgpt_base_url="))
    };
    let endpoint = "http://127.0.0.1:4000";
    assert_eq!(
        asked(json!({"endpoint": endpoint})).as_deref(),
        Some("chatgpt_base_url=\"http://127.0.0.1:4000\"")
    );
    assert_eq!(asked(json!({"endpoint": endpoint, "api_key": "sk-secret"})), None);
}

#[tokio::test]
async fn m_02_calls_are_approved_beforehand_and_may_overlap() {
    let (args, ..) = with_bridge(&[60]).await;
    assert_eq!(server(&args, "default_tools_approval_mode"), Some("\"approve\""));
    assert_eq!(server(&args, "supports_parallel_tool_calls"), Some("true"));
}

#[tokio::test]
async fn p_09_the_tokens_variable_is_set_wherever_it_is_named_and_the_server_is_required() {
    let (args, program, token) = with_bridge(&[60]).await;
    assert_eq!(server(&args, "bearer_token_env_var"), Some("\"CAPSULE_MCP_TOKEN\""));
    assert_eq!(server(&args, "required"), Some("true"));
    assert!(
        program.contains(r#""CAPSULE_MODEL_KEY", "CAPSULE_MCP_TOKEN"]"#),
        "{program}"
    );
    assert!(!args.iter().any(|arg| arg.contains(&token)) && !program.contains(&token));
}

#[test]
fn the_model_is_offered_its_tools_directly_unless_code_mode_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = spec(dir.path(), &[]);
    spec.limits.context = Some(ContextWindow {
        max_tokens: 1000,
        threshold_permille: 850,
    });
    for (code_mode, tool_mode) in [(false, Value::Null), (true, json!("code_mode_only"))] {
        let run = RunDir::create(dir.path(), "run").unwrap();
        let config = config(&json!({"api_key": "sk-secret", "code_mode": code_mode}));
        let path = write_catalogue(&run, &spec, "a-model", &config).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let model = &written["models"][0];
        assert_eq!(
            (
                &model["slug"],
                &model["shell_type"],
                &model["tool_mode"],
                &model["context_window"]
            ),
            (&json!("a-model"), &json!("disabled"), &tool_mode, &json!(1000))
        );
        assert!(args(&spec, &config).contains(&"model_auto_compact_token_limit=850".to_owned()));
    }
}

#[test]
fn a_proxy_that_is_passed_on_is_in_the_environment_alone() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), &[]);
    let dir = RunDir::create(&spec.run_dir, "run").unwrap();
    let binary = Binary {
        path: "/opt/codex".into(),
        version: semver::Version::new(0, 171, 0),
        denied: Vec::new(),
    };
    let host = |name: &str| (name == "https_proxy").then(|| "http://ada:pass-word@proxy.example".into());
    for (proxies, passed) in [(Proxies::of(host), true), (Proxies::default(), false)] {
        let mut config = with_key();
        config.cli.proxies = proxies;
        let run = Run {
            binary: &binary,
            config: &config,
            spec: &spec,
            dir: &dir,
            catalogue: Path::new("/run/models.json"),
            bridge: None,
        };
        let shown = format!("{:?} {config:?}", run.program());
        assert_eq!(shown.contains("\"https_proxy\", \"NO_PROXY\""), passed, "{shown}");
        assert!(
            shown.contains("\"NO_PROXY\"") && !shown.contains("pass-word"),
            "{shown}"
        );
    }
}
