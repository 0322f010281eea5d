//! Reads the CLI's stream: a line in, what the model did out. Pure: no I/O, no time.
//!
//! Deltas are provisional; an `assistant` event makes its block authoritative, `abandoned_blocks` and a retry take blocks back. Nothing
//! is passed on before `system/init` has shown exactly the capsule's tools.

mod message;
mod outcome;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use capsule_api::{CallId, Catalogue, Error, ErrorKind, Event as Say, Outcome, Usage};
use capsule_transport_process::Login;
use serde_json::{Value, json};

use crate::codes;
use message::Answer;

/// The key of the capsule's server in the CLI's MCP configuration.
pub(crate) const SERVER: &str = "capsule";

/// What follows from a line.
#[derive(Debug)]
pub(crate) enum Action {
    /// An event for the task's log. Its block ids are the reader's own, from 0 without gaps.
    Say(Say),
    /// The CLI reports the result of a call, which must have come through the bridge.
    Returned {
        /// The call.
        call: CallId,
        /// What the model was told, for the warning about a call that did not come through.
        told: String,
    },
    /// The CLI will be silent for so long before it tries again.
    Silence(Duration),
    /// The run must be ended: with this outcome, or this failure.
    Stop(Result<Outcome, Error>),
    /// The terminal event was read; only the exit is still to come.
    Ended,
}

/// What the run must show.
pub(crate) struct Expected {
    pub(crate) catalogue: Arc<Catalogue>,
    /// The CLI's name and version, for the log.
    pub(crate) peer: String,
    pub(crate) resumed: bool,
    /// Who is to pay.
    pub(crate) login: Login,
}

/// The state of one run.
pub(crate) struct Reader {
    expected: Expected,
    started: bool,
    session: Option<String>,
    /// Model requests begun.
    requests: u32,
    /// Whether the last of them is still unanswered.
    waiting: bool,
    answer: Answer,
    usage: Usage,
    /// A failed request that the CLI told in its own words; survived if another request follows.
    failure: Option<Failure>,
    result: Option<Box<wire::RunResult>>,
    unknown: BTreeMap<String, u32>,
    junk: u32,
}

/// A failure in the CLI's words.
#[derive(Clone, Debug, Default)]
struct Failure {
    class: String,
    status: Option<u16>,
    text: String,
}

impl Reader {
    pub(crate) fn new(expected: Expected) -> Self {
        Self {
            expected,
            started: false,
            session: None,
            requests: 0,
            waiting: false,
            answer: Answer::default(),
            usage: Usage::default(),
            failure: None,
            result: None,
            unknown: BTreeMap::new(),
            junk: 0,
        }
    }

