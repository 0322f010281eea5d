//! Settings and schema: the chosen driver's keys, and those of the others.

use std::{path::Path, sync::Arc};

use capsule_api::serde_json::{Value, json};

use crate::{
    stand::{build, descriptor},
    time::ManualClock,
};

fn schema(settings: &Value) -> Value {
    (descriptor().settings_schema)(Some(settings))
}

fn error(settings: &Value) -> capsule_api::Error {
    build(settings, Path::new("."), Arc::new(ManualClock::new()))
        .err()
        .unwrap()
}

#[test]
fn the_chosen_driver_says_what_is_required() {
    assert_eq!(
        schema(&json!({"driver": "anthropic"}))["required"],
        json!(["driver", "api_key"])
    );
    assert_eq!(
        schema(&json!({"driver": "cassette"}))["required"],
        json!(["driver", "tape"])
    );
    assert_eq!((descriptor().settings_schema)(None)["required"], json!(["driver"]));
    let key = schema(&json!({"driver": "anthropic"}))["properties"]["api_key"].clone();
    assert_eq!(
        (&key["x-needed-by"], &key["examples"]),
        (&json!("the driver `anthropic`"), &json!(["${ANTHROPIC_API_KEY}"]))
    );
}

#[test]
fn the_keys_of_every_linked_driver_are_known_so_that_the_driver_can_be_switched() {
    let schema = schema(&json!({"driver": "cassette"}));
    assert_eq!(
        schema["properties"]["driver"]["enum"],
        json!(["anthropic", "cassette", "ollama", "openai", "openai-responses"])
    );
    assert_eq!(schema["properties"]["api_key"]["writeOnly"], json!(true));
    assert_eq!(schema["additionalProperties"], json!(false));
}

#[test]
fn a_driver_that_does_not_exist_is_told_with_the_nearest_name() {
    let error = error(&json!({"driver": "antropic"}));
    assert_eq!(
        error.message,
        "no driver is called `antropic`; there are: anthropic, cassette, ollama, openai, openai-responses"
    );
    assert_eq!(error.hint, "Did you mean `anthropic`?");
}

#[test]
fn a_key_that_is_missing_or_empty_is_told() {
    assert_eq!(error(&json!({"driver": "anthropic"})).code, "anthropic-key-missing");
    assert_eq!(
        error(&json!({"driver": "anthropic", "api_key": " "})).code,
        "anthropic-key-missing"
    );
    let odd = error(&json!({"driver": "anthropic", "api_key": "sk-\nsecret"}));
    assert!(!format!("{odd:?}").contains("secret"), "{odd:?}");
}

#[tokio::test]
async fn an_online_probe_reaches_the_endpoint_without_a_model_request() {
    let stand = crate::stand::Stand::new(capsule_fakes::Script::new()).await;
    let probe = stand.transport.probe(true).await;
    assert!(probe.usable.is_ok(), "{probe:?}");
    assert_eq!(probe.facts[0].1, format!("anthropic at {}", stand.provider.address()));
    assert_eq!(
        (stand.provider.requests().len(), stand.provider.other_requests().len()),
        (0, 1)
    );
}
