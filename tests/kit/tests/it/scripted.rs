//! A minimal transport that does everything right, and on request one thing wrong.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use capsule_api::{
    Billing, BlockId, BlockKind, Bytes, CallId, Cancel, Capabilities, Code, Conversation, ConversationSpec, Error,
    ErrorKind, Event, Health, HttpBody, Input, Limit, Outcome, Probe, Residue, ResumeState, Services, Settings,
    ToolCall, ToolDispatch, ToolReply, Transport, TransportDescriptor, TurnIo, Usage, http,
};
use capsule_transport_kit::{Stop, async_trait};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::peer::Frame;

const REFUSED: Code = code("scripted-auth", ErrorKind::Auth);
const OVERLOADED: Code = code("scripted-overloaded", ErrorKind::Overloaded);
const CUT: Code = code("scripted-cut", ErrorKind::Network);

const fn code(id: &'static str, kind: ErrorKind) -> Code {
    Code {
        id,
        kind,
        meaning: "The script wants it so.",
        remedy: "Change the script.",
    }
}

const ALL: Capabilities = Capabilities {
    streams: true,
    thinking: true,
    usage: true,
    resumes: true,
    parallel_tools: true,
    interrupts: true,
    host_owns_loop: true,
};

pub(crate) static DESCRIPTOR: TransportDescriptor = described("scripted");
pub(crate) static MISNAMED: TransportDescriptor = described("Bad_Name");

const fn described(name: &'static str) -> TransportDescriptor {
    TransportDescriptor {
        name,
        crate_name: env!("CARGO_PKG_NAME"),
        family: "example",
        summary: "plays a script",
        at_most: ALL,
        stops_within: Duration::from_millis(500),
        settings_schema: |_| {
            json!({
                "type": "object",
                "properties": {"fault": {"type": "string"}},
                "additionalProperties": false,
            })
        },
        example: "transport: scripted",
        recognises: None,
        codes: &[&REFUSED, &OVERLOADED, &CUT],
        build: |settings, services| Ok(Box::new(Scripted::new(&settings, services))),
    }
}

/// What is wrong with it; `none` when nothing is.
#[derive(Clone)]
struct Faults(String);

impl Faults {
    fn has(&self, fault: &str) -> bool {
        self.0 == fault
    }
}

struct Scripted {
    faults: Faults,
    services: Services,
    /// Only for the fault `mixes`.
    shared: Arc<Mutex<Option<TurnIo>>>,
}

impl Scripted {
    fn new(settings: &Settings, services: Services) -> Self {
        let fault = settings.raw()["fault"].as_str().unwrap();
        Self {
            faults: Faults(fault.to_owned()),
            services,
            shared: Arc::default(),
        }
    }
}

#[async_trait]
impl Transport for Scripted {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            streams: !self.faults.has("streams-in-secret"),
            ..ALL
        }
    }

    async fn probe(&self, _: bool) -> Probe {
        let mut probe = Probe::usable();
        if self.faults.has("unusable") {
            probe.usable = Err(Error::new(&CUT, "nobody answers"));
        }
        probe
    }

    async fn open(&self, spec: ConversationSpec) -> Result<Box<dyn Conversation>, Error> {
        let resumed = spec.resume.as_ref().filter(|_| !self.faults.has("starts-anew"));
        Ok(Box::new(Talk {
            history: resumed.map_or_else(Vec::new, |state| state.data.as_array().unwrap().clone()),
            faults: self.faults.clone(),
            services: self.services.clone(),
            shared: self.shared.clone(),
            last: None,
            spec,
        }))
    }
}

struct Talk {
    history: Vec<Value>,
    faults: Faults,
    services: Services,
    shared: Arc<Mutex<Option<TurnIo>>>,
    last: Option<TurnIo>,
    spec: ConversationSpec,
}

