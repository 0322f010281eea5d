use capsule_api::{
    DriverDescriptor, Registry,
    serde_json::{Map, json},
};
use capsule_transport_kit::drivers::{DriverFixture, assert_driver_conforms};

#[test]
fn it_conforms() {
    let key = "sk-ant-kit-0123456789";
    let streams: Vec<(_, &[u8])> = vec![
        ("answer", include_bytes!("../tests/streams/answer.sse")),
        ("call", include_bytes!("../tests/streams/call.sse")),
        ("refusal", include_bytes!("../tests/streams/refusal.sse")),
        ("thinking", include_bytes!("../tests/streams/thinking.sse")),
    ];
    assert_driver_conforms(&DriverFixture {
        descriptor: Registry::<DriverDescriptor>::linked()
            .unwrap()
            .get("anthropic")
            .unwrap(),
        settings: Map::from_iter([("api_key".to_owned(), json!(key))]),
        key: Some(key),
        streams,
    });
}
