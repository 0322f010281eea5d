//! Arguments, environment and files of one run of the CLI.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use capsule_api::{ConversationSpec, Error};
use capsule_transport_process::{Bridge, Credential, Program, RunDir, call_limit, largest_result};
use serde_json::{Value, json};

use crate::{binary::Binary, settings::Config};

/// The key of the capsule's server in the CLI's MCP configuration.
pub(crate) const SERVER: &str = "capsule";
/// The name of the provider in the CLI's configuration.
pub(crate) const PROVIDER: &str = "capsule";

/// The variables of the child's environment that hold the secrets; the configuration names them.
const TOKEN: &str = "CAPSULE_MCP_TOKEN";
const KEY: &str = "CAPSULE_MODEL_KEY";

/// Without these off, the model could run commands on this machine.
pub(crate) const MUST_BE_DENIED: &[&str] = &["shell_tool", "unified_exec"];

/// What is turned off, as far as the binary knows it: tools of its own, what it loads from elsewhere, and retries without an end.
pub(crate) const DENIED: &[&str] = &[
    "shell_tool",
    "unified_exec",
    "shell_snapshot",
    "apps",
    "plugins",
    "remote_plugin",
    "hooks",
    "multi_agent",
    "goals",
    "view_image",
    "image_generation",
    "skill_search",
    "skill_mcp_dependency_install",
    "sleep_tool",
    "tool_suggest",
    "browser_use",
    "computer_use",
    "memories",
    "unbounded_connection_retries",
];

/// How long the CLI may take to get the tools.
pub(crate) const TOOLS_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that the CLI counts as one token of a result.
const BYTES_A_TOKEN: u64 = 4;
/// Tokens of the words that the dispatch and the CLI put around a result.
const AROUND_A_RESULT: u64 = 500;
/// The context window of a model whose window the capsule does not say.
const CONTEXT_WINDOW: u64 = 200_000;
/// The CLI's own tries of a request after the first, each of which it tells.
const RETRIES: u32 = 3;

/// Writes the catalogue of models: the one model, which is to be offered its tools directly. Blocks on the file system.
pub(crate) fn write_catalogue(
    run: &RunDir,
    spec: &ConversationSpec,
    model: &str,
    config: &Config,
) -> Result<PathBuf, Error> {
    run.write(
        "models.json",
        model_catalogue(spec, model, config).to_string().as_bytes(),
    )
}

fn model_catalogue(spec: &ConversationSpec, model: &str, config: &Config) -> Value {
    let window = spec.limits.context.map_or(CONTEXT_WINDOW, |context| context.max_tokens);
    let mut entry = json!({
        "slug": model,
        "display_name": model,
        "visibility": "list",
        "supported_in_api": true,
        "priority": 1,
        "base_instructions": "",
        "supported_reasoning_levels": [],
        "support_verbosity": false,
        "shell_type": "disabled",
        "experimental_supported_tools": [],
        "supports_search_tool": false,
        "supports_parallel_tool_calls": true,
        "context_window": window,
        "truncation_policy": {"mode": "tokens", "limit": result_tokens(spec)},
    });
    if config.code_mode {
        entry["tool_mode"] = json!("code_mode_only");
    }
    json!({"models": [entry]})
}

/// One run.
pub(crate) struct Run<'a> {
    pub(crate) binary: &'a Binary,
    pub(crate) config: &'a Config,
    pub(crate) spec: &'a ConversationSpec,
    pub(crate) dir: &'a RunDir,
    pub(crate) catalogue: &'a Path,
    pub(crate) bridge: Option<&'a Bridge>,
}

