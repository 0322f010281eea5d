use capsule_api::{
    DriverDescriptor, Registry,
    serde_json::{Map, json},
};
use capsule_transport_kit::drivers::{DriverFixture, assert_driver_conforms};

const KEY: &str = "sk-kit-0123456789";

fn fixture(name: &str, streams: Vec<(&'static str, &'static [u8])>) -> DriverFixture {
    DriverFixture {
        descriptor: Registry::<DriverDescriptor>::linked().unwrap().get(name).unwrap(),
        settings: Map::from_iter([("api_key".to_owned(), json!(KEY))]),
        key: Some(KEY),
        streams,
    }
}

#[test]
fn chat_completions_conform() {
    let streams: Vec<(_, &[u8])> = vec![
        ("call", include_bytes!("../tests/streams/chat-call.sse")),
        ("details", include_bytes!("../tests/streams/chat-details.sse")),
        ("refusal", include_bytes!("../tests/streams/chat-refusal.sse")),
    ];
    assert_driver_conforms(&fixture("openai", streams));
}

#[test]
fn responses_conform() {
    let streams: Vec<(_, &[u8])> = vec![
        ("answer", include_bytes!("../tests/streams/responses-answer.sse")),
        ("call", include_bytes!("../tests/streams/responses-call.sse")),
        ("refusal", include_bytes!("../tests/streams/responses-refusal.sse")),
    ];
    assert_driver_conforms(&fixture("openai-responses", streams));
}
