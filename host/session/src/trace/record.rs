//! Entries of the log as JSON.

use std::time::Duration;

use capsule_api::{
    BlockKind, CallId, Content, Error, Event, Outcome, Part, Progress, Residue, RunEvent, Scratch, Secrets, ToolReply,
    Usage,
};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{Entry, RunStart, TaskState, What};

/// The version of the record's form.
const VERSION: u32 = 1;

/// How much of what was said is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    /// No file at all.
    None,
    /// Sizes and hashes in the place of texts, arguments and results.
    #[default]
    Summary,
    /// Everything but secrets.
    Content,
}

/// A line of the trace.
pub type Record = Value;

/// The record of an entry; `None` for what is only live (deltas and progress), unless `live`.
pub fn records(task: &str, entry: &Entry, capture: Capture, live: bool) -> Option<Record> {
    let scribe = Scribe { capture };
    let (kind, fields) = match &entry.what {
        What::RunStart(start) => ("run_start", scribe.run_start(start)),
        What::State(state) => ("state", fields(json!({"state": TaskState::as_str(*state)}))),
        What::Model(event) => scribe.model(event, live)?,
        What::Run(event) => scribe.run(event, live)?,
        What::RunEnd { outcome, residue, late } => ("run_end", scribe.run_end(outcome, residue, *late)),
    };
    let mut record = Map::new();
    record.insert("v".into(), VERSION.into());
    record.insert("seq".into(), entry.seq.into());
    record.insert(
        "ts".into(),
        humantime::format_rfc3339_millis(entry.at).to_string().into(),
    );
    record.insert("task".into(), task.into());
    record.insert("kind".into(), kind.into());
    record.extend(fields);
    Some(Value::Object(record))
}

/// The record without protected values. Only what was said is rewritten, also where it is a key of somebody's JSON: the record's own keys
/// and words stay, whatever a secret may look like.
pub fn redacted(record: Record, secrets: &dyn Secrets) -> Record {
    const OWN_WORDS: [&str; 6] = ["v", "seq", "ts", "task", "kind", "state"];
    let Value::Object(record) = record else { return record };
    let fields = record.into_iter().map(|(key, value)| {
        let own = OWN_WORDS.contains(&key.as_str());
        let value = if own { value } else { said(value, &key, secrets) };
        (key, value)
    });
    Value::Object(fields.collect())
}

/// Names under which a record holds JSON whose keys are not the record's own.
const FOREIGN: [&str; 5] = ["arguments", "input", "result", "data", "metadata"];

fn said(value: Value, under: &str, secrets: &dyn Secrets) -> Value {
    match value {
        Value::String(text) => secrets.redact(&text).into_owned().into(),
        Value::Array(items) => items.into_iter().map(|item| said(item, under, secrets)).collect(),
        Value::Object(map) => {
            let foreign = FOREIGN.contains(&under);
            let fields = map.into_iter().map(|(key, value)| {
                let inner = if foreign { under } else { key.as_str() };
                let value = said(value, inner, secrets);
                let key = if foreign {
                    secrets.redact(&key).into_owned()
                } else {
                    key
                };
                (key, value)
            });
            Value::Object(fields.collect())
        }
        other => other,
    }
}

type Fields = Map<String, Value>;

