//! A neutral request as a chat request.

use std::collections::HashMap;

use capsule_api::{
    Billing, Bytes, ContentBlock, Error, Message, Request, ToolDefinition, Wire,
    http::{self, HeaderValue, Uri, header},
    serde_json::{Map, Value, json},
};

use crate::{codes, settings::is_loopback};

/// Parameters that stand at the top of a request; all others are options of the model.
const AT_THE_TOP: [&str; 6] = ["format", "keep_alive", "logprobs", "options", "think", "top_logprobs"];

/// The API at one address.
pub(crate) struct Ollama {
    endpoint: Uri,
}

impl Ollama {
    pub(crate) fn new(endpoint: Uri) -> Self {
        Self { endpoint }
    }
}

impl Wire for Ollama {
    fn encode(&self, request: &Request) -> Result<http::Request<Bytes>, Error> {
        if request.model.trim().is_empty() {
            return Err(Error::new(&codes::MODEL_MISSING, "`model`: no model is named"));
        }
        let mut encoded = http::Request::new(Bytes::from(body(request).to_string()));
        *encoded.method_mut() = http::Method::POST;
        *encoded.uri_mut() = self.endpoint.clone();
        let headers = encoded.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/x-ndjson"));
        Ok(encoded)
    }

    /// The driver knows no key: a server of this machine is nobody's bill, and of another one it cannot be told.
    fn billing(&self) -> Billing {
        match self.endpoint.host() {
            Some(host) if is_loopback(host) => Billing::Free,
            _ => Billing::Unknown,
        }
    }

    fn start_hint(&self) -> Option<&'static str> {
        Some("Start the server with `ollama serve`, or name the address of another one in `inference.endpoint`.")
    }
}

/// The body. Parameters of the manifest come first, so that they never override what the host decides.
fn body(request: &Request) -> Value {
    let mut body = Map::new();
    let mut options = Map::new();
    for (key, value) in &request.params {
        match (key.as_str(), value) {
            ("options", Value::Object(more)) => options.extend(more.clone()),
            ("model" | "messages" | "tools" | "stream", _) => {}
            (top, _) if AT_THE_TOP.contains(&top) => {
                body.insert(key.clone(), value.clone());
            }
            _ => {
                options.insert(key.clone(), value.clone());
            }
        }
    }
    options.insert("num_predict".to_owned(), json!(request.max_tokens));
    body.insert("options".to_owned(), Value::Object(options));
    body.insert("model".to_owned(), json!(request.model));
    body.insert("stream".to_owned(), json!(true));
    body.insert("messages".to_owned(), messages(request));
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

fn messages(request: &Request) -> Value {
    let system = request.system.as_deref().filter(|text| !text.is_empty());
    let mut encoded: Vec<Value> = system
        .map(|text| json!({"role": "system", "content": text}))
        .into_iter()
        .collect();
    // Results name their tool; the API knows no ids and pairs them with the calls by their order.
    let mut names: HashMap<&str, &str> = HashMap::new();
    for message in &request.messages {
        match message {
            Message::User { content } => encoded.push(json!({"role": "user", "content": text(content)})),
            Message::Assistant { content } => {
                for block in content {
                    if let ContentBlock::ToolCall { id, name, .. } = block {
                        names.insert(id, name);
                    }
                }
                encoded.extend(assistant(content));
            }
            Message::Tool {
                tool_call_id,
                is_error,
                content,
            } => {
                let said = text(content);
                let said = if *is_error { format!("Error: {said}") } else { said };
                let name = names.get(tool_call_id.as_str()).copied().unwrap_or_default();
                encoded.push(json!({"role": "tool", "tool_name": name, "content": said}));
            }
        }
    }
    Value::Array(encoded)
}

/// What the model said; none where nothing of it can be sent.
fn assistant(content: &[ContentBlock]) -> Option<Value> {
    let calls = content.iter().filter_map(|block| match block {
        ContentBlock::ToolCall { name, input, .. } => Some(json!({"function": {"name": name, "arguments": input}})),
        _ => None,
    });
    let calls: Vec<Value> = calls.collect();
    let said = text(content);
    if said.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({"role": "assistant", "content": said});
    let thoughts = content.iter().filter_map(|block| match block {
        ContentBlock::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let thoughts: String = thoughts.collect();
    if !thoughts.is_empty() {
        message["thinking"] = json!(thoughts);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Some(message)
}

fn text(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
