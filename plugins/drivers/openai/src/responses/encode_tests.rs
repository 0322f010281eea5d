use super::*;

fn request(model: &str, messages: Vec<Message>, params: Value) -> Request {
    Request {
        model: model.to_owned(),
        max_tokens: 100,
        system: Some("Be brief.".to_owned()),
        messages,
        tools: Vec::new(),
        params: params.as_object().unwrap().clone(),
        continuation_id: None,
    }
}

#[test]
fn a_request_says_what_the_host_decided() {
    let params = json!({
        "temperature": 0.2, "stream": false, "model": "other", "max_output_tokens": 1, "input": "x", "instructions": "x",
        "tools": [], "previous_response_id": "x", "background": true, "store": true
    });
    let user = Message::User {
        content: vec![ContentBlock::text("Hi")],
    };
    let mut asked = request("gpt-5", vec![user], params);
    asked.continuation_id = Some("resp_1".to_owned());
    assert_eq!(
        body(&asked),
        json!({
            "temperature": 0.2, "stream": true, "model": "gpt-5", "max_output_tokens": 100, "instructions": "Be brief.",
            "store": true, "include": ["reasoning.encrypted_content"], "previous_response_id": "resp_1",
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]
        })
    );
}

#[test]
fn encrypted_reasoning_is_asked_for_where_the_model_reasons_and_nobody_says_otherwise() {
    let include = |model: &str, params| body(&request(model, Vec::new(), params))["include"].clone();
    assert_eq!(include("o4-mini", json!({})), json!(["reasoning.encrypted_content"]));
    assert_eq!(include("gpt-4.1", json!({})), Value::Null);
    assert_eq!(include("o4-mini", json!({"include": []})), json!([]));
    assert_eq!(body(&request("o4-mini", Vec::new(), json!({})))["store"], false);
}

#[test]
fn h_09_reasoning_goes_back_as_the_item_it_was_or_not_at_all() {
    let thinking = |signature: Option<&str>| ContentBlock::Thinking {
        text: "Hm.".to_owned(),
        signature: signature.map(str::to_owned),
        redacted: None,
    };
    let item = json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "seal"});
    let stored = json!({"id": "rs_2", "type": "reasoning", "summary": []});
    let content = vec![
        thinking(Some(&item.to_string())),
        thinking(Some(&stored.to_string())),
        thinking(Some("another provider's seal")),
        thinking(None),
        ContentBlock::text("So."),
    ];
    let encoded = body(&request("gpt-5", vec![Message::Assistant { content }], json!({})));
    assert_eq!(encoded["input"], json!([item, {"role": "assistant", "content": "So."}]));
}
