//! Chat Completions: <https://platform.openai.com/docs/api-reference/chat-streaming>, as OpenAI and compatible servers speak it.

mod check;

use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) use self::check::{check, check_head, check_pairs, check_tool_names};
use super::{NotOffered, Stream, named, sse};
use crate::{ApiError, Block, Call, Quirk, Reply, Usage};

/// An error object.
pub(crate) fn error_body(error: &ApiError) -> Value {
    json!({"error": error_object(error)})
}

/// The error that ends a stream: a chunk without choices.
pub(crate) fn error_event(error: &ApiError) -> Bytes {
    sse(None, &error_body(error).to_string())
}

/// The error in the words of this API, whose kinds of errors partly are types and partly codes.
pub(crate) fn error_object(error: &ApiError) -> Value {
    let (kind, code) = match error.kind.as_str() {
        "authentication_error" => ("invalid_request_error", Some("invalid_api_key")),
        "not_found_error" => ("invalid_request_error", Some("model_not_found")),
        "rate_limit_error" => ("requests", Some("rate_limit_exceeded")),
        "billing_error" => ("insufficient_quota", Some("insufficient_quota")),
        "overloaded_error" => ("server_error", Some("server_is_overloaded")),
        "api_error" => ("server_error", Some("server_error")),
        kind @ ("invalid_request_error" | "server_error") => (kind, None),
        "request_too_large" | "permission_error" | "timeout_error" => ("invalid_request_error", None),
        code => ("invalid_request_error", Some(code)),
    };
    json!({"message": error.message, "type": kind, "param": null, "code": code})
}

/// A reply as chunks: the role, what the blocks say, the reason, the counts where they are asked for, `[DONE]`.
pub(crate) fn events(reply: &Reply, request: &Value, number: usize) -> Result<Stream, NotOffered> {
    let chunks = Chunks {
        reply,
        base: json!({
            "id": format!("chatcmpl-scripted-{:04}", number + 1),
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": request["model"],
        }),
        counts: request["stream_options"]["include_usage"] == true && !reply.has(Quirk::NoUsage),
    };
    let mut events = vec![chunks.delta(&json!({"role": "assistant", "content": "", "refusal": null}))];
    let mut calls = 0;
    for block in &reply.blocks {
        match block {
            Block::Text(text) => {
                let key = if refuses(reply) { "refusal" } else { "content" };
                events.extend(text.to_vec().iter().map(|piece| chunks.delta(&json!({key: piece}))));
            }
            Block::Thinking { text, .. } => {
                let key = "reasoning_content";
                events.extend(text.to_vec().iter().map(|piece| chunks.delta(&json!({key: piece}))));
            }
            Block::Call(call) => {
                events.extend(chunks.call(call, &named(call, request)?, &call_id(call, number, calls), calls));
                calls += 1;
            }
            Block::Other { start, deltas } => {
                events.push(chunks.delta(start));
                events.extend(deltas.iter().map(|delta| chunks.delta(delta)));
            }
            Block::Events(raw) => events.extend(raw.iter().map(|raw| sse(raw.event.as_deref(), &raw.data))),
            // The API has no such thing.
            Block::RedactedThinking(_) => {}
        }
    }
    let content = events.len();
    events.extend(chunks.end(request, number)?);
    Ok(Stream { events, content })
}

/// A reply as one JSON object.
pub(crate) fn whole(reply: &Reply, request: &Value, number: usize) -> Result<Value, NotOffered> {
    let said: String = texts(reply);
    let mut message = json!({"role": "assistant", "content": said, "refusal": null});
    let calls = whole_calls(reply, request, number)?;
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Ok(json!({
        "id": format!("chatcmpl-scripted-{:04}", number + 1),
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason(reply)}],
        "usage": usage(reply.usage),
    }))
}

/// What makes chunks of one answer.
struct Chunks<'a> {
    reply: &'a Reply,
    base: Value,
    counts: bool,
}

