use super::*;

fn request(messages: Vec<Message>, params: Value) -> Request {
    Request {
        model: "qwen3".to_owned(),
        max_tokens: 100,
        system: Some("Be brief.".to_owned()),
        messages,
        tools: vec![ToolDefinition {
            name: "t".to_owned(),
            description: None,
            parameters: json!({"type": "object"}),
        }],
        params: params.as_object().unwrap().clone(),
        continuation_id: None,
    }
}

#[test]
fn parameters_stand_where_the_api_takes_them_and_never_override_the_host() {
    let params = json!({
        "temperature": 0.2, "think": true, "options": {"num_ctx": 8192, "num_predict": 1}, "model": "x", "stream": false,
        "messages": [], "tools": []
    });
    assert_eq!(
        body(&request(Vec::new(), params)),
        json!({
            "think": true, "model": "qwen3", "stream": true,
            "options": {"temperature": 0.2, "num_ctx": 8192, "num_predict": 100},
            "messages": [{"role": "system", "content": "Be brief."}],
            "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}]
        })
    );
}

#[test]
fn results_name_the_tool_of_their_call() {
    let call = |id: &str, name: &str| ContentBlock::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        input: json!({"n": 1}),
    };
    let thinking = ContentBlock::Thinking {
        text: "Hm.".to_owned(),
        signature: None,
        redacted: None,
    };
    let result = |id: &str, is_error| Message::Tool {
        tool_call_id: id.to_owned(),
        is_error,
        content: vec![ContentBlock::text("done")],
    };
    let content = vec![thinking, call("a", "t"), call("b", "u")];
    let messages = vec![Message::Assistant { content }, result("a", false), result("b", true)];
    let encoded = body(&request(messages, json!({})));
    assert_eq!(
        encoded["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": [
                {"function": {"name": "t", "arguments": {"n": 1}}},
                {"function": {"name": "u", "arguments": {"n": 1}}}
            ]}),
            json!({"role": "tool", "tool_name": "t", "content": "done"}),
            json!({"role": "tool", "tool_name": "u", "content": "Error: done"})
        ]
    );
}
