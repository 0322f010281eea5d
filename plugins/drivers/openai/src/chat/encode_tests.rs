use capsule_api::serde_json::from_slice;

use super::*;

fn encoded(messages: Vec<Message>, params: Value, limit: OutputLimit) -> Value {
    let request = Request {
        model: "gpt-test".to_owned(),
        max_tokens: 100,
        system: Some("Be brief.".to_owned()),
        messages,
        tools: vec![ToolDefinition {
            name: "t".to_owned(),
            description: Some("Greets.".to_owned()),
            parameters: json!({"type": "object"}),
        }],
        params: params.as_object().unwrap().clone(),
        continuation_id: None,
    };
    let endpoint = Uri::from_static("https://x.example/v1/chat/completions");
    let wire = Chat::new(endpoint, None, limit);
    from_slice(wire.encode(&request).unwrap().body()).unwrap()
}

#[test]
fn a_request_says_what_the_host_decided() {
    let params = json!({
        "temperature": 0.2, "stream": false, "model": "other", "max_tokens": 1, "max_completion_tokens": 1, "tools": [],
        "messages": [], "n": 3, "stream_options": {"include_usage": false, "include_obfuscation": false}
    });
    let user = Message::User {
        content: vec![ContentBlock::text("Hi"), ContentBlock::text("there")],
    };
    let expected = |limit: &str| {
        json!({
            "temperature": 0.2, "stream": true, "model": "gpt-test", limit: 100,
            "stream_options": {"include_usage": true, "include_obfuscation": false},
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi\n\nthere"}
            ],
            "tools": [{"type": "function", "function": {
                "name": "t", "description": "Greets.", "parameters": {"type": "object"}
            }}]
        })
    };
    for limit in [OutputLimit::MaxTokens, OutputLimit::MaxCompletionTokens] {
        let body = encoded(vec![user.clone()], params.clone(), limit);
        assert_eq!(body, expected(limit.key()));
    }
}

#[test]
fn calls_and_results_are_paired_and_what_cannot_be_sent_is_left_out() {
    let call = ContentBlock::ToolCall {
        id: "a".to_owned(),
        name: "t".to_owned(),
        input: json!({"n": 1}),
    };
    let thinking = ContentBlock::Thinking {
        text: "Hm.".to_owned(),
        signature: None,
        redacted: None,
    };
    let messages = vec![
        Message::Assistant {
            content: vec![thinking.clone(), call],
        },
        Message::Tool {
            tool_call_id: "a".to_owned(),
            is_error: true,
            content: vec![ContentBlock::text("no")],
        },
        Message::Assistant {
            content: vec![thinking.clone()],
        },
        Message::Assistant {
            content: vec![thinking, ContentBlock::text("So.")],
        },
    ];
    let body = encoded(messages, json!({}), OutputLimit::MaxTokens);
    assert_eq!(
        body["messages"].as_array().unwrap()[1..],
        [
            json!({
                "role": "assistant", "content": null, "reasoning_content": "Hm.",
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "t", "arguments": "{\"n\":1}"}}]
            }),
            json!({"role": "tool", "tool_call_id": "a", "content": "Error: no"}),
            json!({"role": "assistant", "content": "So."})
        ]
    );
}

#[test]
fn h_09_reasoning_with_a_seal_goes_back_as_it_came_in_place_of_its_text() {
    let details = json!([{"type": "reasoning.text", "text": "Hm.", "signature": "seal", "index": 0}]);
    let thinking = |text: &str, redacted: Option<String>| ContentBlock::Thinking {
        text: text.to_owned(),
        signature: None,
        redacted,
    };
    let content = vec![
        thinking("Hm.", None),
        ContentBlock::text("So."),
        thinking("", Some(details.to_string())),
    ];
    let body = encoded(vec![Message::Assistant { content }], json!({}), OutputLimit::MaxTokens);
    let expected = json!({"role": "assistant", "content": "So.", "reasoning_details": details});
    assert_eq!(body["messages"][1], expected);
}

#[test]
fn the_key_is_in_a_header_that_does_not_show_it() {
    let mut key = HeaderValue::from_static("Bearer sk-dummy");
    key.set_sensitive(true);
    let request = post(&Uri::from_static("https://x.example/v1"), Some(&key), &json!({}));
    assert_eq!(request.headers()["authorization"], "Bearer sk-dummy");
    assert!(!format!("{request:?}").contains("sk-dummy"));
}
