//! Neutral requests, and what an encoder makes of them.

use capsule_api::{
    ContentBlock, Message, Request, ToolDefinition, Wire, http,
    serde_json::{Map, Value, from_slice, json},
};

use super::DriverFixture;

/// Requests that every driver has to encode, by name.
pub fn requests() -> Vec<(&'static str, Request)> {
    let user = |text: &str| Message::User {
        content: vec![ContentBlock::text(text)],
    };
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: Some(format!("Does {name}.")),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    };
    let plain = Request {
        model: "test-model".to_owned(),
        max_tokens: 100,
        system: None,
        messages: vec![user("Hello 👋\n\"quoted\" \u{7f}")],
        tools: Vec::new(),
        params: Map::new(),
        continuation_id: None,
    };
    let told = Request {
        system: Some("Be brief.".to_owned()),
        tools: vec![tool("read"), tool("write")],
        ..plain.clone()
    };
    let called = Request {
        messages: conversation(user("Read a and b.")),
        ..told.clone()
    };
    vec![
        ("plain", plain),
        ("with tools", told),
        ("with calls and results", called),
    ]
}

/// Two calls, one of which failed.
fn conversation(first: Message) -> Vec<Message> {
    let call = |id: &str| ContentBlock::ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        input: json!({"path": id}),
    };
    let result = |id: &str, is_error, text: &str| Message::Tool {
        tool_call_id: id.to_owned(),
        is_error,
        content: vec![ContentBlock::text(text)],
    };
    let thinking = ContentBlock::Thinking {
        text: "Both.".to_owned(),
        signature: Some("c2VhbA==".to_owned()),
        redacted: None,
    };
    let content = vec![thinking, ContentBlock::text("Reading."), call("call-a"), call("call-b")];
    vec![
        first,
        Message::Assistant { content },
        result("call-a", false, "the text of a"),
        result("call-b", true, "there is no b"),
    ]
}

pub(super) fn check(driver: &DriverFixture, wire: &dyn Wire) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, request) in requests() {
        if let Err(problem) = encoded(driver, wire, &request) {
            problems.push(format!("request `{name}`: {problem}"));
        }
    }
    problems
}

fn encoded(driver: &DriverFixture, wire: &dyn Wire, request: &Request) -> Result<(), String> {
    let encode = || {
        wire.encode(request)
            .map_err(|error| format!("it is not encoded: {error}"))
    };
    let (first, second) = (encode()?, encode()?);
    if first.body() != second.body() || first.uri() != second.uri() {
        return Err("it is encoded to something else the second time".to_owned());
    }
    if first.method() != http::Method::POST {
        return Err(format!("it is sent by {}", first.method()));
    }
    let body: Value = from_slice(first.body()).map_err(|error| format!("its body is not JSON: {error}"))?;
    let text = body.to_string();
    for needed in needed(request) {
        // As JSON writes it, once in its own string or once more inside another.
        let quoted = Value::from(needed.as_str()).to_string();
        if !text.contains(quoted.trim_matches('"')) {
            return Err(format!("{needed:?} is not in its body"));
        }
    }
    let Some(key) = driver.key else { return Ok(()) };
    if text.contains(key) || first.uri().to_string().contains(key) {
        return Err("the key is in its body or its URL".to_owned());
    }
    let shown = first.headers().iter().find(|(_, value)| {
        let has_key = value
            .as_bytes()
            .windows(key.len())
            .any(|window| window == key.as_bytes());
        has_key && !value.is_sensitive()
    });
    shown.map_or(Ok(()), |(name, _)| {
        Err(format!("the header `{name}` has the key and is not marked sensitive"))
    })
}

/// Texts that the model must get to see.
fn needed(request: &Request) -> Vec<String> {
    let mut needed: Vec<String> = request.system.iter().cloned().collect();
    needed.push(request.model.clone());
    needed.extend(request.tools.iter().map(|tool| tool.name.clone()));
    for message in &request.messages {
        let (Message::User { content } | Message::Assistant { content } | Message::Tool { content, .. }) = message;
        needed.extend(content.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.clone()),
            ContentBlock::ToolCall { name, .. } => Some(name.clone()),
            _ => None,
        }));
    }
    needed
}
