//! Requests that break a rule of the API.

use capsule_fakes::{Outcome, Provider, Reply, Script};
use serde_json::json;

use crate::client::{ask, hi, post};

#[tokio::test]
async fn a_refused_request_takes_no_step() {
    let provider = Provider::start(Script::new().then(Reply::text("hi"))).await.unwrap();

    let refused = post(&provider, &ask(json!([]))).await;
    let answered = post(&provider, &hi()).await;

    let message = "messages: at least one message is required";
    let expected = json!({"type": "error", "request_id": "req_refused",
                          "error": {"type": "invalid_request_error", "message": message}});
    assert_eq!((refused.status, refused.json()), (400, expected));
    assert_eq!(answered.joined("text"), "hi");
    assert_eq!(provider.violations(), [message]);
    let outcomes: Vec<_> = provider.requests().into_iter().map(|r| r.outcome).collect();
    assert_eq!(outcomes, [Outcome::Refused, Outcome::Answered]);
    provider.shutdown().await;
}

#[tokio::test]
#[should_panic(expected = "messages: at least one message is required")]
async fn a_violation_fails_a_test_that_asks() {
    let provider = Provider::start(Script::new().then(Reply::text("hi"))).await.unwrap();

    post(&provider, &ask(json!([]))).await;

    provider.assert_clean();
}
