//! The rules of a chat request that a client must not break.

use http::HeaderMap;
use serde_json::Value;

use crate::wire::{Checked, openai, refuse};

/// Checks a request; the first broken rule is the answer. The API streams unless told otherwise.
pub(crate) fn check(_: &HeaderMap, body: &Value, allow_non_streaming: bool) -> Checked {
    if !body.is_object() {
        return refuse("invalid character in request");
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return refuse("model is required");
    }
    if body["stream"] == false && !allow_non_streaming {
        return refuse("stream: this provider answers streaming requests only");
    }
    if !body["options"].is_null() && !body["options"].is_object() {
        return refuse("json: cannot unmarshal options");
    }
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    openai::check_tool_names(tools, |tool| &tool["function"])?;
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    if messages.is_empty() {
        return refuse("messages: without one the model is only loaded");
    }
    check_messages(messages)
}

/// Results come right after their calls, in their order, by name.
fn check_messages(messages: &[Value]) -> Checked {
    let mut open: Vec<&Value> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !["system", "user", "assistant", "tool"].contains(&role) {
            return refuse(format!("messages[{at}]: invalid role: {role}"));
        }
        if !message["content"].is_string() {
            return refuse(format!("messages[{at}]: json: cannot unmarshal content into a string"));
        }
        if role == "tool" {
            if open.is_empty() {
                return refuse(format!("messages[{at}]: a result without a call"));
            }
            let call = open.remove(0);
            if message["tool_name"] != call["function"]["name"] {
                return refuse(format!(
                    "messages[{at}]: the result is not of the call of {}",
                    call["function"]["name"]
                ));
            }
            continue;
        }
        unanswered(at, &open)?;
        let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        for call in calls {
            let function = &call["function"];
            if function["name"].as_str().is_none_or(str::is_empty) || !function["arguments"].is_object() {
                return refuse(format!(
                    "messages[{at}]: json: cannot unmarshal a call's arguments into an object"
                ));
            }
        }
        open = calls.iter().collect();
    }
    unanswered(messages.len(), &open)
}

fn unanswered(at: usize, open: &[&Value]) -> Checked {
    match open.first() {
        Some(call) => refuse(format!(
            "messages[{at}]: no result of the call of {}",
            call["function"]["name"]
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
