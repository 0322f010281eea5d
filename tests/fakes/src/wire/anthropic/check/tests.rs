use http::HeaderMap;
use serde_json::{Value, json};

use super::check;

fn headers() -> HeaderMap {
    let pairs = [
        ("x-api-key", "sk-test"),
        ("anthropic-version", "2023-06-01"),
        ("content-type", "application/json"),
    ];
    let parsed = pairs.map(|(name, value)| {
        let value = value.parse().expect("a header value");
        (name.parse().expect("a header name"), value)
    });
    parsed.into_iter().collect::<HeaderMap>()
}

fn body(messages: Value) -> Value {
    json!({"model": "m", "max_tokens": 16, "stream": true, "messages": messages})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn call(id: &str) -> Value {
    let block = json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    json!({"role": "assistant", "content": [block]})
}

fn result(id: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id}]})
}

/// The status and message of the refusal.
fn refusal(headers: &HeaderMap, body: &Value) -> Option<(u16, String)> {
    let refusal = check(headers, body, false).err()?;
    Some((refusal.status, refusal.message))
}

fn refused(body: &Value) -> String {
    let (status, message) = refusal(&headers(), body).expect("the request breaks a rule");
    assert_eq!(status, 400);
    message
}

#[test]
fn a_conversation_with_calls_and_results_passes() {
    let messages = json!([user("hi"), call("a"), result("a"), call("b"), result("b")]);
    assert_eq!(refusal(&headers(), &body(messages)), None);
}

#[test]
fn an_instruction_may_stand_between_call_and_result() {
    let instruction = json!({"role": "system", "content": "note"});
    let messages = json!([user("hi"), call("a"), instruction, result("a")]);
    assert_eq!(refusal(&headers(), &body(messages)), None);
}

#[test]
fn a_request_without_a_key_is_not_authenticated() {
    let mut headers = headers();
    headers.remove("x-api-key");
    let expected = (401, "x-api-key header is required".to_owned());
    assert_eq!(refusal(&headers, &body(json!([user("hi")]))), Some(expected));
}

#[test]
fn a_request_without_a_version_is_refused() {
    let mut headers = headers();
    headers.remove("anthropic-version");
    let expected = (400, "anthropic-version: header is required".to_owned());
    assert_eq!(refusal(&headers, &body(json!([user("hi")]))), Some(expected));
}

#[test]
fn settings_are_checked() {
    for (key, value, message) in [
        ("model", json!(""), "model: Field required"),
        ("max_tokens", Value::Null, "max_tokens: Field required"),
        (
            "max_tokens",
            json!(0),
            "max_tokens: Input should be greater than or equal to 1",
        ),
        (
            "stream",
            json!(false),
            "stream: this provider answers streaming requests only",
        ),
    ] {
        let mut body = body(json!([user("hi")]));
        body[key] = value;
        assert_eq!(refused(&body), message);
    }
}

#[test]
fn tools_are_checked() {
    let schema = json!({"type": "object"});
    let cases = [
        (
            json!([{"name": "a b", "input_schema": schema}]),
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ),
        (
            json!([{"name": "a", "input_schema": schema}, {"name": "a", "input_schema": schema}]),
            "tools: Tool names must be unique.",
        ),
        (json!([{"name": "a"}]), "tools.0.custom.input_schema: Field required"),
        (
            json!([{"name": "a", "input_schema": {"properties": {}}}]),
            "tools.0.custom.input_schema.type: Input should be 'object'",
        ),
    ];
    for (tools, message) in cases {
        let mut body = body(json!([user("hi")]));
        body["tools"] = tools;
        assert_eq!(refused(&body), message);
    }
}

#[test]
fn the_first_message_is_the_users() {
    assert_eq!(refused(&body(json!([]))), "messages: at least one message is required");
    assert_eq!(
        refused(&body(json!([{"role": "assistant", "content": "hi"}]))),
        "messages: first message must use the \"user\" role"
    );
}

#[test]
fn content_is_not_empty() {
    let empty = json!({"role": "user", "content": [{"type": "text", "text": ""}]});
    assert_eq!(
        refused(&body(json!([empty]))),
        "messages: text content blocks must be non-empty"
    );
    assert_eq!(
        refused(&body(json!([user("hi"), {"role": "assistant", "content": []}]))),
        "messages.1: all messages must have non-empty content except for the optional final \
         assistant message"
    );
}

#[test]
fn every_call_needs_its_result_in_the_next_message() {
    let message = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately \
                   after: a. Each `tool_use` block must have a corresponding `tool_result` block \
                   in the next message.";
    for messages in [
        json!([user("hi"), call("a")]),
        json!([user("hi"), call("a"), user("go on")]),
        json!([user("hi"), call("a"), user("go on"), result("a")]),
    ] {
        assert_eq!(refused(&body(messages)), message);
    }
}

#[test]
fn a_result_without_its_call_is_refused() {
    let messages = json!([user("hi"), call("a"), result("a"), result("a")]);
    assert_eq!(
        refused(&body(messages)),
        "messages.3: unexpected `tool_use_id` found in `tool_result` blocks: a. Each \
         `tool_result` block must have a corresponding `tool_use` block in the previous message."
    );
}

#[test]
fn a_call_is_answered_once_and_its_id_used_once() {
    let block = json!({"type": "tool_result", "tool_use_id": "a"});
    let twice = json!({"role": "user", "content": [block, block]});
    assert_eq!(
        refused(&body(json!([user("hi"), call("a"), twice]))),
        "messages.2: each tool_use must have a single result. Found multiple `tool_result` blocks \
         with id: a"
    );
    assert_eq!(
        refused(&body(json!([
            user("hi"),
            call("a"),
            result("a"),
            call("a"),
            result("a")
        ]))),
        "messages.3: `tool_use` ids must be unique: a"
    );
}

#[test]
fn arguments_are_an_object() {
    let block = json!({"type": "tool_use", "id": "a", "name": "t", "input": "{}"});
    let messages = json!([user("hi"), {"role": "assistant", "content": [block]}, result("a")]);
    assert_eq!(
        refused(&body(messages)),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary"
    );
}