fn fields(object: Value) -> Fields {
    match object {
        // Absent is shorter than null and means the same.
        Value::Object(map) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

struct Scribe {
    capture: Capture,
}

impl Scribe {
    fn text(&self, text: &str) -> Value {
        match self.capture {
            Capture::Content => text.into(),
            _ => summary(text.as_bytes()),
        }
    }

    fn json(&self, value: &Value) -> Value {
        match self.capture {
            Capture::Content => value.clone(),
            _ => summary(value.to_string().as_bytes()),
        }
    }

    fn run_start(&self, start: &RunStart) -> Fields {
        let parts: Vec<_> = start.input.parts.iter().map(|part| self.part(part)).collect();
        fields(json!({
            "capsule": start.capsule.0,
            "capsule_version": start.capsule.1,
            "transport": start.transport,
            "chosen_by": start.chosen_by,
            "context": start.context,
            "input": parts,
        }))
    }

    fn part(&self, part: &Part) -> Value {
        match part {
            Part::Text(text) => self.text(text),
            Part::Data(value) => self.json(value),
            Part::File {
                name,
                media_type,
                bytes,
            } => {
                json!({"file": name, "media_type": media_type, "content": summary(bytes)})
            }
            _ => Value::Null,
        }
    }

    fn model(&self, event: &Event, live: bool) -> Option<(&'static str, Fields)> {
        let (kind, object) = match event {
            Event::Started {
                model,
                peer,
                billing,
                resumed,
            } => {
                let billed = snake(&format!("{billing:?}"));
                (
                    "started",
                    json!({"model": model, "peer": peer, "billed": billed, "resumed": resumed}),
                )
            }
            Event::RequestStarted { n } => ("request_start", json!({"n": n})),
            Event::RequestEnded { n, stop } => ("request_end", json!({"n": n, "stop": stop})),
            Event::Delta { block, kind, text } if live => (
                "delta",
                json!({"block": block.0, "of": block_kind(*kind), "text": self.text(text)}),
            ),
            Event::Block { block, kind, text } => (
                "block",
                json!({"block": block.0, "of": block_kind(*kind), "text": self.text(text)}),
            ),
            Event::Retracted { block } => ("retracted", json!({"block": block.0})),
            Event::CallStarted { call, name } if live => ("call_begun", json!({"call": call.as_str(), "name": name})),
            Event::CallProgress { call, input_bytes } if live => (
                "call_progress",
                json!({"call": call.as_str(), "input_bytes": input_bytes}),
            ),
            Event::Call { call, name, arguments } => (
                "call",
                json!({"call": call.as_str(), "name": name, "arguments": self.json(arguments)}),
            ),
            Event::CallAbandoned { call } => ("call_abandoned", json!({"call": call.as_str()})),
            Event::Usage(usage) => ("usage", usage_json(usage)),
            Event::Retrying { attempt, after, cause } => (
                "retry",
                json!({"attempt": attempt, "after_ms": millis(*after), "cause": cause.as_str()}),
            ),
            Event::Compacted { before, after } => ("compacted", json!({"before": before, "after": after})),
            Event::Warning { code, message } => ("warning", json!({"code": code, "message": message})),
            Event::Note { code, data } => ("note", json!({"code": code, "data": data})),
            _ => return None,
        };
        Some((kind, fields(object)))
    }

    fn run(&self, event: &RunEvent, live: bool) -> Option<(&'static str, Fields)> {
        let (kind, object) = match event {
            RunEvent::Started { call, name, arguments } => (
                "call_start",
                json!({"call": call.as_str(), "name": name, "arguments": self.json(arguments)}),
            ),
            RunEvent::Chunk { call, kind, text } => (
                "call_text",
                json!({"call": call.as_str(), "of": block_kind(*kind), "text": self.text(text)}),
            ),
            RunEvent::Progress { call, progress } if live => ("call_step", step(call, progress)?),
            RunEvent::Ended {
                call,
                name,
                reply,
                duration,
            } => {
                let denied = (reply.status == capsule_api::ToolStatus::Denied).then_some(true);
                let object = json!({
                    "call": call.as_str(),
                    "name": name,
                    "status": reply.status.as_str(),
                    "ms": millis(*duration),
                    "denied": denied,
                    "result": self.reply(reply),
                    "full_bytes": reply.full_bytes,
                    "metadata": metadata(reply),
                });
                ("call_end", object)
            }
            RunEvent::Missed { call, why } => ("call_missed", json!({"call": call.as_str(), "why": why})),
            RunEvent::Warning { code, message } => ("warning", json!({"code": code, "message": message})),
            _ => return None,
        };
        Some((kind, fields(object)))
    }

    fn reply(&self, reply: &ToolReply) -> Value {
        let pieces = reply.content.iter().map(|piece| match piece {
            Content::Text(text) => self.text(text),
            Content::Image { media_type, data } | Content::Audio { media_type, data } => {
                json!({"media_type": media_type, "content": summary(data)})
            }
            Content::Resource(value) => self.json(value),
            _ => Value::Null,
        });
        Value::Array(pieces.collect())
    }

    fn run_end(&self, outcome: &Result<Outcome, Error>, residue: &Residue, late: u64) -> Fields {
        let outcome = match outcome {
            Ok(outcome) => self.outcome(outcome),
            Err(error) => json!({"is": "failed", "error": error_json(error)}),
        };
        let left = (!residue.is_empty()).then(|| {
            let processes: Vec<_> = residue
                .processes
                .iter()
                .map(|(pid, name)| json!({"pid": pid, "name": name}))
                .collect();
            let calls: Vec<_> = residue.calls.iter().map(CallId::as_str).collect();
            // A path need not be text, and JSON is.
            let files: Vec<_> = residue.files.iter().map(|file| file.display().to_string()).collect();
            json!({"processes": processes, "files": files, "calls": calls})
        });
        let late = (late > 0).then_some(late);
        fields(json!({"outcome": outcome, "residue": left, "scratch": scratch(&residue.scratch), "late_events": late}))
    }

    fn outcome(&self, outcome: &Outcome) -> Value {
        let is = outcome.as_str();
        match outcome {
            Outcome::Completed { text } | Outcome::Refused { text } | Outcome::Truncated { partial: text } => {
                json!({"is": is, "text": self.text(text)})
            }
            Outcome::InputRequired { prompt } => json!({"is": is, "prompt": self.text(prompt)}),
            Outcome::LimitReached { which } => json!({"is": is, "limit": which.as_str()}),
            _ => json!({"is": is}),
        }
    }
}

/// An error as the trace and machine output show it.
fn error_json(error: &Error) -> Value {
    let context: Map<_, _> = error
        .context
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone().into()))
        .collect();
    let object = json!({
        "kind": error.kind.as_str(),
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retry != capsule_api::Retry::Never,
        "context": (!context.is_empty()).then_some(context),
    });
    Value::Object(fields(object))
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "requests": usage.requests,
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
        "cost": usage.cost_micros.map(|micros| micros as f64 / 1e6),
    })
}

