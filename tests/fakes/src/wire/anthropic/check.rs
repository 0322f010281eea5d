//! The rules of a Messages request that a client must not break, in the API's order and words.

use std::collections::HashSet;

use http::HeaderMap;
use serde_json::Value;

use crate::wire::{Checked, Refusal, refuse};

/// Checks a request; the first broken rule is the answer.
pub(crate) fn check(headers: &HeaderMap, body: &Value, allow_non_streaming: bool) -> Checked {
    check_headers(headers)?;
    if !body.is_object() {
        return refuse("The request body is not valid JSON");
    }
    check_settings(body, allow_non_streaming)?;
    check_tools(body)?;
    check_messages(body)
}

fn check_headers(headers: &HeaderMap) -> Checked {
    let is_set = |name: &str| headers.get(name).is_some_and(|value| !value.is_empty());
    if !is_set("x-api-key") && !is_set("authorization") {
        return Err(Refusal {
            status: 401,
            kind: "authentication_error",
            message: "x-api-key header is required".to_owned(),
        });
    }
    if !is_set("anthropic-version") {
        return refuse("anthropic-version: header is required");
    }
    let json = headers
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"));
    if !json {
        return refuse("content-type: must be application/json");
    }
    Ok(())
}

fn check_settings(body: &Value, allow_non_streaming: bool) -> Checked {
    if body["model"].as_str().is_none_or(str::is_empty) {
        return refuse("model: Field required");
    }
    match &body["max_tokens"] {
        Value::Null => return refuse("max_tokens: Field required"),
        tokens if tokens.as_u64().is_none_or(|tokens| tokens < 1) => {
            return refuse("max_tokens: Input should be greater than or equal to 1");
        }
        _ => {}
    }
    if body["stream"] != true && !allow_non_streaming {
        return refuse("stream: this provider answers streaming requests only");
    }
    Ok(())
}

fn check_tools(body: &Value) -> Checked {
    let tools = match &body["tools"] {
        Value::Null => return Ok(()),
        Value::Array(tools) => tools,
        _ => return refuse("tools: Input should be a valid list"),
    };
    let mut names = HashSet::new();
    for (at, tool) in tools.iter().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        if !is_tool_name(name) {
            return refuse(format!(
                "tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if !names.insert(name) {
            return refuse("tools: Tool names must be unique.");
        }
        // A tool of the provider's own has a type and no schema.
        let custom = tool["type"].is_null() || tool["type"] == "custom";
        if custom && !tool["input_schema"].is_object() {
            return refuse(format!("tools.{at}.custom.input_schema: Field required"));
        }
        if custom && tool["input_schema"]["type"] != "object" {
            return refuse(format!("tools.{at}.custom.input_schema.type: Input should be 'object'"));
        }
    }
    Ok(())
}

fn is_tool_name(name: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
    (1..=128).contains(&name.len()) && name.bytes().all(allowed)
}

fn check_messages(body: &Value) -> Checked {
    let Some(messages) = body["messages"].as_array() else {
        return refuse("messages: Field required");
    };
    if messages.is_empty() {
        return refuse("messages: at least one message is required");
    }
    if messages[0]["role"] != "user" {
        return refuse("messages: first message must use the \"user\" role");
    }
    let mut seen_calls = HashSet::new();
    let mut open: Option<(usize, Vec<&str>)> = None;
    for (at, message) in messages.iter().enumerate() {
        check_role(at, message)?;
        check_content(at, message)?;
        // Instructions between the turns (a beta of the API) do not part a call from its result.
        if message["role"] == "system" {
            continue;
        }
        let expected = open.take();
        check_results(at, message, expected)?;
        let calls = ids(message, "tool_use", "id");
        if let Some(twice) = calls.iter().find(|&&id| !seen_calls.insert(id)) {
            return refuse(format!("messages.{at}: `tool_use` ids must be unique: {twice}"));
        }
        open = (!calls.is_empty()).then_some((at, calls));
    }
    match open {
        Some((at, calls)) => unanswered(at, &calls),
        None => Ok(()),
    }
}

fn check_role(at: usize, message: &Value) -> Checked {
    match message["role"].as_str() {
        Some("user" | "assistant" | "system") => Ok(()),
        _ => refuse(format!("messages.{at}.role: Input should be 'user' or 'assistant'")),
    }
}

fn check_content(at: usize, message: &Value) -> Checked {
    match &message["content"] {
        Value::String(text) if !text.is_empty() => Ok(()),
        Value::Array(blocks) if !blocks.is_empty() => blocks
            .iter()
            .enumerate()
            .try_for_each(|(n, block)| check_block(at, n, block)),
        Value::String(_) | Value::Array(_) => refuse(format!(
            "messages.{at}: all messages must have non-empty content except for the optional \
             final assistant message"
        )),
        _ => refuse(format!("messages.{at}.content: Field required")),
    }
}

fn check_block(at: usize, n: usize, block: &Value) -> Checked {
    let place = format!("messages.{at}.content.{n}");
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    match block["type"].as_str() {
        None => refuse(format!("{place}.type: Field required")),
        Some("text") if text("text").is_empty() => refuse("messages: text content blocks must be non-empty"),
        Some("tool_use") if text("id").is_empty() || text("name").is_empty() => {
            refuse(format!("{place}.tool_use: id and name are required"))
        }
        Some("tool_use") if !block["input"].is_object() => {
            refuse(format!("{place}.tool_use.input: Input should be a valid dictionary"))
        }
        Some("thinking") if text("signature").is_empty() => {
            refuse(format!("{place}.thinking.signature: Field required"))
        }
        _ => Ok(()),
    }
}

/// Every call of the message before has its result here, and every result its call.
fn check_results(at: usize, message: &Value, expected: Option<(usize, Vec<&str>)>) -> Checked {
    let results = ids(message, "tool_result", "tool_use_id");
    let (from, calls) = expected.unwrap_or_default();
    let missing: Vec<&str> = calls
        .iter()
        .filter(|call| !results.contains(call) || message["role"] != "user")
        .copied()
        .collect();
    if !missing.is_empty() {
        return unanswered(from, &missing);
    }
    if let Some(stray) = results.iter().find(|result| !calls.contains(result)) {
        return refuse(format!(
            "messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {stray}. Each \
             `tool_result` block must have a corresponding `tool_use` block in the previous \
             message."
        ));
    }
    let mut once = HashSet::new();
    match results.iter().find(|&&result| !once.insert(result)) {
        Some(twice) => refuse(format!(
            "messages.{at}: each tool_use must have a single result. Found multiple \
             `tool_result` blocks with id: {twice}"
        )),
        None => Ok(()),
    }
}

fn unanswered(at: usize, calls: &[&str]) -> Checked {
    refuse(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: \
         {}. Each `tool_use` block must have a corresponding `tool_result` block in the next \
         message.",
        calls.join(", ")
    ))
}

/// The ids under `key` of the message's blocks of this type.
fn ids<'a>(message: &'a Value, kind: &str, key: &str) -> Vec<&'a str> {
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    blocks
        .iter()
        .filter(|block| block["type"] == kind)
        .map(|block| block[key].as_str().unwrap_or_default())
        .collect()
}

#[cfg(test)]
mod tests;
