//! Reads the app-server's lines: a line in, what the model did out. Pure: no I/O, no time.
//!
//! Nothing of an answer is passed on before the turn has told that the capsule's tools are there ([`Reader::proven`]). A thread that was
//! started by this process also tells the model's own items, so that each answer's end is known exactly; a thread that goes on tells only
//! what is made of them, and an answer ends where its tokens are counted, after its calls have run.

mod answer;
mod outcome;
mod wire;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use capsule_api::{CallId, Catalogue, Error, Event as Say, Outcome, Usage};
use capsule_transport_process::Login;
use serde_json::{Value, json};

use crate::{codes, command::PROVIDER, protocol};
use answer::Answer;

/// What follows from a line.
#[derive(Debug)]
pub(crate) enum Action {
    /// An event for the task's log. Its block ids are the reader's own, from 0 without gaps.
    Say(Say),
    /// A line for the app-server.
    Send(Vec<u8>),
    /// The thread is there: the tools are to be proven, then the turn is started.
    Opened,
    /// Model request number `n` is being made.
    Request(u32),
    /// The last allowed request was answered with these calls; when they have run, the turn is over.
    Last(Vec<CallId>),
    /// The CLI reports the result of a call, which must have come through the bridge.
    Returned {
        /// The call.
        call: CallId,
        /// What the model was told, for the warning about a call that did not come through.
        told: String,
    },
    /// The run must be ended: with this outcome, or this failure.
    Stop(Result<Outcome, Error>),
    /// The turn is over; only the exit is still to come.
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
    /// Model requests that the turn may make.
    pub(crate) requests: u32,
    /// The model's own calls are scripts, which call the tools.
    pub(crate) code_mode: bool,
}

/// The state of one run.
pub(crate) struct Reader {
    expected: Expected,
    thread: Option<String>,
    /// Whether the CLI has told that it uses the login that is to pay; with a key there is nothing to tell.
    paid: bool,
    model: Option<String>,
    turn: Option<String>,
    proven: bool,
    /// Model requests begun.
    requests: u32,
    /// Whether the last of them is still unanswered.
    waiting: bool,
    /// Whether the model's own items are told.
    raw: bool,
    /// Failed tries of the current request.
    tries: u32,
    answer: Answer,
    usage: Usage,
    /// Calls whose result was reported. Bounded by the turn.
    returned: HashSet<CallId>,
    /// What was to be told before the turn's first event.
    early: Vec<Action>,
    end: Option<wire::Turn>,
    unknown: BTreeMap<String, u32>,
    junk: u32,
}

impl Reader {
    pub(crate) fn new(expected: Expected) -> Self {
        Self {
            paid: expected.login != Login::Subscription,
            expected,
            thread: None,
            model: None,
            turn: None,
            proven: false,
            requests: 0,
            waiting: false,
            raw: false,
            tries: 0,
            answer: Answer::default(),
            usage: Usage::default(),
            returned: HashSet::new(),
            early: Vec::new(),
            end: None,
            unknown: BTreeMap::new(),
            junk: 0,
        }
    }

    /// The CLI's id of the conversation, once it is known.
    pub(crate) fn thread(&self) -> Option<&str> {
        self.thread.as_deref()
    }

