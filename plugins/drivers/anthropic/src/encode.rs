//! A neutral request as a Messages request.

use capsule_api::{
    Bytes, ContentBlock, Error, Message, Request, ToolDefinition, Wire,
    http::{self, HeaderValue, Uri, header},
    serde_json::{Map, Value, json},
};

use crate::codes;

const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The API at one address, under one key.
pub(crate) struct Messages {
    endpoint: Uri,
    key: HeaderValue,
    /// Whether the API is asked to keep what later requests begin with.
    cache: bool,
}

impl Messages {
    pub(crate) fn new(endpoint: Uri, mut key: HeaderValue, cache: bool) -> Self {
        key.set_sensitive(true);
        Self { endpoint, key, cache }
    }
}

impl Wire for Messages {
    fn encode(&self, request: &Request) -> Result<http::Request<Bytes>, Error> {
        if request.model.trim().is_empty() {
            return Err(Error::new(&codes::MODEL_MISSING, "`model`: no model is named"));
        }
        let mut encoded = http::Request::new(Bytes::from(self.body(request).to_string()));
        *encoded.method_mut() = http::Method::POST;
        *encoded.uri_mut() = self.endpoint.clone();
        let headers = encoded.headers_mut();
        headers.insert("x-api-key", self.key.clone());
        headers.insert("anthropic-version", VERSION);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        Ok(encoded)
    }
}

impl Messages {
    /// The body, with marks up to where a later request will be the same: the API keeps what stands before them.
    fn body(&self, request: &Request) -> Value {
        let mut body = body(request);
        if self.cache {
            mark_prefixes(&mut body);
        }
        body
    }
}

/// Marks the system prompt, the tools, and the last two messages of the user's side: the later one for the next request to find, the earlier
/// one because it is what the request before has left. Four marks are the most that the API takes.
fn mark_prefixes(body: &mut Value) {
    if let Some(text) = body.get("system").filter(|system| system.is_string()).cloned() {
        let mut block = json!({"type": "text", "text": text});
        mark(&mut block);
        body["system"] = json!([block]);
    }
    if let Some(tool) = body
        .get_mut("tools")
        .and_then(Value::as_array_mut)
        .and_then(|tools| tools.last_mut())
    {
        mark(tool);
    }
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    let users = messages
        .into_iter()
        .flatten()
        .rev()
        .filter(|message| message["role"] == "user");
    for message in users.take(2) {
        if let Some(block) = message["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
            mark(block);
        }
    }
}

fn mark(block: &mut Value) {
    block["cache_control"] = json!({"type": "ephemeral"});
}

/// The body. Parameters of the manifest come first, so that they never override what the host decides.
fn body(request: &Request) -> Value {
    let mut body: Map<String, Value> = request.params.clone();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("max_tokens".to_owned(), json!(request.max_tokens));
    body.insert("stream".to_owned(), json!(true));
    for (key, value) in [
        (
            "system",
            request
                .system
                .clone()
                .filter(|text| !text.is_empty())
                .map(Value::String),
        ),
        ("messages", Some(messages(&request.messages))),
        ("tools", tools(&request.tools)),
    ] {
        body.shift_remove(key);
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    }
    Value::Object(body)
}

fn tools(tools: &[ToolDefinition]) -> Option<Value> {
    let encoded = tools.iter().map(|tool| {
        let mut encoded = json!({"name": tool.name});
        if let Some(description) = &tool.description {
            encoded["description"] = json!(description);
        }
        encoded["input_schema"] = tool.parameters.clone();
        encoded
    });
    (!tools.is_empty()).then(|| encoded.collect())
}

/// Messages by role: what the user says and what tools answered is one message where nothing of the model's is between, results first.
fn messages(messages: &[Message]) -> Value {
    let mut encoded: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks): (_, Vec<Value>) = match message {
            Message::User { content } => ("user", content.iter().filter_map(block).collect()),
            Message::Assistant { content } => ("assistant", content.iter().filter_map(block).collect()),
            Message::Tool {
                tool_call_id,
                is_error,
                content,
            } => ("user", vec![result(tool_call_id, *is_error, content)]),
        };
        match encoded.last_mut() {
            Some((last, sofar)) if *last == role => sofar.extend(blocks),
            _ => encoded.push((role, blocks)),
        }
    }
    let said = encoded.into_iter().filter(|(_, content)| !content.is_empty());
    said.map(|(role, content)| json!({"role": role, "content": content}))
        .collect()
}

/// A block, unless the API would refuse it: empty text, and reasoning without its seal.
fn block(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text { text } => (!text.is_empty()).then(|| json!({"type": "text", "text": text})),
        ContentBlock::Thinking {
            redacted: Some(data), ..
        } => Some(json!({"type": "redacted_thinking", "data": data})),
        ContentBlock::Thinking { text, signature, .. } => {
            let signature = signature.as_ref().filter(|signature| !signature.is_empty())?;
            Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        ContentBlock::ToolCall { id, name, input } => {
            Some(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
        }
    }
}

fn result(id: &str, is_error: bool, content: &[ContentBlock]) -> Value {
    let mut encoded = json!({"type": "tool_result", "tool_use_id": id});
    let blocks: Vec<Value> = content.iter().filter_map(block).collect();
    if !blocks.is_empty() {
        encoded["content"] = Value::Array(blocks);
    }
    if is_error {
        encoded["is_error"] = json!(true);
    }
    encoded
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