    /// The CLI's id of the conversation, once it is known.
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Reads one line of stdout. Text that is not JSON is counted and skipped; several objects on one line are read one by one.
    pub(crate) fn line(&mut self, line: &str) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut values = serde_json::Deserializer::from_str(line).into_iter::<Value>();
        for value in values.by_ref() {
            match value {
                Ok(value @ Value::Object(_)) => self.event(value, &mut actions),
                Ok(_) | Err(_) => {
                    self.junk(line, &mut actions);
                    break;
                }
            }
        }
        actions
    }

    /// Takes note of output that is no event. The first of it is shown, the rest counted.
    pub(crate) fn junk(&mut self, line: &str, actions: &mut Vec<Action>) {
        self.junk += 1;
        if self.junk == 1 {
            let shown: String = line.chars().take(200).collect();
            actions.push(note("claude-junk", json!({ "first": shown })));
        }
    }

    /// What is left to say when the run is over, however it ended: abandoned calls and the counts of what was not understood.
    pub(crate) fn close(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        self.answer.abandon_calls(&mut actions);
        if self.junk > 1 {
            actions.push(note("claude-junk", json!({ "lines": self.junk })));
        }
        if !self.unknown.is_empty() {
            actions.push(note("claude-unknown-events", json!(std::mem::take(&mut self.unknown))));
        }
        actions
    }

    fn event(&mut self, value: Value, actions: &mut Vec<Action>) {
        let kind = value["type"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "system" | "stream_event" | "assistant" | "user" | "result" => {}
            "rate_limit_event" | "tool_progress" | "keep_alive" | "control_response" => return,
            _ => {
                // Bounded: a peer that invents types for ever fills one counter.
                let key = if self.unknown.len() < 32 {
                    kind
                } else {
                    "others".to_owned()
                };
                *self.unknown.entry(key).or_default() += 1;
                return;
            }
        }
        match serde_json::from_value::<wire::Event>(value) {
            Ok(event) => self.known(event, actions),
            Err(error) => self.junk(&format!("{kind}: {error}"), actions),
        }
    }

    fn known(&mut self, event: wire::Event, actions: &mut Vec<Action>) {
        match event {
            wire::Event::System(system) => self.system(system, actions),
            wire::Event::Assistant(said) if is_synthetic(&said) => self.synthetic(said),
            wire::Event::StreamEvent(_) | wire::Event::Assistant(_) if !self.started => {
                let message = "the CLI passed on an answer before it told its tools";
                actions.push(Action::Stop(Err(Error::new(&codes::TOOLS, message))));
            }
            wire::Event::StreamEvent(event) => self.stream(event, actions),
            wire::Event::Assistant(said) => self.assistant(said.message, actions),
            wire::Event::User(user) => self.user(&user, actions),
            wire::Event::Result(result) => self.result(result, actions),
        }
    }

    fn system(&mut self, system: wire::System, actions: &mut Vec<Action>) {
        match system.subtype.as_str() {
            "init" => self.init(&system, actions),
            "status" if system.status.as_deref() == Some("requesting") => self.begin_request(actions),
            "api_retry" => self.retry(&system, actions),
            "permission_denied" => {
                let tool = system.tool_name.unwrap_or_default();
                actions.push(warning(
                    "claude-permission-denied",
                    format!("the CLI refused a call of `{tool}` by itself"),
                ));
            }
            _ => {}
        }
    }

    /// The proof that the capsule's tools, and nothing else, are there, and that the right credential pays.
    fn init(&mut self, system: &wire::System, actions: &mut Vec<Action>) {
        self.session.clone_from(&system.session_id);
        if let Err(error) = self
            .check_tools(system)
            .and_then(|()| check_billing(self.expected.login, system))
        {
            actions.push(Action::Stop(Err(error)));
            return;
        }
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        actions.push(Action::Say(Say::Started {
            model: system.model.clone(),
            peer: Some(self.expected.peer.clone()),
            billing: self.expected.login.billing(),
            resumed: self.expected.resumed,
        }));
        let version = system.claude_code_version.as_deref().unwrap_or_default();
        if !self.expected.peer.ends_with(version) {
            let message = format!("{} calls itself {version} in its stream", self.expected.peer);
            actions.push(warning("claude-version", message));
        }
    }

    fn check_tools(&self, system: &wire::System) -> Result<(), Error> {
        let tools = &self.expected.catalogue.tools;
        let want: BTreeSet<String> = tools.iter().map(|tool| prefixed(&tool.alias)).collect();
        let got: BTreeSet<String> = system.tools.iter().cloned().collect();
        let server = system.mcp_servers.iter().find(|server| server.name == SERVER);
        let status = server.map_or("absent", |server| server.status.as_str());
        let connected = want.is_empty() || status == "connected";
        if connected && want == got {
            return Ok(());
        }
        let list = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>().join(", ");
        let error = Error::new(
            &codes::TOOLS,
            format!("the CLI's tools are not the capsule's (its connection: {status})"),
        );
        Err(error
            .with("missing", list(want.difference(&got).collect()))
            .with("unwanted", list(got.difference(&want).collect())))
    }

    fn retry(&mut self, system: &wire::System, actions: &mut Vec<Action>) {
        self.answer.abandon(0, actions);
        let class = system
            .error
            .as_ref()
            .map(|error| error.as_str().map_or_else(|| error.to_string(), str::to_owned));
        let class = class.unwrap_or_default();
        if matches!(system.error_status, Some(401 | 403)) || class == "authentication_failed" {
            // The CLI would try again for minutes; a refused key stays refused.
            let status = system
                .error_status
                .map_or_else(|| class.clone(), |status| format!("status {status}"));
            let error = Error::new(&codes::AUTH, format!("the provider refused the credential ({status})"));
            actions.push(Action::Stop(Err(error)));
            return;
        }
        // Negative and not-a-number come out as zero.
        let after = Duration::from_millis(system.retry_delay_ms.clamp(0.0, 1e12) as u64);
        actions.push(Action::Say(Say::Retrying {
            attempt: system.attempt,
            after,
            cause: match system.error_status {
                Some(429) => ErrorKind::RateLimited,
                Some(500..) => ErrorKind::Overloaded,
                Some(_) => ErrorKind::BadRequest,
                None => ErrorKind::Network,
            },
        }));
        actions.push(Action::Silence(after));
    }

    /// A message that the CLI wrote itself. It is never part of an answer.
    fn synthetic(&mut self, said: wire::Assistant) {
        let texts = said.message.content.into_iter().filter_map(|block| match block {
            wire::Block::Text { text } => Some(text),
            _ => None,
        });
        self.failure = Some(Failure {
            class: said.error.unwrap_or_default(),
            status: said.api_error_status,
            text: texts.collect::<Vec<_>>().join("\n"),
        });
    }

    fn user(&self, user: &wire::User, actions: &mut Vec<Action>) {
        if user.is_synthetic {
            return;
        }
        for block in user.message.content.as_array().into_iter().flatten() {
            if block["type"] != "tool_result" {
                continue;
            }
            let Some(id) = block["tool_use_id"].as_str() else {
                continue;
            };
            let told = block["content"]
                .as_str()
                .map_or_else(|| block["content"].to_string(), str::to_owned);
            actions.push(Action::Returned {
                call: CallId::new(id),
                told: told.chars().take(500).collect(),
            });
        }
    }

    fn result(&mut self, result: Box<wire::RunResult>, actions: &mut Vec<Action>) {
        if result.session_id.is_some() {
            self.session.clone_from(&result.session_id);
        }
        let counted = usage_of(&result.usage);
        if counted != Usage::default() {
            // The CLI's own sum also has requests whose answer was taken back.
            let requests = self.usage.requests;
            self.usage = Usage { requests, ..counted };
            actions.push(Action::Say(Say::Usage(self.usage)));
        }
        self.result = Some(result);
        actions.push(Action::Ended);
    }
}

