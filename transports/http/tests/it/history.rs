//! The conversation over several turns and processes.

use capsule_api::{Event, ResumeState, serde_json::json};
use capsule_fakes::{Answer, Reply, Script};

use crate::stand::{Stand, completed, spec};

#[tokio::test]
async fn a_conversation_goes_on_in_another_process() {
    let script = Script::new()
        .then(Reply::new().call("a", "greet", json!({"name": "Ada"})))
        .then(Reply::text("Greeted."))
        .then(Reply::text("You asked me to greet Ada."));
    let mut stand = Stand::new(script).await;
    stand.turn("Greet Ada").await.unwrap();

    let mut resumed = spec();
    resumed.resume = stand.resume_state();
    stand.conversation = Some(stand.transport.open(resumed).await.unwrap());

    assert_eq!(
        stand.turn("What did I ask?").await.unwrap(),
        completed("You asked me to greet Ada.")
    );
    stand.provider.assert_clean();
    assert_eq!(stand.messages(2).as_array().unwrap().len(), 5);
    assert!(matches!(stand.log.events()[0], Event::Started { resumed: true, .. }));
}

#[tokio::test]
async fn a_conversation_that_cannot_be_read_is_told_as_lost() {
    let stand = Stand::new(Script::new()).await;
    let good = |version, data| ResumeState {
        transport: "http".to_owned(),
        version,
        data,
    };
    let other = ResumeState {
        transport: "claude".to_owned(),
        ..good(1, json!({"messages": []}))
    };
    for state in [
        good(3, json!({"messages": []})),
        good(0, json!({"messages": []})),
        good(1, json!({"messages": "garbage"})),
        good(1, json!(null)),
        other,
    ] {
        let mut spec = spec();
        spec.resume = Some(state);
        let error = stand.transport.open(spec).await.err().unwrap();
        assert_eq!(error.code, "http-conversation-lost");
    }
}

#[tokio::test]
async fn a_failure_after_tools_ran_keeps_what_they_did() {
    let script = Script::new()
        .then(Reply::new().call("a", "greet", json!({"name": "Ada"})))
        .then(Answer::error(401, "expired"))
        .then(Reply::text("ok"));
    let mut stand = Stand::new(script).await;
    stand.turn("one").await.unwrap_err();
    assert_eq!(stand.turn("two").await.unwrap(), completed("ok"));
    stand.provider.assert_clean();
    let last = stand.messages(2)[2]["content"].clone();
    assert_eq!(
        (&last[0]["type"], &last[1]["text"]),
        (&json!("tool_result"), &json!("two"))
    );
}

#[tokio::test]
async fn a_model_that_is_not_named_is_told_when_the_conversation_opens() {
    let stand = Stand::new(Script::new()).await;
    let mut nameless = spec();
    nameless.model = None;
    let error = stand.transport.open(nameless).await.err().unwrap();
    assert_eq!(error.code, "anthropic-model-missing");
}
