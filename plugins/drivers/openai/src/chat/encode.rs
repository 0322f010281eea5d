//! A neutral request as a Chat Completions request.

use capsule_api::{
    Billing, Bytes, ContentBlock, Error, Message, Request, ToolDefinition, Wire,
    http::{self, HeaderValue, Uri},
    serde_json::{self, Map, Value, json},
};

use crate::{
    codes,
    settings::{OutputLimit, billing, post},
};

/// The API at one address, under one key or none.
pub(crate) struct Chat {
    endpoint: Uri,
    authorization: Option<HeaderValue>,
    limit: OutputLimit,
}

impl Chat {
    pub(crate) fn new(endpoint: Uri, authorization: Option<HeaderValue>, limit: OutputLimit) -> Self {
        Self {
            endpoint,
            authorization,
            limit,
        }
    }
}

impl Wire for Chat {
    fn encode(&self, request: &Request) -> Result<http::Request<Bytes>, Error> {
        if request.model.trim().is_empty() {
            return Err(Error::new(&codes::MODEL_MISSING, "`model`: no model is named"));
        }
        Ok(post(
            &self.endpoint,
            self.authorization.as_ref(),
            &body(request, self.limit),
        ))
    }

    fn billing(&self) -> Billing {
        billing(&self.endpoint, self.authorization.as_ref())
    }
}

/// The body. Parameters of the manifest come first, so that they never override what the host decides.
fn body(request: &Request, limit: OutputLimit) -> Value {
    let mut body: Map<String, Value> = request.params.clone();
    for key in ["max_tokens", "max_completion_tokens", "messages", "tools", "n"] {
        body.shift_remove(key);
    }
    body.insert("model".to_owned(), json!(request.model));
    body.insert(limit.key().to_owned(), json!(request.max_tokens));
    body.insert("stream".to_owned(), json!(true));
    let mut options = body.shift_remove("stream_options").unwrap_or_default();
    if !options.is_object() {
        options = json!({});
    }
    options["include_usage"] = json!(true);
    body.insert("stream_options".to_owned(), options);
    let system = request.system.as_deref().filter(|text| !text.is_empty());
    let system = system.map(|text| json!({"role": "system", "content": text}));
    let said = request.messages.iter().filter_map(message);
    body.insert("messages".to_owned(), system.into_iter().chain(said).collect());
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    Value::Object(body)
}

fn tool(tool: &ToolDefinition) -> Value {
    let mut function = json!({"name": tool.name});
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    function["parameters"] = tool.parameters.clone();
    json!({"type": "function", "function": function})
}

fn message(message: &Message) -> Option<Value> {
    match message {
        Message::User { content } => Some(json!({"role": "user", "content": text(content)})),
        Message::Assistant { content } => assistant(content),
        Message::Tool {
            tool_call_id,
            is_error,
            content,
        } => Some(json!({
            "role": "tool", "tool_call_id": tool_call_id, "content": result_text(*is_error, content)
        })),
    }
}

/// What the model said; none where nothing of it can be sent.
fn assistant(content: &[ContentBlock]) -> Option<Value> {
    let calls = content.iter().filter_map(|block| match block {
        ContentBlock::ToolCall { id, name, input } => Some(json!({
            "id": id, "type": "function", "function": {"name": name, "arguments": input.to_string()}
        })),
        _ => None,
    });
    let calls: Vec<Value> = calls.collect();
    let said = text(content);
    if said.is_empty() && calls.is_empty() {
        return None;
    }
    let said = if said.is_empty() { Value::Null } else { json!(said) };
    let mut message = json!({"role": "assistant", "content": said});
    // Sealed reasoning goes back as it came, and in place of its text.
    match details(content) {
        Some(details) => message["reasoning_details"] = details,
        // Endpoints that reason in the open want it back as long as the calls go on, and refuse or drop it otherwise.
        None if !calls.is_empty() => {
            let thoughts = thoughts(content);
            if !thoughts.is_empty() {
                message["reasoning_content"] = json!(thoughts);
            }
        }
        None => {}
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Some(message)
}

fn details(content: &[ContentBlock]) -> Option<Value> {
    content.iter().find_map(|block| match block {
        ContentBlock::Thinking {
            redacted: Some(details),
            ..
        } => serde_json::from_str(details).ok().filter(Value::is_array),
        _ => None,
    })
}

fn thoughts(content: &[ContentBlock]) -> String {
    let thoughts = content.iter().filter_map(|block| match block {
        ContentBlock::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    thoughts.collect()
}

/// The text of blocks. Many compatible endpoints take a text only, not parts.
pub(crate) fn text(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// A result. The API has no mark for a failed call, so the text says it.
pub(crate) fn result_text(is_error: bool, content: &[ContentBlock]) -> String {
    let said = text(content);
    if is_error { format!("Error: {said}") } else { said }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