impl Chunks<'_> {
    fn chunk(&self, choices: Value, usage: Value) -> Bytes {
        let mut chunk = self.base.clone();
        chunk["choices"] = choices;
        if self.counts {
            chunk["usage"] = usage;
        }
        sse(None, &chunk.to_string())
    }

    fn delta(&self, delta: &Value) -> Bytes {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": null});
        let mut sofar = Value::Null;
        if self.reply.has(Quirk::UsageInEveryChunk) {
            sofar = usage(Usage {
                output_tokens: 1,
                ..self.reply.usage
            });
        }
        self.chunk(json!([choice]), sofar)
    }

    /// A call: its head, then its arguments.
    fn call(&self, call: &Call, name: &str, id: &str, place: usize) -> Vec<Bytes> {
        let late = self.reply.has(Quirk::LateId);
        let entry = |function: Value, id: Option<&str>| {
            let mut entry = json!({"index": place});
            if let Some(id) = id {
                entry["id"] = json!(id);
                entry["type"] = json!("function");
            }
            entry["function"] = function;
            if self.reply.has(Quirk::IndexZero) {
                entry["index"] = json!(0);
            }
            if self.reply.has(Quirk::NoIndex) {
                entry = without(entry, "index");
            }
            self.delta(&json!({"tool_calls": [entry]}))
        };
        let head = json!({"name": name, "arguments": ""});
        let mut events = vec![entry(head, (!late).then_some(id))];
        for piece in call.input_pieces() {
            events.push(entry(json!({"arguments": piece}), None));
        }
        if late {
            events.push(entry(json!({"arguments": ""}), Some(id)));
        }
        events
    }

    /// The reason, the counts and the end mark.
    fn end(&self, request: &Value, number: usize) -> Result<Vec<Bytes>, NotOffered> {
        let mut delta = json!({});
        if self.reply.has(Quirk::WholeArguments) {
            let mut calls = whole_calls(self.reply, request, number)?;
            for (place, call) in calls.iter_mut().enumerate() {
                call["index"] = json!(place);
            }
            delta = json!({"tool_calls": calls});
        }
        let counts = usage(self.reply.usage);
        let early = self.reply.has(Quirk::UsageWithReason);
        let mut events = Vec::new();
        let finish = (!self.reply.has(Quirk::NoReason)).then(|| reason(self.reply));
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        events.push(self.chunk(json!([choice]), if early { counts.clone() } else { Value::Null }));
        if self.counts && !early {
            events.push(self.chunk(json!([]), counts));
        }
        if !self.reply.has(Quirk::NoDone) {
            events.push(sse(None, "[DONE]"));
        }
        Ok(events)
    }
}

fn without(mut value: Value, key: &str) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.remove(key);
    }
    value
}

/// Whether the blocks' text is a refusal, which has fields of its own.
fn refuses(reply: &Reply) -> bool {
    reply.stop.as_deref() == Some("refusal")
}

fn texts(reply: &Reply) -> String {
    let texts = reply.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.joined()),
        _ => None,
    });
    texts.collect()
}

fn whole_calls(reply: &Reply, request: &Value, number: usize) -> Result<Vec<Value>, NotOffered> {
    let calls = reply.calls().enumerate().map(|(place, call)| {
        let function = json!({"name": named(call, request)?, "arguments": call.input_pieces().concat()});
        Ok(json!({"id": call_id(call, number, place), "type": "function", "function": function}))
    });
    calls.collect()
}

pub(crate) fn call_id(call: &Call, number: usize, place: usize) -> String {
    let made = || format!("call_scripted_{:04}_{place}", number + 1);
    call.id.clone().unwrap_or_else(made)
}

/// The finish reason: the script spells it as the Messages API does, or as this API does.
fn reason(reply: &Reply) -> &str {
    match reply.stop_reason() {
        "end_turn" | "refusal" => "stop",
        "tool_use" => "tool_calls",
        "max_tokens" => "length",
        other => other,
    }
}

fn usage(usage: Usage) -> Value {
    let prompt = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_input_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens, "audio_tokens": 0},
    })
}
