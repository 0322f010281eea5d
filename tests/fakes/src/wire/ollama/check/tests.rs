use serde_json::json;

use super::*;

/// What is wrong with these messages.
fn refused(messages: Value) -> Option<String> {
    let body = json!({"model": "m", "messages": messages});
    check(&HeaderMap::new(), &body, false)
        .err()
        .map(|refusal| refusal.message)
}

fn call(name: &str) -> Value {
    json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": {}}}]})
}

fn result(name: &str) -> Value {
    json!({"role": "tool", "tool_name": name, "content": "ok"})
}

#[test]
fn a_sound_conversation_passes() {
    let user = json!({"role": "user", "content": "hi"});
    assert_eq!(refused(json!([user, call("t"), result("t"), user])), None);
}

#[test]
fn calls_and_results_are_paired_by_order_and_name() {
    let text =
        json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "t", "arguments": "{}"}}]});
    for (messages, wanted) in [
        (json!([call("t")]), "no result of the call"),
        (
            json!([call("t"), {"role": "user", "content": "x"}]),
            "no result of the call",
        ),
        (json!([call("t"), result("u")]), "not of the call"),
        (json!([result("t")]), "without a call"),
        (json!([text]), "arguments into an object"),
        (
            json!([{"role": "user", "content": [{"type": "text"}]}]),
            "into a string",
        ),
        (json!([]), "only loaded"),
    ] {
        let told = refused(messages.clone()).unwrap_or_default();
        assert!(told.contains(wanted), "{messages}: {told}");
    }
}
