//! Conversations that the provider holds, and those that it gets whole.

use capsule_api::{
    Event,
    serde_json::{Value, json},
};
use capsule_fakes::{Answer, Reply, Script};

use crate::stand::{Stand, completed, spec};

/// What request `n` went on from, and how many items it had.
fn request(stand: &Stand, n: usize) -> (Value, usize) {
    let body = stand.provider.requests()[n].body.clone();
    let items = body["input"].as_array().unwrap().len();
    (body["previous_response_id"].clone(), items)
}

fn held() -> Value {
    json!({"driver": "openai-responses", "params": {"store": true}})
}

#[tokio::test]
async fn what_the_provider_holds_is_named_and_not_sent_again() {
    let script = Script::new()
        .then(Reply::new().call("c1", "greet", json!({"name": "Ada"})))
        .then(Reply::text("Done."))
        .then(Reply::text("You asked for a greeting."));
    let mut stand = Stand::with(script, &held(), spec()).await;
    stand.turn("Greet Ada").await.unwrap();

    let mut resumed = spec();
    resumed.resume = stand.resume_state();
    stand.conversation = Some(stand.transport.open(resumed).await.unwrap());
    let outcome = stand.turn("What did I ask?").await.unwrap();

    assert_eq!(outcome, completed("You asked for a greeting."));
    stand.provider.assert_clean();
    let requests: Vec<_> = (0..3).map(|n| request(&stand, n)).collect();
    let expected = [
        (Value::Null, 1),
        (json!("resp_scripted_0001"), 1),
        (json!("resp_scripted_0002"), 1),
    ];
    assert_eq!(requests, expected);
}

#[tokio::test]
async fn what_the_provider_no_longer_holds_is_sent_as_a_whole_once() {
    let gone = json!({"error": {
        "message": "Previous response with id 'resp_scripted_0001' not found.",
        "type": "invalid_request_error", "param": "previous_response_id", "code": "previous_response_not_found"
    }});
    let script = Script::new()
        .then(Reply::text("One."))
        .then(Answer::json(400, gone))
        .then(Reply::text("Two."));
    let mut stand = Stand::with(script, &held(), spec()).await;
    stand.turn("one").await.unwrap();
    assert_eq!(stand.turn("two").await.unwrap(), completed("Two."));
    stand.provider.assert_clean();
    assert_eq!(request(&stand, 1), (json!("resp_scripted_0001"), 1));
    assert_eq!(request(&stand, 2), (Value::Null, 3));
    let warned = |event: &Event| matches!(event, Event::Warning { code, .. } if *code == "http-continuation-lost");
    assert!(stand.log.events().iter().any(warned));
}

#[tokio::test]
async fn h_09_reasoning_goes_back_with_its_seal_from_another_process_too() {
    let script = Script::new()
        .then(Reply::new().thinking("Let me see.", "seal-1").and_text("One."))
        .then(Reply::text("Two."));
    let mut stand = Stand::new(script).await;
    stand.turn("one").await.unwrap();

    let mut resumed = spec();
    resumed.resume = stand.resume_state();
    stand.conversation = Some(stand.transport.open(resumed).await.unwrap());
    stand.turn("two").await.unwrap();

    stand.provider.assert_clean();
    assert_eq!(
        stand.messages(1)[1]["content"],
        json!([
            {"type": "thinking", "thinking": "Let me see.", "signature": "seal-1"},
            {"type": "text", "text": "One."}
        ])
    );
}

#[tokio::test]
async fn a_conversation_that_is_too_long_for_the_provider_goes_on_with_a_summary() {
    let script = Script::new()
        .then(Reply::text("The first answer, which is long. ".repeat(40).as_str()))
        .then(Answer::error(400, "prompt is too long: 210000 tokens > 200000 maximum"))
        .then(Reply::text("The user asked something long."))
        .then(Reply::text("Two."));
    let mut stand = Stand::new(script).await;
    stand.turn("one").await.unwrap();
    assert_eq!(stand.turn("two").await.unwrap(), completed("Two."));
    stand.provider.assert_clean();
    let summarising = &stand.provider.requests()[2].body;
    assert!(summarising.get("tools").is_none(), "{summarising}");
    let content = stand.messages(3)[0]["content"].clone();
    assert!(
        content[0]["text"]
            .as_str()
            .unwrap()
            .ends_with("The user asked something long.")
    );
    assert_eq!(content[1]["text"], "two");
    assert!(
        stand
            .log
            .events()
            .iter()
            .any(|event| matches!(event, Event::Compacted { .. }))
    );
}