#[async_trait]
impl Conversation for Talk {
    async fn turn(&mut self, input: Input, io: TurnIo) -> Result<Outcome, Error> {
        self.last = Some(io.clone());
        let io = match self.faults.has("mixes") {
            true => self.shared.lock().unwrap().get_or_insert(io).clone(),
            false => io,
        };
        let mut history = self.history.clone();
        history.push(json!({"user": input.as_text()}));
        let deaf = Cancel::new();
        let cancel = if self.faults.has("deaf") {
            deaf
        } else {
            io.cancel.clone()
        };
        let outcome = tokio::select! {
            biased;
            _ = cancel.cancelled() => Ok(Outcome::Cancelled),
            outcome = self.requests(&mut history, &io) => outcome,
        };
        if self.faults.has("waits-for-room") {
            io.events.ready().await;
        }
        // What was cancelled, failed or dropped never was, so the conversation can always go on.
        if matches!(outcome, Ok(Outcome::Completed { .. })) && !self.faults.has("forgets") {
            self.history = history;
        }
        if matches!(outcome, Ok(Outcome::Cancelled)) && self.faults.has("lost-by-cancel") {
            self.spec.limits.requests = 0;
        }
        outcome
    }

    fn health(&self) -> Health {
        Health::Ready
    }

    fn resume_state(&self) -> Option<ResumeState> {
        Some(ResumeState {
            transport: "scripted".to_owned(),
            version: 1,
            data: self.history.clone().into(),
        })
    }

    async fn close(self: Box<Self>, _: Duration) -> Residue {
        if let Some(io) = self.last.filter(|_| self.faults.has("last-word")) {
            io.events.emit(Event::Usage(Usage::default()));
        }
        Residue::default()
    }
}

/// What one request brought.
#[derive(Default)]
struct Answer {
    text: String,
    thinking: String,
    calls: Vec<ToolCall>,
    stop: Option<Stop>,
}

impl Talk {
    async fn requests(&self, history: &mut Vec<Value>, io: &TurnIo) -> Result<Outcome, Error> {
        io.events.emit(Event::Started {
            model: None,
            peer: None,
            billing: Billing::Free,
            resumed: self.spec.resume.is_some(),
        });
        if self.spec.limits.requests == 0 {
            return Ok(Outcome::Completed { text: String::new() });
        }
        let limit = self.spec.limits.requests + u32::from(self.faults.has("one-more"));
        for n in 1..=limit {
            let n = n - u32::from(self.faults.has("miscounts"));
            io.events.emit(Event::RequestStarted { n });
            let answer = self.answer(history, io, n).await?;
            io.events.emit(Event::RequestEnded {
                n,
                stop: format!("{:?}", answer.stop),
            });
            if !self.faults.has("no-usage") {
                let usage = Usage {
                    requests: n,
                    ..Usage::default()
                };
                io.events.emit(Event::Usage(usage));
            }
            history.push(json!({"assistant": answer.text}));
            if answer.calls.is_empty() {
                return Ok(self.ended(answer));
            }
            for reply in self.run(answer.calls, io).await {
                if self.faults.has("gives-up") && reply.is_error() {
                    return Err(Error::new(&CUT, "a tool failed"));
                }
                history.push(json!({"tool": reply.joined_text()}));
            }
        }
        Ok(Outcome::LimitReached { which: Limit::Requests })
    }

    fn ended(&self, answer: Answer) -> Outcome {
        let mut text = answer.text;
        if self.faults.has("short-answer") {
            text.pop();
        }
        if self.faults.has("thinks-aloud") {
            text.insert_str(0, &answer.thinking);
        }
        match answer.stop {
            Some(Stop::Refusal) if !self.faults.has("pleased") => Outcome::Refused { text },
            Some(Stop::MaxTokens) if !self.faults.has("pleased") => Outcome::Truncated { partial: text },
            _ => Outcome::Completed { text },
        }
    }

