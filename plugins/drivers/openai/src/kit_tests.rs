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
    let call = include_bytes!("../tests/streams/chat-call.sse");
    assert_driver_conforms(&fixture("openai", vec![("call", call)]));
}

#[test]
fn responses_conform() {
    let call = include_bytes!("../tests/streams/responses-call.sse");
    assert_driver_conforms(&fixture("openai-responses", vec![("call", call)]));
}
