//! How answers begin, go on and end.

use capsule_api::{
    Outcome,
    serde_json::{Value, json},
};
use capsule_fakes::{Block, Chunking, Quirk, Reply, Script};

use super::{DRIVERS, code, results, stand};
use crate::stand::{Stand, completed, spec};

#[tokio::test]
async fn h_04_the_answer_is_the_same_however_its_bytes_are_cut() {
    for driver in DRIVERS {
        for size in [1, 2, 3, 7] {
            let reply = Reply::text("Grüße, 世界 🦀").call("a", "greet", json!({"name": "🦀"}));
            let script = Script::new()
                .then(reply.chunking(Chunking::Bytes(size)))
                .then(Reply::text("ok"));
            let mut stand = stand(driver, script).await;
            assert_eq!(stand.turn("go").await.unwrap(), completed("ok"), "{driver} {size}");
            assert_eq!(stand.log.fold().texts(), ["Grüße, 世界 🦀", "ok"], "{driver} {size}");
            assert_eq!(results(&stand, 1), ["Hello, 🦀!"], "{driver} {size}");
        }
    }
}

#[tokio::test]
async fn h_06_an_end_mark_without_a_reason_and_a_reason_without_an_end_mark_both_end_an_answer() {
    for driver in DRIVERS {
        for quirk in [Quirk::NoReason, Quirk::NoDone] {
            let call = Reply::text("So:")
                .call("a", "greet", json!({"name": "Ada"}))
                .quirk(quirk);
            let script = Script::new().then(call).then(Reply::text("whole").quirk(quirk));
            let mut stand = stand(driver, script).await;
            assert_eq!(
                stand.turn("go").await.unwrap(),
                completed("whole"),
                "{driver} {quirk:?}"
            );
            assert_eq!(results(&stand, 1), ["Hello, Ada!"], "{driver} {quirk:?}");
            assert_eq!(stand.provider.requests().len(), 2, "{driver} {quirk:?}");
        }
    }
}

#[tokio::test]
async fn h_09_reasoning_goes_back_as_each_provider_wants_it() {
    for driver in DRIVERS {
        let reply = Reply::new()
            .thinking("Let me see.", "seal-1")
            .redacted_thinking("b3BhcXVl")
            .and_text("Greeting.")
            .call("a", "greet", json!({"name": "Ada"}));
        let mut stand = stand(driver, Script::new().then(reply).then(Reply::text("ok"))).await;
        assert_eq!(stand.turn("go").await.unwrap(), completed("ok"), "{driver}");
        stand.provider.assert_clean();
        assert_eq!(stand.log.fold().thinking(), ["Let me see."], "{driver}");
        let body = stand.provider.requests()[1].body.clone();
        let (echoed, expected) = echo(driver, &body);
        assert_eq!(echoed, expected, "{driver}");
    }
}

#[tokio::test]
async fn h_09_sealed_reasoning_of_a_compatible_endpoint_goes_back_whole() {
    let piece = |text: &str, detail: Value| json!({"content": "", "reasoning": text, "reasoning_details": [detail]});
    let thinking = Block::Other {
        start: piece(
            "Let me ",
            json!({"type": "reasoning.text", "text": "Let me ", "index": 0}),
        ),
        deltas: vec![
            piece("see.", json!({"type": "reasoning.text", "text": "see.", "index": 0})),
            piece("", json!({"type": "reasoning.text", "signature": "seal-1", "index": 0})),
        ],
    };
    let call = |reply: Reply| reply.call("a", "greet", json!({"name": "Ada"}));
    let script = Script::new()
        .then(call(Reply::new().block(thinking)))
        .then(Reply::text("ok"));
    let mut stand = stand("openai", script).await;
    assert_eq!(stand.turn("go").await.unwrap(), completed("ok"));
    stand.provider.assert_clean();
    assert_eq!(stand.log.fold().thinking(), ["Let me see."]);
    let echoed = stand.provider.requests()[1].body["messages"][2].clone();
    let whole = json!([{"type": "reasoning.text", "text": "Let me see.", "index": 0, "signature": "seal-1"}]);
    assert_eq!(
        (&echoed["reasoning_details"], &echoed["reasoning_content"]),
        (&whole, &Value::Null)
    );
}

