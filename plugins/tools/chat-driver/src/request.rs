//! A neutral request as the body of a chat completion.

use capsule_guest::{Json, json};

/// The body. Reasoning is not sent back: the API has no place for it.
pub(crate) fn body(input: &Json) -> Json {
    let mut messages = Vec::new();
    if let Some(system) = input["system"].as_str().filter(|system| !system.is_empty()) {
        messages.push(json!({"role": "system", "content": system}));
    }
    messages.extend(array(&input["messages"]).map(message));
    let mut body = json!({
        "model": input["model"],
        "max_tokens": input["max_tokens"],
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    let tools: Vec<Json> = array(&input["tools"]).map(tool).collect();
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
    for (name, value) in input["params"].as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body
}

fn array(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

fn tool(tool: &Json) -> Json {
    let mut function = json!({"name": tool["name"], "parameters": tool["parameters"]});
    if tool["description"].is_string() {
        function["description"] = tool["description"].clone();
    }
    json!({"type": "function", "function": function})
}

fn message(message: &Json) -> Json {
    let content = &message["content"];
    match message["role"].as_str() {
        Some("tool") => json!({
            "role": "tool", "tool_call_id": message["tool_call_id"], "content": text(content),
        }),
        Some("assistant") => {
            let calls = array(content).filter(|block| block["type"] == "tool_call");
            let calls: Vec<Json> = calls.map(call).collect();
            let mut made = json!({"role": "assistant", "content": text(content)});
            if !calls.is_empty() {
                made["tool_calls"] = calls.into();
            }
            made
        }
        _ => json!({"role": "user", "content": text(content)}),
    }
}

fn call(block: &Json) -> Json {
    let function = json!({"name": block["name"], "arguments": block["input"].to_string()});
    json!({"id": block["id"], "type": "function", "function": function})
}

fn text(content: &Json) -> String {
    let texts = array(content).filter(|block| block["type"] == "text");
    let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_with_a_call_is_sent_as_the_api_has_it() {
        let input = json!({
            "model": "m", "max_tokens": 9, "system": "Be brief.", "params": {"temperature": 0},
            "tools": [{"name": "greet", "description": "Greets.", "parameters": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "text": "Hm"},
                    {"type": "text", "text": "Yes"},
                    {"type": "tool_call", "id": "c1", "name": "greet", "input": {"name": "Ada"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "is_error": false, "content": [{"type": "text", "text": "Hello"}]},
            ],
        });
        let call =
            json!({"id": "c1", "type": "function", "function": {"name": "greet", "arguments": "{\"name\":\"Ada\"}"}});
        let expected = json!({
            "model": "m", "max_tokens": 9, "stream": true, "stream_options": {"include_usage": true}, "temperature": 0,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Yes", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "Hello"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "greet", "parameters": {"type": "object"}, "description": "Greets.",
            }}],
        });
        assert_eq!(body(&input), expected);
    }
}
