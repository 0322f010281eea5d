//! The rules of a Chat Completions request that a client must not break.

use std::collections::HashSet;

use http::HeaderMap;
use serde_json::Value;

use crate::wire::{Checked, refuse};

/// Checks a request; the first broken rule is the answer.
pub(crate) fn check(headers: &HeaderMap, body: &Value, allow_non_streaming: bool) -> Checked {
    check_head(headers, body)?;
    let limits = ["max_tokens", "max_completion_tokens"].map(|key| &body[key]);
    if limits.iter().all(|limit| !limit.is_null()) {
        return refuse("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.");
    }
    if limits
        .iter()
        .any(|limit| !limit.is_null() && limit.as_u64().is_none_or(|limit| limit < 1))
    {
        return refuse("Invalid 'max_tokens': integer below minimum value.");
    }
    if body["stream"] != true && !allow_non_streaming {
        return refuse("stream: this provider answers streaming requests only");
    }
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    if !body["tools"].is_null() && tools.is_empty() {
        return refuse("[] is too short - 'tools'");
    }
    check_tool_names(tools, |tool| &tool["function"])?;
    check_messages(body)
}

/// Headers and model: the same for all APIs of this family.
pub(crate) fn check_head(headers: &HeaderMap, body: &Value) -> Checked {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if text("authorization").is_some_and(|value| value.strip_prefix("Bearer ").is_none_or(str::is_empty)) {
        return refuse("You didn't provide an API key in an Authorization header using Bearer auth.");
    }
    if text("content-type").is_none_or(|value| !value.starts_with("application/json")) {
        return refuse("Unsupported content type: must be application/json");
    }
    if !body.is_object() {
        return refuse("We could not parse the JSON body of your request.");
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return refuse("you must provide a model parameter");
    }
    Ok(())
}

/// Tools are functions with distinct names and object schemas.
pub(crate) fn check_tool_names(tools: &[Value], function: fn(&Value) -> &Value) -> Checked {
    let mut names = HashSet::new();
    for (at, tool) in tools.iter().enumerate() {
        if tool["type"] != "function" {
            return refuse(format!("Invalid value: 'tools[{at}].type'"));
        }
        let function = function(tool);
        let name = function["name"].as_str().unwrap_or_default();
        let allowed = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
        if !(1..=64).contains(&name.len()) || !name.bytes().all(allowed) {
            return refuse(format!(
                "Invalid 'tools[{at}].function.name': string does not match pattern."
            ));
        }
        if !names.insert(name) {
            return refuse(format!("Duplicate function name: {name}"));
        }
        let parameters = &function["parameters"];
        if !parameters.is_null() && parameters["type"] != "object" {
            return refuse(format!(
                "Invalid schema for function '{name}': schema must be of type 'object'"
            ));
        }
    }
    Ok(())
}

fn check_messages(body: &Value) -> Checked {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    if messages.is_empty() {
        return refuse("Invalid 'messages': empty array. Expected an array with minimum length 1.");
    }
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !["system", "developer", "user", "assistant", "tool"].contains(&role) {
            return refuse(format!("Invalid value: 'messages[{at}].role'"));
        }
        let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        let content = &message["content"];
        let nothing_said = content.is_null() && role == "assistant" && !calls.is_empty();
        if !content.is_string() && !content.is_array() && !nothing_said {
            return refuse(format!(
                "Invalid value for 'content': expected a string, got null: messages[{at}]"
            ));
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(answered) = open.iter().position(|call| *call == id) else {
                return refuse(format!(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding message with \
                     'tool_calls': messages[{at}]"
                ));
            };
            open.remove(answered);
            continue;
        }
        unanswered(&open)?;
        check_calls(at, calls)?;
        open = calls.iter().filter_map(|call| call["id"].as_str()).collect();
    }
    unanswered(&open)
}

fn check_calls(at: usize, calls: &[Value]) -> Checked {
    let mut ids = HashSet::new();
    for call in calls {
        let id = call["id"].as_str().unwrap_or_default();
        if id.is_empty() || !ids.insert(id) {
            return refuse(format!(
                "Invalid 'messages[{at}].tool_calls': ids are required and distinct"
            ));
        }
        check_pairs(
            call["type"] == "function",
            &call["function"],
            &format!("messages[{at}].tool_calls"),
        )?;
    }
    Ok(())
}

/// A call has a name, and arguments that are the text of an object.
pub(crate) fn check_pairs(is_function: bool, function: &Value, place: &str) -> Checked {
    if !is_function || function["name"].as_str().is_none_or(str::is_empty) {
        return refuse(format!("Missing required parameter: '{place}.function.name'"));
    }
    let arguments = function["arguments"].as_str();
    let parsed = arguments.and_then(|text| serde_json::from_str::<Value>(text).ok());
    if !parsed.is_some_and(|arguments| arguments.is_object()) {
        return refuse(format!(
            "Invalid type for '{place}.function.arguments': expected the JSON of an object"
        ));
    }
    Ok(())
}

fn unanswered(open: &[&str]) -> Checked {
    if open.is_empty() {
        return Ok(());
    }
    refuse(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The \
         following tool_call_ids did not have response messages: {}",
        open.join(", ")
    ))
}

#[cfg(test)]
mod tests;