    /// The tools that the CLI must have been told, and no others.
    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.expected.catalogue
    }

    /// The line that interrupts the turn, once there is one.
    pub(crate) fn interrupt(&self) -> Option<Vec<u8>> {
        Some(protocol::interrupt(self.thread.as_deref()?, self.turn.as_deref()?))
    }

    /// Whether the turn is over.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// The capsule's tools, and nothing else, were listed to the CLI.
    pub(crate) fn proven(&mut self) -> Vec<Action> {
        self.proven = true;
        let started = Action::Say(Say::Started {
            model: self.model.clone(),
            peer: Some(self.expected.peer.clone()),
            billing: self.expected.login.billing(),
            resumed: self.expected.resumed,
        });
        let early = std::mem::take(&mut self.early);
        std::iter::once(started).chain(early).collect()
    }

    /// Reads one line of stdout. Text that is not JSON is counted and skipped; several objects on one line are read one by one.
    pub(crate) fn line(&mut self, line: &str) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut values = serde_json::Deserializer::from_str(line).into_iter::<Value>();
        for value in values.by_ref() {
            match value {
                Ok(value @ Value::Object(_)) => match serde_json::from_value(value) {
                    Ok(message) => self.message(message, &mut actions),
                    Err(error) => self.junk(&error.to_string(), &mut actions),
                },
                Ok(_) | Err(_) => {
                    self.junk(line, &mut actions);
                    break;
                }
            }
        }
        if self.proven {
            return actions;
        }
        // The first event says who answers. Bounded: before it a CLI has a handful of lines.
        let says = |action: &Action| matches!(action, Action::Say(_));
        let (early, actions): (Vec<_>, Vec<_>) = actions.into_iter().partition(says);
        self.early.extend(early);
        self.early.truncate(MOST_EARLY);
        actions
    }

    /// Takes note of output that is no message. The first of it is shown, the rest counted.
    fn junk(&mut self, line: &str, actions: &mut Vec<Action>) {
        self.junk += 1;
        if self.junk == 1 {
            let shown: String = line.chars().take(200).collect();
            actions.push(note("codex-junk", json!({ "first": shown })));
        }
    }

    /// What is left to say when the run is over, however it ended: the counts of what was not understood.
    pub(crate) fn close(&mut self) -> Vec<Action> {
        let mut actions = std::mem::take(&mut self.early);
        if self.junk > 1 {
            actions.push(note("codex-junk", json!({ "lines": self.junk })));
        }
        if !self.unknown.is_empty() {
            actions.push(note("codex-unknown-events", json!(std::mem::take(&mut self.unknown))));
        }
        actions
    }

    fn message(&mut self, message: wire::Line, actions: &mut Vec<Action>) {
        match (message.method, message.id) {
            (Some(method), Some(id)) => self.asked(&method, &id, actions),
            (Some(method), None) => self.notified(&method, message.params, actions),
            (None, Some(id)) => match message.error {
                Some(error) => self.refused(&id, error.message, actions),
                None => self.answered(&id, message.result, actions),
            },
            (None, None) => self.junk("a message without a method and an id", actions),
        }
    }

    /// A request of the app-server's. With our configuration it has none.
    fn asked(&mut self, method: &str, id: &Value, actions: &mut Vec<Action>) {
        actions.push(Action::Send(protocol::refusal(id)));
        actions.push(warning(
            "codex-asked",
            format!("the CLI asked `{method}` and was refused"),
        ));
    }

    fn answered(&mut self, id: &Value, result: Value, actions: &mut Vec<Action>) {
        if *id == json!(protocol::AUTH) {
            return self.authenticated(&result, actions);
        }
        if *id != json!(protocol::THREAD) {
            return;
        }
        let opened: wire::Opened = match serde_json::from_value(result) {
            Ok(opened) => opened,
            Err(error) => return self.junk(&format!("the thread: {error}"), actions),
        };
        let provider = opened.model_provider.as_deref().unwrap_or("one it does not name");
        if provider != PROVIDER {
            let message = format!("the CLI would ask another provider than the manifest's: {provider}");
            return actions.push(Action::Stop(Err(Error::new(&codes::BILLING, message))));
        }
        self.thread = Some(opened.thread.id);
        self.model = opened.model;
        if self.paid {
            actions.push(Action::Opened);
        }
    }

    /// The proof that the lent login pays, and not a key that lies elsewhere.
    fn authenticated(&mut self, status: &Value, actions: &mut Vec<Action>) {
        match status["authMethod"].as_str() {
            Some("chatgpt") => {
                self.paid = true;
                if self.thread.is_some() {
                    actions.push(Action::Opened);
                }
            }
            Some(other) => {
                let message = format!("`login: subscription` is set, but the CLI takes its credential from `{other}`");
                actions.push(Action::Stop(Err(Error::new(&codes::BILLING, message))));
            }
            None => {
                let message = "the CLI does not take the login that was lent to it";
                actions.push(Action::Stop(Err(Error::new(&codes::AUTH, message))));
            }
        }
    }

    fn refused(&mut self, id: &Value, message: String, actions: &mut Vec<Action>) {
        let code = match id.as_u64() {
            Some(protocol::THREAD) if message.contains("required MCP servers failed") => &codes::TOOLS,
            Some(protocol::THREAD) if message.contains("no rollout found") => &codes::SESSION_LOST,
            Some(protocol::TURN) if message.contains("exceeds the maximum length") => &codes::INPUT_TOO_LONG,
            Some(protocol::AUTH) => &codes::BILLING,
            Some(protocol::INITIALIZE | protocol::THREAD | protocol::TURN) => &codes::FAILED,
            // An interrupt that came too late.
            _ => return,
        };
        let shown: String = message.chars().take(500).collect();
        actions.push(Action::Stop(Err(Error::new(code, shown))));
    }

    fn notified(&mut self, method: &str, params: Value, actions: &mut Vec<Action>) {
        if let "configWarning" | "deprecationNotice" | "warning" | "guardianWarning" | "model/rerouted" = method {
            return remark(method, &params, actions);
        }
        if !IN_A_TURN.contains(&method) {
            return self.count_unknown(method);
        }
        let params: wire::Params = match serde_json::from_value(params) {
            Ok(params) => params,
            Err(error) => return self.junk(&format!("{method}: {error}"), actions),
        };
        let foreign = params.thread_id.is_some() && params.thread_id != self.thread;
        let earlier = params.turn_id.is_some() && params.turn_id != self.turn;
        if foreign || (earlier && method != "turn/started") {
            return;
        }
        if !self.proven {
            let message = "the CLI began to answer before it had the capsule's tools";
            return actions.push(Action::Stop(Err(Error::new(&codes::TOOLS, message))));
        }
        self.in_turn(method, params, actions);
    }

    fn in_turn(&mut self, method: &str, params: wire::Params, actions: &mut Vec<Action>) {
        match method {
            "turn/started" => {
                self.turn = params.turn.map(|turn| turn.id);
                self.begin_request(actions);
            }
            "turn/completed" => {
                self.end = params.turn;
                actions.push(Action::Ended);
            }
            "item/started" => self.item(params.item, false, actions),
            "item/completed" => self.item(params.item, true, actions),
            "item/agentMessage/delta" => self.text_delta(&params.item_id, params.delta, actions),
            "item/reasoning/summaryTextDelta" => {
                self.thinking_delta(&params.item_id, params.summary_index, params.delta, actions);
            }
            "item/reasoning/textDelta" => self.thinking_delta(&params.item_id, 0, params.delta, actions),
            "rawResponseItem/completed" => self.raw_item(params.item, actions),
            "rawResponse/completed" => {
                self.raw = true;
                self.end_request(params.usage.as_ref(), actions);
            }
            "thread/tokenUsage/updated" => self.counted(params.token_usage, actions),
            "error" => self.error(params.error.unwrap_or_default(), params.will_retry, actions),
            _ => {}
        }
    }

    fn count_unknown(&mut self, method: &str) {
        if KNOWN.contains(&method) {
            return;
        }
        // Bounded: a peer that invents methods for ever fills one counter.
        let key = if self.unknown.len() < 32 { method } else { "others" };
        *self.unknown.entry(key.to_owned()).or_default() += 1;
    }
}

