use serde_json::json;

use super::*;

/// What is wrong with these messages.
fn refused(messages: Value) -> Option<String> {
    let body = json!({"model": "m", "max_tokens": 1, "stream": true, "messages": messages});
    refused_body(&body)
}

fn refused_body(body: &Value) -> Option<String> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    check(&headers, body, false).err().map(|refusal| refusal.message)
}

fn call(id: &str) -> Value {
    let function = json!({"name": "t", "arguments": "{}"});
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

#[test]
fn a_sound_conversation_passes() {
    let user = json!({"role": "user", "content": "hi"});
    assert_eq!(refused(json!([user, call("a"), result("a"), user])), None);
}

#[test]
fn calls_and_results_are_paired() {
    for (messages, wanted) in [
        (json!([call("a")]), "must be followed by tool messages"),
        (
            json!([call("a"), {"role": "user", "content": "x"}]),
            "must be followed by tool messages",
        ),
        (
            json!([call("a"), result("b")]),
            "must be a response to a preceding message",
        ),
        (
            json!([call("a"), result("a"), result("a")]),
            "must be a response to a preceding message",
        ),
        (json!([call("")]), "ids are required"),
        (json!([]), "empty array"),
        (json!([{"role": "user", "content": null}]), "expected a string"),
        (json!([{"role": "robot", "content": "x"}]), "role"),
    ] {
        let told = refused(messages.clone()).unwrap_or_default();
        assert!(told.contains(wanted), "{messages}: {told}");
    }
}

#[test]
fn settings_and_tools_keep_the_rules() {
    let sound = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "x"}]});
    assert_eq!(refused_body(&sound), None);
    for (key, value, wanted) in [
        ("model", json!(""), "model"),
        ("stream", json!(false), "streaming"),
        ("max_tokens", json!(0), "max_tokens"),
        ("tools", json!([]), "too short"),
        (
            "tools",
            json!([{"type": "function", "function": {"name": "a b"}}]),
            "pattern",
        ),
        (
            "tools",
            json!([{"type": "function", "function": {"name": "a", "parameters": {}}}]),
            "type 'object'",
        ),
    ] {
        let mut body = sound.clone();
        body[key] = value;
        let told = refused_body(&body).unwrap_or_default();
        assert!(told.contains(wanted), "{body}: {told}");
    }
}