    async fn answer(&self, history: &[Value], io: &TurnIo, n: u32) -> Result<Answer, Error> {
        let mut body = self.send(history, io).await?;
        let mut answer = Answer::default();
        let mut block: Option<(BlockId, String)> = None;
        loop {
            io.events.ready().await;
            let chunk = match body.chunk().await {
                Err(_) if self.faults.has("hopeful") => None,
                chunk => chunk?,
            };
            let Some(chunk) = chunk else {
                if self.faults.has("hopeful") {
                    return Ok(answer);
                }
                return Err(Error::new(&CUT, "the stream ended in the middle"));
            };
            match serde_json::from_slice(&chunk).unwrap() {
                Frame::Piece { thinking, text } => {
                    let (block, so_far) = block.get_or_insert_with(|| (io.events.block(), String::new()));
                    so_far.push_str(&text);
                    let (block, kind) = (*block, kind(thinking));
                    if !self.faults.has("one-delta") {
                        io.events.emit(Event::Delta { block, kind, text });
                    }
                }
                Frame::BlockEnd { thinking } => {
                    let (block, text) = block.take().unwrap();
                    self.block_end(block, kind(thinking), text, io, &mut answer);
                }
                Frame::Call { alias, arguments } => {
                    let id = CallId::new(format!("{}-{n}-{}", self.spec.context, answer.calls.len()));
                    let name = self.spec.catalogue.name_of(&alias);
                    answer.calls.push(ToolCall::new(id, name, arguments));
                }
                Frame::Stop(stop) => {
                    answer.stop = Some(stop);
                    return Ok(answer);
                }
            }
        }
    }

    fn block_end(&self, block: BlockId, kind: BlockKind, text: String, io: &TurnIo, answer: &mut Answer) {
        match kind {
            BlockKind::Text => answer.text.push_str(&text),
            BlockKind::Thinking => answer.thinking.push_str(&text),
        }
        if self.faults.has("one-delta") {
            let text = text.clone();
            io.events.emit(Event::Delta { block, kind, text });
        }
        if !self.faults.has("no-block") {
            io.events.emit(Event::Block { block, kind, text });
        }
    }

    async fn send(&self, history: &[Value], io: &TurnIo) -> Result<Box<dyn HttpBody>, Error> {
        for attempt in 1.. {
            let request = http::Request::new(Bytes::from(Value::from(history).to_string()));
            let response = self.services.http.send(request).await?;
            match response.status().as_u16() {
                401 if self.faults.has("vague") => return Err(Error::new(&CUT, "something went wrong")),
                401 => return Err(Error::new(&REFUSED, "the peer refuses the key")),
                529 if attempt > 1 => break,
                529 if self.faults.has("silent-retry") => {}
                529 => io.events.emit(Event::Retrying {
                    attempt,
                    after: Duration::ZERO,
                    cause: ErrorKind::Overloaded,
                }),
                _ => return Ok(response.into_body()),
            }
        }
        Err(Error::new(&OVERLOADED, "the peer is overloaded"))
    }

    async fn run(&self, calls: Vec<ToolCall>, io: &TurnIo) -> Vec<ToolReply> {
        for call in &calls {
            io.events.emit(Event::Call {
                call: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            });
        }
        if self.faults.has("one-by-one") {
            let mut replies = Vec::new();
            for call in calls {
                replies.push(io.tools.call(call).await);
            }
            return replies;
        }
        if self.faults.has("calls-twice") {
            for call in &calls {
                io.tools.call(call.clone()).await;
            }
        }
        if self.faults.has("detached") {
            let tools = io.tools.clone();
            let detached = tokio::spawn(async move { all(&*tools, calls).await });
            return detached.await.unwrap();
        }
        all(&*io.tools, calls).await
    }
}

async fn all(tools: &dyn ToolDispatch, calls: Vec<ToolCall>) -> Vec<ToolReply> {
    join_all(calls.into_iter().map(|call| tools.call(call))).await
}

fn kind(thinking: bool) -> BlockKind {
    if thinking { BlockKind::Thinking } else { BlockKind::Text }
}