impl Run<'_> {
    /// The program to start. Secrets are in its environment alone; prompts go by standard input.
    pub(crate) fn program(&self) -> Program {
        let program = Program::new(&self.binary.path, self.dir.work()).args(self.args());
        let program = environment(program, self.dir, &home_of(self.spec, self.dir));
        let program = self.config.cli.proxies.pass_to(program);
        let program = match &self.config.cli.credential {
            // It is in the file that was lent.
            Credential::Subscription(_) => program,
            Credential::ApiKey(secret) | Credential::Token(secret) => program.secret_env(KEY, secret),
        };
        match self.bridge {
            Some(bridge) => program.secret_env(TOKEN, bridge.token()),
            None => program,
        }
    }

    fn args(&self) -> Vec<String> {
        // A key that the CLI does not know ends it, instead of being ignored.
        let mut args: Vec<String> = ["app-server", "--stdio", "--strict-config"].map(str::to_owned).into();
        for feature in &self.binary.denied {
            args.extend(["--disable".to_owned(), feature.clone()]);
        }
        for (key, value) in self.configuration() {
            // JSON's strings, numbers and booleans are TOML's.
            args.extend(["-c".to_owned(), format!("{key}={value}")]);
        }
        args
    }

    fn configuration(&self) -> Vec<(String, Value)> {
        let mut keys = isolation();
        let mut add = |key: &str, value: Value| keys.push((key.to_owned(), value));
        add("model_provider", json!(PROVIDER));
        add("model_catalog_json", json!(self.catalogue.to_string_lossy()));
        add("tool_output_token_limit", json!(result_tokens(self.spec)));
        if let Some(context) = self.spec.limits.context {
            add("model_auto_compact_token_limit", json!(context.compact_above()));
        }
        if let (Credential::Subscription(_), Some(endpoint)) = (&self.config.cli.credential, &self.config.cli.endpoint)
        {
            // What it asks about the account goes where its requests go.
            add("chatgpt_base_url", json!(endpoint));
        }
        let idle = u64::try_from(self.config.cli.idle.as_millis()).unwrap_or(u64::MAX);
        for (key, value) in [
            ("name", json!(PROVIDER)),
            ("base_url", json!(self.config.base_url())),
            ("wire_api", json!("responses")),
            match self.config.cli.credential {
                Credential::Subscription(_) => ("requires_openai_auth", json!(true)),
                Credential::ApiKey(_) | Credential::Token(_) => ("env_key", json!(KEY)),
            },
            // Tries below the CLI's own would not be told.
            ("request_max_retries", json!(0)),
            ("stream_max_retries", json!(RETRIES)),
            ("stream_idle_timeout_ms", json!(idle)),
        ] {
            keys.push((format!("model_providers.{PROVIDER}.{key}"), value));
        }
        if let Some(bridge) = self.bridge {
            for (key, value) in [
                ("url", json!(bridge.url())),
                ("bearer_token_env_var", json!(TOKEN)),
                ("required", json!(true)),
                ("default_tools_approval_mode", json!("approve")),
                // What may overlap is the dispatch's to say.
                ("supports_parallel_tool_calls", json!(true)),
                ("startup_timeout_sec", json!(TOOLS_PATIENCE.as_secs())),
                (
                    "tool_timeout_sec",
                    json!(call_limit(&self.spec.catalogue, &self.spec.limits).as_secs()),
                ),
            ] {
                keys.push((format!("mcp_servers.{SERVER}.{key}"), value));
            }
        }
        keys
    }
}

/// Tokens of one result that reach the model whole: as many as the longest result has that a tool of the capsule may give.
fn result_tokens(spec: &ConversationSpec) -> u64 {
    largest_result(&spec.catalogue).div_ceil(BYTES_A_TOKEN) + AROUND_A_RESULT
}

/// What keeps the CLI from adding to the prompt, asking, running and calling home.
fn isolation() -> Vec<(String, Value)> {
    let keys = [
        ("approval_policy", json!("never")),
        ("sandbox_mode", json!("read-only")),
        ("web_search", json!("disabled")),
        ("analytics.enabled", json!(false)),
        ("feedback.enabled", json!(false)),
        ("check_for_update_on_startup", json!(false)),
        ("history.persistence", json!("none")),
        // No keychain: a login is in the file that was lent, or nowhere.
        ("cli_auth_credentials_store", json!("file")),
        ("project_doc_max_bytes", json!(0)),
        ("skills.include_instructions", json!(false)),
        ("skills.bundled.enabled", json!(false)),
        ("include_environment_context", json!(false)),
        ("include_permissions_instructions", json!(false)),
        ("include_apps_instructions", json!(false)),
        ("allow_login_shell", json!(false)),
        ("shell_environment_policy.inherit", json!("none")),
    ];
    keys.map(|(key, value)| (key.to_owned(), value)).into()
}

/// The environment without the secrets and the proxies, from nothing.
pub(crate) fn environment(program: Program, run: &RunDir, codex_home: &Path) -> Program {
    program
        .env("PATH", "/usr/bin:/bin")
        .mark("HOME", run.home())
        .env("CODEX_HOME", codex_home)
        .mark("TMPDIR", run.tmp())
        .env("XDG_CACHE_HOME", run.cache())
        // What it writes to stderr ends up in errors.
        .env("NO_COLOR", "1")
}

/// Where the CLI keeps its state: beside the context where that is kept, else in the run.
pub(crate) fn home_of(spec: &ConversationSpec, run: &RunDir) -> PathBuf {
    spec.state_dir
        .as_ref()
        .map_or_else(|| run.config(), |state| state.join("codex"))
}

#[cfg(test)]
mod tests;
