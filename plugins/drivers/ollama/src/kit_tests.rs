use capsule_api::{DriverDescriptor, Registry, serde_json::Map};
use capsule_transport_kit::drivers::{DriverFixture, assert_driver_conforms};

#[test]
fn it_conforms() {
    assert_driver_conforms(&DriverFixture {
        descriptor: Registry::<DriverDescriptor>::linked().unwrap().get("ollama").unwrap(),
        settings: Map::new(),
        key: None,
        streams: vec![
            ("answer", include_bytes!("../tests/streams/answer.jsonl")),
            ("call", include_bytes!("../tests/streams/call.jsonl")),
        ],
    });
}