/// Notifications that tell what happens in a turn.
const IN_A_TURN: &[&str] = &[
    "turn/started",
    "turn/completed",
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "rawResponseItem/completed",
    "rawResponse/completed",
    "thread/tokenUsage/updated",
    "error",
];

/// Notifications that say nothing which is told elsewhere.
const KNOWN: &[&str] = &[
    "account/rateLimits/updated",
    "account/updated",
    "item/mcpToolCall/progress",
    "item/reasoning/summaryPartAdded",
    "mcpServer/startupStatus/updated",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/compacted",
    "thread/name/updated",
    "thread/readState/changed",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "turn/diff/updated",
];

/// What the CLI remarks about itself. A part of the configuration that it ignores may be one that contains it.
fn remark(method: &str, params: &Value, actions: &mut Vec<Action>) {
    let text = params["summary"].as_str().or_else(|| params["message"].as_str());
    let text: String = text
        .map_or_else(|| params.to_string(), str::to_owned)
        .chars()
        .take(500)
        .collect();
    if method == "configWarning" && (text.contains("nrecognized") || text.contains("nknown")) {
        return actions.push(Action::Stop(Err(Error::new(&codes::CONFIG, text))));
    }
    actions.push(match method {
        "configWarning" | "deprecationNotice" => note("codex-remark", json!({ "text": text })),
        _ => warning("codex-warning", text),
    });
}

fn usage_of(tokens: &wire::Tokens) -> Usage {
    let cached = tokens
        .cached_input_tokens
        .saturating_add(tokens.cache_write_input_tokens);
    Usage {
        input: tokens.input_tokens.saturating_sub(cached),
        output: tokens.output_tokens,
        cache_read: tokens.cached_input_tokens,
        cache_write: tokens.cache_write_input_tokens,
        reasoning: tokens.reasoning_output_tokens,
        ..Usage::default()
    }
}

fn note(code: &'static str, data: Value) -> Action {
    Action::Say(Say::Note { code, data })
}

fn warning(code: &'static str, message: String) -> Action {
    Action::Say(Say::Warning { code, message })
}

/// Events that are kept until the first one is told; further ones are dropped.
const MOST_EARLY: usize = 100;

/// How long until the next try; the CLI does not say.
const NOT_SAID: Duration = Duration::ZERO;

#[cfg(test)]
mod tests;
