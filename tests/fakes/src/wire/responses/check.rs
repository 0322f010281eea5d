//! The rules of a Responses request that a client must not break.

use http::HeaderMap;
use serde_json::Value;

use crate::wire::{Checked, openai, refuse};

/// Checks a request; the first broken rule is the answer.
pub(crate) fn check(headers: &HeaderMap, body: &Value, allow_non_streaming: bool) -> Checked {
    openai::check_head(headers, body)?;
    let limit = &body["max_output_tokens"];
    if !limit.is_null() && limit.as_u64().is_none_or(|limit| limit < 1) {
        return refuse("Invalid 'max_output_tokens': integer below minimum value.");
    }
    for key in ["messages", "max_tokens", "stream_options.include_usage"] {
        if !body[key].is_null() {
            return refuse(format!("Unsupported parameter: '{key}'."));
        }
    }
    if body["stream"] != true && !allow_non_streaming {
        return refuse("stream: this provider answers streaming requests only");
    }
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let groups: Vec<_> = tools.iter().filter(|tool| tool["type"] == super::GROUP).collect();
    // Tools whose input is text, such as a script, have no schema.
    let others = tools
        .iter()
        .filter(|tool| tool["type"] != super::GROUP && tool["type"] != "custom");
    openai::check_tool_names(&others.cloned().collect::<Vec<_>>(), |tool| tool)?;
    for group in groups {
        let inside = group["tools"].as_array().map_or(&[][..], Vec::as_slice);
        openai::check_tool_names(inside, |tool| tool)?;
    }
    match &body["input"] {
        Value::String(text) if !text.is_empty() => Ok(()),
        Value::Array(items) if !items.is_empty() => check_items(body, items),
        _ => refuse("Missing required parameter: 'input'."),
    }
}

fn check_items(body: &Value, items: &[Value]) -> Checked {
    let mut open: Vec<&str> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let text = |key: &str| item[key].as_str().unwrap_or_default();
        match item["type"].as_str().unwrap_or("message") {
            "message" => check_message(at, item)?,
            "function_call" => {
                if text("call_id").is_empty() || open.contains(&text("call_id")) {
                    return refuse(format!("Invalid 'input[{at}].call_id': required and distinct"));
                }
                openai::check_pairs(true, item, &format!("input[{at}]"))?;
                open.push(text("call_id"));
            }
            "custom_tool_call" => open.push(text("call_id")),
            "function_call_output" | "custom_tool_call_output" => {
                if !item["output"].is_string() && !item["output"].is_array() {
                    return refuse(format!("Missing required parameter: 'input[{at}].output'."));
                }
                let answered = open.iter().position(|call| *call == text("call_id"));
                match answered {
                    Some(answered) => drop(open.remove(answered)),
                    // The call may be in the answer that the request continues.
                    None if body["previous_response_id"].is_string() => {}
                    None => {
                        let message = format!(
                            "No tool call found for function call output with call_id {}.",
                            text("call_id")
                        );
                        return refuse(message);
                    }
                }
            }
            "reasoning" => check_reasoning(body, at, items)?,
            other => return refuse(format!("Invalid value: '{other}' at 'input[{at}].type'")),
        }
    }
    match open.first() {
        Some(id) => refuse(format!("No tool output found for function call {id}.")),
        None => Ok(()),
    }
}

fn check_message(at: usize, item: &Value) -> Checked {
    let role = item["role"].as_str().unwrap_or_default();
    if !["user", "assistant", "system", "developer"].contains(&role) {
        return refuse(format!("Invalid value: 'input[{at}].role'"));
    }
    let wanted = if role == "assistant" {
        "output_text"
    } else {
        "input_text"
    };
    match &item["content"] {
        Value::String(_) => Ok(()),
        Value::Array(parts)
            if parts
                .iter()
                .all(|part| part["type"] == wanted && part["text"].is_string()) =>
        {
            Ok(())
        }
        _ => refuse(format!(
            "Invalid value: 'input[{at}].content': supported values are: '{wanted}'"
        )),
    }
}

/// Reasoning is sent as it came, and with what came after it.
fn check_reasoning(body: &Value, at: usize, items: &[Value]) -> Checked {
    let item = &items[at];
    if item["id"].as_str().is_none_or(str::is_empty) || !item["summary"].is_array() {
        return refuse(format!(
            "Missing required parameter: 'input[{at}].id' or 'input[{at}].summary'."
        ));
    }
    if body["store"] == false && item["encrypted_content"].as_str().is_none_or(str::is_empty) {
        return refuse(format!(
            "Item with id '{}' not found. Items are not persisted when `store` is set to false.",
            item["id"]
        ));
    }
    let followed = items.get(at + 1).is_some_and(|next| {
        matches!(next["type"].as_str(), Some("reasoning" | "function_call")) || next["role"] == "assistant"
    });
    if followed {
        return Ok(());
    }
    refuse(format!(
        "Item {} of type 'reasoning' was provided without its required following item.",
        item["id"]
    ))
}

#[cfg(test)]
mod tests;
