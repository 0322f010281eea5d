use serde_json::json;

use super::*;

/// What is wrong with this input, with nothing stored.
fn refused(input: Value) -> Option<String> {
    refused_body(&json!({"model": "m", "stream": true, "store": false, "input": input}))
}

fn refused_body(body: &Value) -> Option<String> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    check(&headers, body, false).err().map(|refusal| refusal.message)
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "t", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "ok"})
}

fn reasoning(encrypted: &str) -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypted})
}

#[test]
fn a_sound_conversation_passes() {
    let user = json!({"role": "user", "content": [{"type": "input_text", "text": "hi"}]});
    let said = json!({"role": "assistant", "content": "ok"});
    assert_eq!(
        refused(json!([user, reasoning("seal"), call("a"), output("a"), said])),
        None
    );
}

#[test]
fn calls_outputs_and_reasoning_are_paired() {
    for (input, wanted) in [
        (json!([call("a")]), "No tool output found"),
        (json!([output("a")]), "No tool call found"),
        (json!([reasoning(""), call("a"), output("a")]), "not persisted"),
        (
            json!([reasoning("seal"), {"role": "user", "content": "x"}]),
            "required following item",
        ),
        (json!([reasoning("seal")]), "required following item"),
        (
            json!([{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]),
            "supported values",
        ),
        (json!([]), "input"),
    ] {
        let told = refused(input.clone()).unwrap_or_default();
        assert!(told.contains(wanted), "{input}: {told}");
    }
}

#[test]
fn an_output_may_be_of_a_call_in_the_answer_that_is_continued() {
    let body = json!({"model": "m", "stream": true, "previous_response_id": "resp_1", "input": [output("a")]});
    assert_eq!(refused_body(&body), None);
}
