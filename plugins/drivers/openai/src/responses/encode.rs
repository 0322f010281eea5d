//! A neutral request as a Responses request. By default the provider stores nothing: reasoning goes back encrypted, as it came.

use capsule_api::{
    Billing, Bytes, ContentBlock, Error, Message, Request, ToolDefinition, Wire,
    http::{self, HeaderValue, Uri},
    serde_json::{self, Map, Value, json},
};

use crate::{
    chat::result_text,
    codes,
    settings::{billing, post},
};

/// Families of models that do not reason and refuse to be asked for it.
const WITHOUT_REASONING: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt-"];

/// The API at one address, under one key or none.
pub(crate) struct Responses {
    endpoint: Uri,
    authorization: Option<HeaderValue>,
}

impl Responses {
    pub(crate) fn new(endpoint: Uri, authorization: Option<HeaderValue>) -> Self {
        Self {
            endpoint,
            authorization,
        }
    }
}

impl Wire for Responses {
    fn encode(&self, request: &Request) -> Result<http::Request<Bytes>, Error> {
        if request.model.trim().is_empty() {
            return Err(Error::new(&codes::MODEL_MISSING, "`model`: no model is named"));
        }
        Ok(post(&self.endpoint, self.authorization.as_ref(), &body(request)))
    }

    fn billing(&self) -> Billing {
        billing(&self.endpoint, self.authorization.as_ref())
    }
}

/// The body. Parameters of the manifest come first, so that they never override what the host decides.
fn body(request: &Request) -> Value {
    let mut body: Map<String, Value> = request.params.clone();
    for key in [
        "instructions",
        "input",
        "tools",
        "previous_response_id",
        "conversation",
        "background",
    ] {
        body.shift_remove(key);
    }
    body.entry("store").or_insert(json!(false));
    let reasons = !WITHOUT_REASONING.iter().any(|family| request.model.starts_with(family));
    if reasons && !body.contains_key("include") {
        body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    body.insert("model".to_owned(), json!(request.model));
    body.insert("max_output_tokens".to_owned(), json!(request.max_tokens));
    body.insert("stream".to_owned(), json!(true));
    if let Some(system) = request.system.as_deref().filter(|text| !text.is_empty()) {
        body.insert("instructions".to_owned(), json!(system));
    }
    if let Some(id) = &request.continuation_id {
        body.insert("previous_response_id".to_owned(), json!(id));
    }
    let input = request.messages.iter().flat_map(items);
    body.insert("input".to_owned(), input.collect());
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    Value::Object(body)
}

fn tool(tool: &ToolDefinition) -> Value {
    let mut encoded = json!({"type": "function", "name": tool.name});
    if let Some(description) = &tool.description {
        encoded["description"] = json!(description);
    }
    encoded["parameters"] = tool.parameters.clone();
    // Strict mode, the default here, refuses schemas with optional properties.
    encoded["strict"] = json!(false);
    encoded
}

fn items(message: &Message) -> Vec<Value> {
    match message {
        Message::User { content } => {
            let parts = content.iter().filter_map(|block| match block {
                ContentBlock::Text { text } if !text.is_empty() => Some(json!({"type": "input_text", "text": text})),
                _ => None,
            });
            let parts: Vec<Value> = parts.collect();
            let said = (!parts.is_empty()).then(|| json!({"role": "user", "content": parts}));
            said.into_iter().collect()
        }
        Message::Assistant { content } => content.iter().filter_map(said).collect(),
        Message::Tool {
            tool_call_id,
            is_error,
            content,
        } => vec![json!({
            "type": "function_call_output", "call_id": tool_call_id, "output": result_text(*is_error, content)
        })],
    }
}

/// A block of the model's as the item it was.
fn said(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text { text } => (!text.is_empty()).then(|| json!({"role": "assistant", "content": text})),
        ContentBlock::ToolCall { id, name, input } => Some(json!({
            "type": "function_call", "call_id": id, "name": name, "arguments": input.to_string()
        })),
        // What is not stored cannot be named: reasoning without its encrypted form would be refused.
        ContentBlock::Thinking { signature, .. } => {
            let item: Value = serde_json::from_str(signature.as_deref()?).ok()?;
            (item["type"] == "reasoning" && item["encrypted_content"].is_string()).then_some(item)
        }
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
