//! Arguments, environment and files of one run of the CLI.

use std::path::{Path, PathBuf};

use capsule_api::{ConversationSpec, Error, ToolSpec};
use capsule_transport_process::{Bridge, Credential, Program, RunDir, call_limit};
use serde_json::{Value, json};

use crate::{reader::SERVER, settings::Config};

/// The variable that holds the bridge's token in the child's environment; the MCP file names it.
const TOKEN: &str = "CAPSULE_MCP_TOKEN";

/// Characters of one result that the CLI passes on at most, whatever the tool says. The bridge cuts longer ones.
pub(crate) const MOST_CHARS: u32 = 500_000;
/// Characters that it passes on of a tool that says nothing.
const LEAST_CHARS: u32 = 50_000;
/// Characters of the words that the dispatch puts around a result.
const AROUND_A_RESULT: u64 = 1_000;

/// The files that the arguments name. Written once per conversation.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    system_prompt: PathBuf,
    mcp: Option<PathBuf>,
}

impl Files {
    /// Writes them. Blocks on the file system.
    pub(crate) fn write(run: &RunDir, spec: &ConversationSpec, bridge: Option<&str>) -> Result<Self, Error> {
        let system_prompt = run.write("system-prompt.txt", spec.system_prompt.as_bytes())?;
        let mcp = match bridge {
            Some(url) => Some(run.write("mcp.json", mcp_config(spec, url).as_bytes())?),
            None => None,
        };
        Ok(Self { system_prompt, mcp })
    }
}

/// The file names the token's variable, not the token.
fn mcp_config(spec: &ConversationSpec, url: &str) -> String {
    let timeout = u64::try_from(call_limit(&spec.catalogue, &spec.limits).as_millis()).unwrap_or(u64::MAX);
    let server = json!({
        "type": "http",
        "url": url,
        // One setting lifts all three of the CLI's own limits on a call.
        "timeout": timeout,
        "headers": {"Authorization": format!("Bearer ${{{TOKEN}}}")},
    });
    json!({"mcpServers": {SERVER: server}}).to_string()
}

/// What the CLI is told of a tool beside its definition: how long its results may be. It would put longer ones into a file that the model
/// cannot read. A character has a byte at least, so the tool's own limit in bytes is one in characters.
pub(crate) fn tool_meta(tool: &ToolSpec) -> Value {
    let own = tool.largest.saturating_add(AROUND_A_RESULT);
    let most = own.clamp(u64::from(LEAST_CHARS), u64::from(MOST_CHARS));
    json!({"anthropic/maxResultSizeChars": most})
}

/// One run.
pub(crate) struct Run<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) config: &'a Config,
    pub(crate) spec: &'a ConversationSpec,
    pub(crate) dir: &'a RunDir,
    pub(crate) files: &'a Files,
    pub(crate) bridge: Option<&'a Bridge>,
    /// The session to go on with.
    pub(crate) session: Option<&'a str>,
}

impl Run<'_> {
    /// The program to start. Secrets are in its environment alone; prompts are in files and on standard input.
    pub(crate) fn program(&self) -> Program {
        let program = Program::new(self.binary, self.dir.work()).args(self.args());
        let program = self.environment(program);
        match self.bridge {
            Some(bridge) => program.secret_env(TOKEN, bridge.token()),
            None => program,
        }
    }

    fn args(&self) -> Vec<String> {
        let mut args: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| args.extend(more.iter().map(|arg| (*arg).to_owned()));
        add(&["-p", "--input-format", "stream-json", "--output-format", "stream-json"]);
        add(&["--verbose", "--include-partial-messages"]);
        if let Some(model) = &self.spec.model {
            add(&["--model", model]);
        }
        // Nothing of the machine's settings, and no server but ours.
        add(&["--setting-sources", "", "--strict-mcp-config"]);
        if let Some(mcp) = &self.files.mcp {
            add(&["--mcp-config", &mcp.to_string_lossy()]);
        }
        // No tool of the CLI's own. The last two also keep it from expanding `@path` and `/command` in a prompt.
        add(&[
            "--tools",
            "",
            "--allowedTools",
            &format!("mcp__{SERVER}"),
            "--permission-mode",
            "dontAsk",
        ]);
        add(&["--disallowedTools", "Read(//**)", "--disable-slash-commands"]);
        add(&["--max-turns", &self.spec.limits.requests.to_string()]);
        if let Some(dollars) = self.config.max_budget_usd {
            add(&["--max-budget-usd", &dollars.to_string()]);
        }
        add(&["--system-prompt-file", &self.files.system_prompt.to_string_lossy()]);
        match (&self.spec.state_dir, self.session) {
            (None, _) => add(&["--no-session-persistence"]),
            (Some(_), None) => {}
            // Without the last flag the first run's system prompt would be used for ever.
            (Some(_), Some(session)) => add(&["--resume", session, "--system-prompt-snapshot", "off"]),
        }
        args
    }

    fn environment(&self, program: Program) -> Program {
        let program = program
            .env("PATH", "/usr/bin:/bin")
            .mark("HOME", self.dir.home())
            .env("CLAUDE_CONFIG_DIR", config_dir(self.spec, self.dir))
            .mark("TMPDIR", self.dir.tmp())
            .env("XDG_CACHE_HOME", self.dir.cache())
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            // The servers that a person has connected to the account, which no other switch keeps out.
            .env("ENABLE_CLAUDEAI_MCP_SERVERS", "false")
            .env("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("CLAUDE_CODE_MAX_RETRIES", "3")
            .env(
                "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
                self.spec.limits.output_tokens.to_string(),
            )
            // Its own login is looked for here, also where its state is kept elsewhere.
            .env("CLAUDE_SECURESTORAGE_CONFIG_DIR", self.dir.login());
        let program = self.config.cli.proxies.pass_to(program);
        let program = match &self.config.cli.credential {
            // It is in the file that was lent.
            Credential::Subscription(_) => program,
            Credential::Token(token) => program.secret_env("CLAUDE_CODE_OAUTH_TOKEN", token),
            Credential::ApiKey(key) => program.secret_env("ANTHROPIC_API_KEY", key),
        };
        match &self.config.cli.endpoint {
            Some(endpoint) => program.env("ANTHROPIC_BASE_URL", endpoint),
            None => program,
        }
    }
}

/// Where the CLI keeps its state: beside the context where that is kept, else in the run.
pub(crate) fn config_dir(spec: &ConversationSpec, run: &RunDir) -> PathBuf {
    spec.state_dir
        .as_ref()
        .map_or_else(|| run.config(), |state| state.join("claude"))
}

/// The user's line on standard input. `client_composed` keeps the CLI from reading `@path` and `/command` in it.
pub(crate) fn prompt_line(text: &str) -> Vec<u8> {
    line(&json!({
        "type": "user",
        "client_composed": true,
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
    }))
}

/// The protocol's interrupt.
pub(crate) fn interrupt_line() -> Vec<u8> {
    line(&json!({
        "type": "control_request",
        "request_id": "interrupt",
        "request": {"subtype": "interrupt"},
    }))
}

fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests;