/// What the request says of the first answer, and what it should say.
fn echo(driver: &str, body: &Value) -> (Value, Value) {
    let arguments = json!({"name": "Ada"});
    match driver {
        "anthropic" => (
            body["messages"][1]["content"].clone(),
            json!([
                {"type": "thinking", "thinking": "Let me see.", "signature": "seal-1"},
                {"type": "redacted_thinking", "data": "b3BhcXVl"},
                {"type": "text", "text": "Greeting."},
                {"type": "tool_use", "id": "a", "name": "demo__greet", "input": arguments}
            ]),
        ),
        "openai" => (
            body["messages"][2].clone(),
            json!({
                "role": "assistant", "content": "Greeting.", "reasoning_content": "Let me see.",
                "tool_calls": [{"id": "a", "type": "function", "function": {
                    "name": "demo__greet", "arguments": arguments.to_string()
                }}]
            }),
        ),
        "openai-responses" => (
            body["input"].as_array().unwrap()[1..5].into(),
            json!([
                {
                    "id": "rs_scripted_0001_0", "type": "reasoning", "encrypted_content": "seal-1",
                    "summary": [{"type": "summary_text", "text": "Let me see."}]
                },
                {"id": "rs_scripted_0001_1", "type": "reasoning", "encrypted_content": "b3BhcXVl", "summary": []},
                {"role": "assistant", "content": "Greeting."},
                {"type": "function_call", "call_id": "a", "name": "demo__greet", "arguments": arguments.to_string()}
            ]),
        ),
        _ => (
            body["messages"][2].clone(),
            json!({
                "role": "assistant", "content": "Greeting.", "thinking": "Let me see.",
                "tool_calls": [{"function": {"name": "demo__greet", "arguments": arguments}}]
            }),
        ),
    }
}

#[tokio::test]
async fn h_10_a_refusal_is_its_own_outcome_and_leaves_no_trace_in_the_conversation() {
    let refusals = [
        ("anthropic", "refusal"),
        ("openai", "refusal"),
        ("openai", "content_filter"),
        ("openai-responses", "refusal"),
        ("openai-responses", "content_filter"),
    ];
    for (driver, stop) in refusals {
        let script = Script::new()
            .then(Reply::text("I would rather not.").stop(stop))
            .then(Reply::text("Hello."));
        let mut stand = stand(driver, script).await;
        let text = "I would rather not.".to_owned();
        let outcome = stand.turn("something bad").await.unwrap();
        assert_eq!(outcome, Outcome::Refused { text }, "{driver} {stop}");
        assert_eq!(
            stand.turn("hello").await.unwrap(),
            completed("Hello."),
            "{driver} {stop}"
        );
        let second = stand.provider.requests()[1].body.to_string();
        assert!(
            !second.contains("something bad") && !second.contains("rather not"),
            "{driver} {stop}"
        );
    }
}

#[tokio::test]
async fn h_10_an_unknown_reason_is_an_error_that_names_it() {
    for driver in DRIVERS {
        let mut stand = stand(driver, Script::new().then(Reply::text("half").stop("unknown_new"))).await;
        let error = stand.turn("go").await.unwrap_err();
        assert_eq!(error.code, code(driver, "stop-unknown"), "{driver}");
        assert!(error.message.contains("`unknown_new`"), "{driver}: {error}");
    }
}

#[tokio::test]
async fn a_conversation_that_the_provider_stores_is_continued_by_its_id() {
    let script = Script::new()
        .then(Reply::new().call("a", "greet", json!({"name": "Ada"})))
        .then(Reply::text("ok"));
    let settings = json!({"driver": "openai-responses", "params": {"store": true}});
    let mut stand = Stand::with(script, &settings, spec()).await;
    assert_eq!(stand.turn("go").await.unwrap(), completed("ok"));
    stand.provider.assert_clean();
    let second = stand.provider.requests()[1].body.clone();
    assert_eq!(
        (&second["previous_response_id"], &second["input"]),
        (
            &json!("resp_scripted_0001"),
            &json!([{"type": "function_call_output", "call_id": "a", "output": "Hello, Ada!"}])
        )
    );
}