/// The CLI names the source of a key; of a subscription it says that there is none.
fn check_billing(login: Login, system: &wire::System) -> Result<(), Error> {
    let wanted = match login {
        Login::ApiKey => "ANTHROPIC_API_KEY",
        Login::Subscription | Login::Token => "none",
    };
    let source = system.api_key_source.as_deref().unwrap_or("nothing it names");
    if source == wanted {
        return Ok(());
    }
    let message = format!(
        "`login: {}` is set, but the CLI takes its credential from {source}",
        login.as_str()
    );
    Err(Error::new(&codes::BILLING, message))
}

fn is_synthetic(said: &wire::Assistant) -> bool {
    said.is_api_error_message || said.error.is_some() || said.message.model.as_deref() == Some("<synthetic>")
}

/// A tool as the CLI names it to the model.
pub(crate) fn prefixed(alias: &str) -> String {
    format!("mcp__{SERVER}__{alias}")
}

/// The alias behind the CLI's name; a name without the prefix stands for itself.
fn alias(name: &str) -> &str {
    let inner = name.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(SERVER));
    inner.and_then(|rest| rest.strip_prefix("__")).unwrap_or(name)
}

fn usage_of(usage: &wire::Usage) -> Usage {
    Usage {
        input: usage.input_tokens.unwrap_or(0),
        output: usage.output_tokens.unwrap_or(0),
        cache_read: usage.cache_read_input_tokens.unwrap_or(0),
        cache_write: usage.cache_creation_input_tokens.unwrap_or(0),
        reasoning: usage
            .output_tokens_details
            .as_ref()
            .and_then(|details| details.thinking_tokens)
            .unwrap_or(0),
        ..Usage::default()
    }
}

fn note(code: &'static str, data: Value) -> Action {
    Action::Say(Say::Note { code, data })
}

fn warning(code: &'static str, message: String) -> Action {
    Action::Say(Say::Warning { code, message })
}

#[cfg(test)]
mod tests;
