//! The Anthropic Messages API: <https://docs.anthropic.com/en/api/messages-streaming>.

mod check;

use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) use self::check::check;
use super::{NotOffered, Stream, named, sse};
use crate::{ApiError, Block, Reply, Usage};

/// An error object.
pub(crate) fn error_body(error: &ApiError, request_id: &str) -> Value {
    json!({
        "type": "error",
        "error": {"type": error.kind, "message": error.message},
        "request_id": request_id,
    })
}

/// A reply as server-sent events: `message_start`, `ping`, the blocks, `message_delta`,
/// `message_stop`.
pub(crate) fn events(reply: &Reply, request: &Value, number: usize) -> Result<Stream, NotOffered> {
    let mut events = Vec::new();
    let at_start = Usage {
        output_tokens: 1,
        ..reply.usage
    };
    let message = message(request, number, at_start);
    push(&mut events, json!({"type": "message_start", "message": message}));
    push(&mut events, json!({"type": "ping"}));
    let mut index = 0;
    for block in &reply.blocks {
        if let Block::Events(raw) = block {
            events.extend(raw.iter().map(|raw| sse(raw.event.as_deref(), &raw.data)));
            continue;
        }
        let (start, deltas) = streamed(block, request, number, index)?;
        push(
            &mut events,
            json!({"type": "content_block_start", "index": index, "content_block": start}),
        );
        for delta in deltas {
            push(
                &mut events,
                json!({"type": "content_block_delta", "index": index, "delta": delta}),
            );
        }
        push(&mut events, json!({"type": "content_block_stop", "index": index}));
        index += 1;
    }
    let content = events.len();
    push(
        &mut events,
        json!({"type": "message_delta", "delta": stop(reply), "usage": usage(reply.usage)}),
    );
    push(&mut events, json!({"type": "message_stop"}));
    Ok(Stream { events, content })
}

/// A reply as one JSON message.
pub(crate) fn whole(reply: &Reply, request: &Value, number: usize) -> Result<Value, NotOffered> {
    let mut content = Vec::new();
    for block in &reply.blocks {
        if !matches!(block, Block::Events(_)) {
            content.push(complete(block, request, number, content.len())?);
        }
    }
    let mut message = message(request, number, reply.usage);
    message["content"] = Value::Array(content);
    if let (Value::Object(message), Value::Object(stop)) = (&mut message, stop(reply)) {
        message.extend(stop);
    }
    Ok(message)
}

/// The event that ends a stream with an error.
pub(crate) fn error_event(error: &ApiError, request_id: &str) -> Bytes {
    sse(Some("error"), &error_body(error, request_id).to_string())
}

/// A message without content.
fn message(request: &Value, number: usize, tokens: Usage) -> Value {
    json!({
        "id": format!("msg_scripted_{:04}", number + 1),
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(tokens),
    })
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "output_tokens": usage.output_tokens,
    })
}

fn stop(reply: &Reply) -> Value {
    let mut stop = json!({"stop_reason": reply.stop_reason(), "stop_sequence": null});
    if let Some(details) = &reply.stop_details {
        stop["stop_details"] = details.clone();
    }
    stop
}

/// A block as it starts, and its deltas.
fn streamed(block: &Block, request: &Value, number: usize, index: usize) -> Result<(Value, Vec<Value>), NotOffered> {
    let delta = |kind: &str, key: &str, value: String| json!({"type": kind, key: value});
    let mut start = complete(block, request, number, index)?;
    let deltas = match block {
        Block::Text(text) => {
            start["text"] = json!("");
            let pieces = text.to_vec().into_iter();
            pieces.map(|piece| delta("text_delta", "text", piece)).collect()
        }
        Block::Thinking { text, signature } => {
            start["thinking"] = json!("");
            start["signature"] = json!("");
            let pieces = text.to_vec().into_iter();
            pieces
                .map(|piece| delta("thinking_delta", "thinking", piece))
                .chain([delta("signature_delta", "signature", signature.clone())])
                .collect()
        }
        Block::Call(call) => {
            start["input"] = json!({});
            // The API begins every call with an empty piece.
            std::iter::once(String::new())
                .chain(call.input_pieces())
                .map(|piece| delta("input_json_delta", "partial_json", piece))
                .collect()
        }
        Block::Other { deltas, .. } => deltas.clone(),
        Block::RedactedThinking(_) | Block::Events(_) => Vec::new(),
    };
    Ok((start, deltas))
}

/// A block as it is when complete.
fn complete(block: &Block, request: &Value, number: usize, index: usize) -> Result<Value, NotOffered> {
    Ok(match block {
        Block::Text(text) => json!({"type": "text", "text": text.joined()}),
        Block::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": text.joined(), "signature": signature})
        }
        Block::RedactedThinking(data) => json!({"type": "redacted_thinking", "data": data}),
        Block::Call(call) => {
            let made = || format!("toolu_scripted_{:04}_{index}", number + 1);
            json!({
                "type": "tool_use",
                "id": call.id.clone().unwrap_or_else(made),
                "name": named(call, request)?,
                "input": call.input,
            })
        }
        Block::Other { start, .. } => start.clone(),
        Block::Events(_) => Value::Null,
    })
}

/// Adds an event named after its own type.
fn push(events: &mut Vec<Bytes>, data: Value) {
    events.push(sse(data["type"].as_str(), &data.to_string()));
}
