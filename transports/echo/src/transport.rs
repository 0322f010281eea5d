//! The transport and its conversation.

use capsule_api::{
    Billing, BlockKind, CallId, Capabilities, Code, Conversation, ConversationSpec, Error, ErrorKind, Event, Input,
    Outcome, Probe, StopReason, ToolCall, Transport, TurnIo, Usage, async_trait,
};
use serde_json::Value;

use crate::{CAPABILITIES, settings::EchoSettings};

/// The input asked for a failure.
const FAILED: Code = Code {
    id: "echo-failed",
    kind: ErrorKind::Protocol,
    meaning: "The input of the transport `echo` asked for a failure.",
    remedy: "Send an input other than `fail`.",
};

/// A line that is no command.
const MALFORMED: Code = Code {
    id: "echo-malformed",
    kind: ErrorKind::BadRequest,
    meaning: "The transport `echo` cannot take this input.",
    remedy: "Write each call as `call NAME JSON`, with a JSON object, on a line of its own, and attach no files.",
};

pub(crate) const CODES: &[&Code] = &[&FAILED, &MALFORMED];

pub(crate) struct Echo {
    settings: EchoSettings,
}

impl Echo {
    pub(crate) fn new(settings: EchoSettings) -> Self {
        Self { settings }
    }
}

#[async_trait]
impl Transport for Echo {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    async fn probe(&self, _online: bool) -> Probe {
        Probe::usable()
    }

    async fn open(&self, _: ConversationSpec) -> Result<Box<dyn Conversation>, Error> {
        let prefix = self.settings.prefix.clone();
        Ok(Box::new(Talk { prefix, turns: 0 }))
    }
}

struct Talk {
    prefix: String,
    /// Turns so far, so that no call id comes twice in a task of several turns.
    turns: u32,
}

#[async_trait]
impl Conversation for Talk {
    async fn turn(&mut self, input: Input, io: TurnIo) -> Result<Outcome, Error> {
        self.turns += 1;
        // One `select!` around everything makes every await below end with the cancel. Nothing is spawned, so a dropped turn leaves nothing.
        tokio::select! {
            biased;
            _ = io.cancel.cancelled() => Ok(Outcome::Cancelled),
            outcome = self.obey(&input, &io) => outcome,
        }
    }
}

impl Talk {
    /// Does what the input says, as a model would in one request.
    async fn obey(&self, input: &Input, io: &TurnIo) -> Result<Outcome, Error> {
        let text = input
            .as_text()
            .ok_or_else(|| Error::new(&MALFORMED, "`echo` takes no files"))?;
        io.events.emit(Event::Started {
            model: None,
            peer: None,
            billing: Billing::Free,
            resumed: false,
        });
        io.events.emit(Event::RequestStarted { n: 1 });
        let (command, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let outcome = match (command, rest) {
            ("ask", question) if !question.is_empty() => Outcome::InputRequired {
                prompt: question.to_owned(),
            },
            ("call", _) => say(&self.calls(&text, io).await?, io).await,
            ("wait", text) => {
                say(text, io).await;
                std::future::pending().await
            }
            ("refuse", "") => Outcome::Refused { text: String::new() },
            ("fail", "") => return Err(Error::new(&FAILED, "the input says `fail`")),
            _ => say(&format!("{}{text}", self.prefix), io).await,
        };
        let stop = match outcome {
            Outcome::Refused { .. } => StopReason::Refusal,
            _ => StopReason::EndTurn,
        };
        io.events.emit(Event::RequestEnded {
            n: 1,
            stop: stop.as_str().to_owned(),
        });
        io.events.emit(Event::Usage(Usage {
            requests: 1,
            ..Usage::default()
        }));
        Ok(outcome)
    }

    /// Runs the calls, one line each and in order, and answers their results.
    async fn calls(&self, text: &str, io: &TurnIo) -> Result<String, Error> {
        let lines = text.lines().filter(|line| !line.trim().is_empty()).enumerate();
        // All are read before the first one runs: an input that is wrong in part does nothing.
        let calls: Vec<_> = lines.map(|(n, line)| self.parse(n, line)).collect::<Result<_, _>>()?;
        let mut results = Vec::new();
        for call in calls {
            // The transport says what the model asked for; what came of it, the dispatch says under the same id.
            io.events.emit(Event::Call {
                call: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            });
            results.push(io.tools.call(call).await.joined_text());
            // A call may run and be cancelled within one poll, so that the `select!` has not looked yet. It does now, and ends the turn.
            if io.cancel.is_cancelled() {
                std::future::pending::<()>().await;
            }
        }
        Ok(results.join("\n"))
    }

    /// `call NAME JSON`, with the tool's declared name and an object.
    fn parse(&self, n: usize, line: &str) -> Result<ToolCall, Error> {
        let id = CallId::new(format!("echo-{}-{}", self.turns, n + 1));
        let rest = line.trim().strip_prefix("call ");
        let parts = rest.and_then(|rest| rest.trim_start().split_once(' '));
        let call = parts.and_then(|(name, arguments)| {
            let arguments: Value = serde_json::from_str(arguments).ok()?;
            arguments.is_object().then(|| ToolCall::new(id, name, arguments))
        });
        call.ok_or_else(|| Error::new(&MALFORMED, format!("`{line}` is no call")))
    }
}

/// Streams the answer word by word; the block at the end is what counts.
async fn say(text: &str, io: &TurnIo) -> Outcome {
    let block = io.events.block();
    let kind = BlockKind::Text;
    for word in text.split_inclusive(' ') {
        io.events.ready().await;
        io.events.emit(Event::Delta {
            block,
            kind,
            text: word.to_owned(),
        });
    }
    io.events.emit(Event::Block {
        block,
        kind,
        text: text.to_owned(),
    });
    Outcome::Completed { text: text.to_owned() }
}
