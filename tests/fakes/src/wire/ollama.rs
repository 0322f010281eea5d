//! Ollama's native chat API: <https://github.com/ollama/ollama/blob/main/docs/api.md>.

mod check;

use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) use self::check::check;
use super::{NotOffered, Stream, named};
use crate::{ApiError, Block, Call, Quirk, Reply};

/// An error: a text.
pub(crate) fn error_body(error: &ApiError) -> Value {
    json!({"error": error.message})
}

/// The line that ends a stream with an error.
pub(crate) fn error_event(error: &ApiError) -> Bytes {
    line(&error_body(error))
}

/// A reply as lines of JSON: what the blocks say, then the line that says `done`.
pub(crate) fn events(reply: &Reply, request: &Value, _: usize) -> Result<Stream, NotOffered> {
    let mut events = Vec::new();
    let mut push = |mut message: Value| {
        message["role"] = json!("assistant");
        let mut told = head(request);
        told["message"] = message;
        told["done"] = json!(false);
        events.push(line(&told));
    };
    for block in &reply.blocks {
        match block {
            Block::Text(text) => text.to_vec().iter().for_each(|piece| push(json!({"content": piece}))),
            Block::Thinking { text, .. } => {
                let pieces = text.to_vec();
                pieces
                    .iter()
                    .for_each(|piece| push(json!({"content": "", "thinking": piece})));
            }
            Block::Call(call) => push(json!({"content": "", "tool_calls": [tool_call(call, request)?]})),
            Block::Other { start, deltas } => [start]
                .into_iter()
                .chain(deltas)
                .for_each(|message| push(message.clone())),
            // The API has no such things.
            Block::RedactedThinking(_) | Block::Events(_) => {}
        }
    }
    let content = events.len();
    events.push(line(&last(reply, request, json!({"role": "assistant", "content": ""}))));
    Ok(Stream { events, content })
}

/// A reply as one JSON object.
pub(crate) fn whole(reply: &Reply, request: &Value, _: usize) -> Result<Value, NotOffered> {
    let texts = reply.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.joined()),
        _ => None,
    });
    let mut message = json!({"role": "assistant", "content": texts.collect::<String>()});
    let calls: Vec<Value> = reply
        .calls()
        .map(|call| tool_call(call, request))
        .collect::<Result<_, _>>()?;
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Ok(last(reply, request, message))
}

fn line(value: &Value) -> Bytes {
    Bytes::from(format!("{value}\n"))
}

fn head(request: &Value) -> Value {
    json!({"model": request["model"], "created_at": "2026-01-01T00:00:00.000000Z"})
}

fn tool_call(call: &Call, request: &Value) -> Result<Value, NotOffered> {
    // A call comes whole; arguments that are no JSON could only come as text.
    let text = call.input_pieces().concat();
    let arguments = serde_json::from_str(&text).unwrap_or(Value::String(text));
    let mut told = json!({"function": {"name": named(call, request)?, "arguments": arguments}});
    if let Some(id) = &call.id {
        told["id"] = json!(id);
    }
    Ok(told)
}

fn last(reply: &Reply, request: &Value, message: Value) -> Value {
    let mut told = head(request);
    told["message"] = message;
    told["done"] = json!(true);
    if !reply.has(Quirk::NoReason) {
        told["done_reason"] = json!(match reply.stop_reason() {
            // It has no name for a refusal, nor for a turn that waits for results.
            "end_turn" | "tool_use" | "refusal" => "stop",
            "max_tokens" => "length",
            other => other,
        });
    }
    for key in [
        "total_duration",
        "load_duration",
        "prompt_eval_duration",
        "eval_duration",
    ] {
        told[key] = json!(1_000_000);
    }
    if !reply.has(Quirk::NoUsage) {
        let usage = reply.usage;
        told["prompt_eval_count"] = json!(usage.input_tokens + usage.cache_read_input_tokens);
        told["eval_count"] = json!(usage.output_tokens);
    }
    told
}
