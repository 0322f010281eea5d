use capsule_api::serde_json::from_slice;

use super::*;

fn request(messages: Vec<Message>) -> Request {
    Request {
        model: "claude-test".to_owned(),
        max_tokens: 100,
        system: Some("Be brief.".to_owned()),
        messages,
        tools: Vec::new(),
        params: Map::new(),
        continuation_id: None,
    }
}

fn user(text: &str) -> Message {
    Message::User {
        content: vec![ContentBlock::text(text)],
    }
}

fn tool(id: &str, is_error: bool, text: &str) -> Message {
    Message::Tool {
        tool_call_id: id.to_owned(),
        is_error,
        content: vec![ContentBlock::text(text)],
    }
}

fn encoded(request: &Request) -> http::Request<Bytes> {
    let wire = Messages::new(
        Uri::from_static("https://api.anthropic.com/v1/messages"),
        HeaderValue::from_static("sk-dummy"),
        false,
    );
    wire.encode(request).unwrap()
}

fn body_of(request: &Request) -> Value {
    from_slice(encoded(request).body()).unwrap()
}

#[test]
fn a_request_is_a_post_with_the_key_in_a_header_that_does_not_show_it() {
    let request = encoded(&request(vec![user("Hi")]));
    assert_eq!(request.method(), http::Method::POST);
    assert_eq!(request.headers()["x-api-key"], "sk-dummy");
    assert_eq!(request.headers()["anthropic-version"], "2023-06-01");
    assert!(!format!("{request:?}").contains("sk-dummy"));
}

#[test]
fn a_request_says_what_the_host_decided() {
    let mut asked = request(vec![user("Hi")]);
    asked.tools = vec![ToolDefinition {
        name: "demo__greet".to_owned(),
        description: Some("Greets.".to_owned()),
        parameters: json!({"type": "object"}),
    }];
    let params = json!({"temperature": 0.2, "stream": false, "model": "other", "max_tokens": 1, "system": "x", "tools": [], "messages": []});
    asked.params = params.as_object().unwrap().clone();
    assert_eq!(
        body_of(&asked),
        json!({
            "temperature": 0.2,
            "model": "claude-test",
            "max_tokens": 100,
            "stream": true,
            "system": "Be brief.",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
            "tools": [{"name": "demo__greet", "description": "Greets.", "input_schema": {"type": "object"}}]
        })
    );
}

#[test]
fn results_of_one_answer_are_one_message_and_what_the_user_adds_comes_after_them() {
    let call = |id: &str| ContentBlock::ToolCall {
        id: id.to_owned(),
        name: "t".to_owned(),
        input: json!({}),
    };
    let assistant = Message::Assistant {
        content: vec![call("a"), call("b")],
    };
    let messages = vec![
        user("go"),
        assistant,
        tool("a", false, "A"),
        tool("b", true, ""),
        user("more"),
    ];
    assert_eq!(
        body_of(&request(messages))["messages"][2],
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "A"}]},
            {"type": "tool_result", "tool_use_id": "b", "is_error": true},
            {"type": "text", "text": "more"}
        ]})
    );
}

#[test]
fn h_09_reasoning_is_echoed_and_what_the_api_refuses_is_left_out() {
    let thinking = |text: &str, signature: Option<&str>, redacted: Option<&str>| ContentBlock::Thinking {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
        redacted: redacted.map(str::to_owned),
    };
    let content = vec![
        thinking("hm", Some("seal"), None),
        thinking("", None, Some("opaque")),
        thinking("cut before its seal", None, None),
        ContentBlock::text(""),
        ContentBlock::text("So."),
    ];
    let messages = vec![user("go"), Message::Assistant { content }];
    assert_eq!(
        body_of(&request(messages))["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "seal"},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "text", "text": "So."}
        ])
    );
}

#[test]
fn without_a_model_there_is_an_error_that_says_what_to_set() {
    let mut nameless = request(vec![user("Hi")]);
    nameless.model = String::new();
    let wire = Messages::new(
        Uri::from_static("https://x.example/v1/messages"),
        HeaderValue::from_static("k"),
        false,
    );
    let error = wire.encode(&nameless).unwrap_err();
    assert_eq!(error.code, "anthropic-model-missing");
    assert!(error.hint.contains("inference.model"));
}

#[test]
fn what_later_requests_begin_with_is_marked_for_the_cache_with_at_most_four_marks() {
    let wire = Messages::new(
        Uri::from_static("https://x.example/v1/messages"),
        HeaderValue::from_static("k"),
        true,
    );
    let call = ContentBlock::ToolCall {
        id: "a".to_owned(),
        name: "t".to_owned(),
        input: json!({}),
    };
    let definition = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: None,
        parameters: json!({"type": "object"}),
    };
    let said = |text: &str| Message::Assistant {
        content: vec![ContentBlock::text(text)],
    };
    let calls = Message::Assistant { content: vec![call] };
    let mut asked = request(vec![user("one"), said("1"), user("two"), calls, tool("a", false, "A")]);
    asked.tools = vec![definition("s"), definition("t")];
    let body: Value = from_slice(wire.encode(&asked).unwrap().body()).unwrap();
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "Be brief.", "cache_control": mark}])
    );
    assert_eq!(body["tools"][1]["cache_control"], mark);
    let marked = |block: &Value| block["cache_control"] == mark;
    assert!(marked(&body["messages"][2]["content"][0]) && marked(&body["messages"][4]["content"][0]));
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
}

#[test]
fn a_request_without_anything_to_mark_stays_as_it_is() {
    let mut body = json!({"messages": [], "model": "m"});
    mark_prefixes(&mut body);
    assert_eq!(body, json!({"messages": [], "model": "m"}));
}