fn step(call: &CallId, progress: &Progress) -> Option<Value> {
    let call = call.as_str();
    Some(match progress {
        Progress::Step { done, total, message } => {
            json!({"call": call, "is": "step", "done": done, "total": total, "message": message})
        }
        Progress::WaitingForCaller => json!({"call": call, "is": "waiting_for_caller"}),
        Progress::Resumed => json!({"call": call, "is": "resumed"}),
        _ => return None,
    })
}

fn metadata(reply: &ToolReply) -> Option<Value> {
    let pairs: Map<_, _> = reply
        .metadata
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect();
    (!pairs.is_empty()).then_some(Value::Object(pairs))
}

fn summary(bytes: &[u8]) -> Value {
    let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"bytes": bytes.len(), "sha256": hash})
}

fn block_kind(kind: BlockKind) -> &'static str {
    match kind {
        BlockKind::Text => "text",
        BlockKind::Thinking => "thinking",
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// `ApiKey` as `api_key`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
/// What went with the run directory; absent where that was nothing.
fn scratch(scratch: &Scratch) -> Option<Value> {
    let &Scratch { files, bytes, partial } = scratch;
    let mut fields = json!({"files": files, "bytes": bytes});
    if partial {
        fields["partial"] = json!(true);
    }
    (scratch != &Scratch::default()).then_some(fields)
}
