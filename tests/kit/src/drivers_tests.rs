//! Drivers that do it wrong are found out.

use capsule_api::{
    BlockDelta, BlockStart, Bytes, Code, Decoder, ErrorKind, Frame, Framing, Request, Services, StopReason, StreamItem,
    http::{self, HeaderValue},
    serde_json::{self, json},
};

use super::*;

const KEY: &str = "a-key-for-the-kit";

const LISTED: Code = Code {
    id: "careless-protocol",
    kind: ErrorKind::Protocol,
    meaning: "",
    remedy: "",
};
const UNLISTED: Code = Code {
    id: "careless-secret",
    kind: ErrorKind::Protocol,
    meaning: "",
    remedy: "",
};

/// Encodes to another body each time, with the key where anyone sees it.
struct CarelessWire(std::sync::atomic::AtomicU32);

impl Wire for CarelessWire {
    fn encode(&self, request: &Request) -> Result<http::Request<Bytes>, Error> {
        let n = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let body = match request.tools.is_empty() {
            true => json!({"request": serde_json::to_value(request).unwrap(), "key": KEY}),
            false => json!({"n": n}),
        };
        let mut made = http::Request::post("http://127.0.0.1/")
            .body(Bytes::from(body.to_string()))
            .unwrap();
        made.headers_mut()
            .insert("authorization", HeaderValue::from_static(KEY));
        Ok(made)
    }
}

/// Text without a start, and an answer that is whole after every frame.
struct CarelessDecoder;

impl Decoder for CarelessDecoder {
    fn frame(&mut self, frame: &Frame, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        if frame.data.starts_with('<') {
            return Err(Error::new(&UNLISTED, "not JSON"));
        }
        let delta = BlockDelta::Text(frame.data.repeat(9));
        out.push(StreamItem::Delta { index: 0, delta });
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<StreamItem>) -> Result<(), Error> {
        let block = BlockStart::Text;
        out.extend([
            StreamItem::Started { index: 0, block },
            StreamItem::Stopped(StopReason::EndTurn),
        ]);
        Ok(())
    }
}

static CARELESS: DriverDescriptor = DriverDescriptor {
    name: "careless",
    crate_name: "careless-crate",
    summary: "",
    settings_schema: || json!({"type": "object"}),
    example: "",
    wire: Some(WireFormat {
        framing: Framing::JsonLines,
        decoder: || Box::new(CarelessDecoder),
        refusal: |_, _| Error::new(&LISTED, "refused"),
    }),
    codes: &[&LISTED],
    build: |_: Settings, _: &Services| Ok(BuiltDriver::Wire(Box::new(CarelessWire(0.into())))),
};

#[test]
fn everything_that_a_careless_driver_does_is_told() {
    let problems = check_driver(&DriverFixture {
        descriptor: &CARELESS,
        settings: Map::new(),
        key: Some(KEY),
        streams: vec![("two", b"one\ntwo\n")],
    });
    let expected = [
        "request `plain`: the key is in its body or its URL",
        "request `with tools`: it is encoded to something else the second time",
        "stream `two`: item 0 is out of place",
        "stream `two`: 54 bytes of text come of 8 bytes",
        "stream `two`: its first 0 frames pass for a whole answer",
        "the frame \"\" alone passes for a whole answer",
        "the frame \"<html>\": the descriptor does not list the code `careless-secret`",
        "status 401 with \"\" is of the kind `protocol`",
        "status 429 with \"null\" is of the kind `protocol`",
    ];
    for expected in expected {
        let told = problems.iter().any(|problem| problem.starts_with(expected));
        assert!(told, "{expected:?} is not among {problems:#?}");
    }
}
