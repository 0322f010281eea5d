//! Keys that end a turn or tell what it cost, against a real provider's stream.

use capsule_api::{Limit, Outcome, serde_json::json};
use capsule_fakes::{Reply, Script};

use crate::stand::{Stand, completed, spec};

#[tokio::test]
async fn the_cost_of_a_turn_comes_from_the_providers_counts_and_the_prices() {
    let prices = json!({"prices": {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}});
    let mut stand = Stand::with(Script::new().then(Reply::text("ok")), &prices, spec()).await;
    assert_eq!(stand.turn("go").await.unwrap(), completed("ok"));
    let usage = stand.log.usage();
    let thousandths = usage.input * 3000 + usage.output * 15_000 + usage.cache_read * 300 + usage.cache_write * 3750;
    assert_eq!(usage.cost_micros, Some(thousandths.div_ceil(1000)));
}

#[tokio::test]
async fn a_limit_on_tokens_ends_the_turn_with_its_own_outcome() {
    let script = Script::new()
        .then(Reply::new().call("a", "greet", json!({})))
        .repeat_last();
    let mut stand = Stand::with(script, &json!({"max_session_tokens": 1}), spec()).await;
    let outcome = stand.turn("go").await.unwrap();
    assert_eq!(outcome, Outcome::LimitReached { which: Limit::Tokens });
    assert_eq!(stand.provider.requests().len(), 1);
}

#[tokio::test]
async fn a_tool_that_fails_again_and_again_ends_the_turn() {
    let script = Script::new()
        .then(Reply::new().call("a", "fail", json!({})))
        .repeat_last();
    let mut stand = Stand::with(script, &json!({"same_failure": 3}), spec()).await;
    let outcome = stand.turn("go").await.unwrap();
    let which = Limit::SameFailure;
    assert_eq!(outcome, Outcome::LimitReached { which });
    assert_eq!(stand.provider.requests().len(), 3);
}
