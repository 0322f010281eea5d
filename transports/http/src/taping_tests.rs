use std::{borrow::Cow, sync::Mutex};

use capsule_api::{DriverDescriptor, Registry, Secret, StopReason};
use capsule_driver_anthropic as _;
use capsule_transport_kit::services;
use proptest::prelude::*;

use super::*;

const KEY: &str = "sk-ant-0123";

struct Hiding;

impl Secrets for Hiding {
    fn expand(&self, text: &str) -> Result<String, Error> {
        Ok(text.to_owned())
    }

    fn protect(&self, _: &Secret) {}

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Owned(text.replace(KEY, "[redacted]"))
    }
}

#[derive(Default)]
struct Tape(Mutex<Vec<TapeEntry>>);

impl Recorder for Tape {
    fn record(&self, entry: TapeEntry) {
        self.0.lock().unwrap().push(entry);
    }
}

fn request(text: &str) -> Request {
    let asked = serde_json::json!({"model": "m", "max_tokens": 1,
        "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]});
    serde_json::from_value(asked).unwrap()
}

/// What is on the tape after `work` and the end of the exchange.
fn taped(work: impl FnOnce(&mut Taping)) -> Option<TapeEntry> {
    let tape = Arc::new(Tape::default());
    let mut services = services(capsule_api::SystemClock).recorded_by(tape.clone());
    services.secrets = Arc::new(Hiding);
    let drivers = Registry::<DriverDescriptor>::linked().unwrap();
    let format = drivers.get("anthropic").unwrap().wire.unwrap();
    let mut taping = Taping::begin(&services, "anthropic", format, &request(&format!("the key {KEY}"))).unwrap();
    work(&mut taping);
    drop(taping);
    tape.0.lock().unwrap().pop()
}

fn stream(entry: Option<TapeEntry>) -> (u16, Vec<String>) {
    let Some(TapeEntry::Stream(stream)) = entry else {
        panic!("it is a stream: {entry:?}")
    };
    (stream.status, stream.chunks.into_iter().map(|(_, text)| text).collect())
}

/// An answer that says these pieces.
fn said(pieces: &[&str]) -> String {
    let deltas: String = pieces
        .iter()
        .map(|piece| {
            format!("data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{piece}\"}}}}\n\n")
        })
        .collect();
    format!(
        "data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"text\",\"text\":\"\"}}}}\n\n{deltas}"
    )
}

fn response(text: &str) -> Response {
    Response {
        stop_reason: StopReason::EndTurn,
        content: vec![capsule_api::ContentBlock::text(text)],
        continuation_id: None,
        usage: capsule_api::Usage::default(),
    }
}

#[test]
fn what_came_is_on_the_tape_however_the_exchange_ended_and_a_request_without_an_answer_is_not() {
    assert_eq!(taped(|_| {}), None);
    let cut = taped(|taping| {
        taping.head(200);
        taping.chunk(&Bytes::from_static(b"data: {}\n"));
    });
    assert_eq!(cut.as_ref().unwrap().shape().last, ["the key [redacted]"]);
    assert_eq!(stream(cut), (200, vec!["data: {}\n".to_owned()]));
    let refused = taped(|taping| {
        taping.head(401);
        taping.chunk(&Bytes::from(format!("bad key {KEY}")));
    });
    assert_eq!(stream(refused), (401, vec!["bad key [redacted]".to_owned()]));
}

#[test]
fn a_key_that_is_spread_over_chunks_is_taken_out_and_the_other_boundaries_stay() {
    let entry = taped(|taping| {
        taping.head(500);
        for piece in ["one ", "two sk-a", "nt-0", "123 three", " four"] {
            taping.chunk(&Bytes::from_static(piece.as_bytes()));
        }
    });
    let expected = ["one ", "two [redacted] three", " four"].map(str::to_owned);
    assert_eq!(stream(entry), (500, expected.to_vec()));
}

#[test]
fn a_key_that_is_spread_over_pieces_of_an_answer_is_recorded_as_the_answer_without_it() {
    let text = said(&["it is sk-ant", "-0123", " so"]);
    let whole = taped(|taping| {
        taping.head(200);
        taping.chunk(&Bytes::from(text.clone()));
        taping.answered(&response(&format!("it is {KEY} so")));
    });
    let Some(TapeEntry::Response(whole)) = whole else {
        panic!("it is a whole answer: {whole:?}")
    };
    assert_eq!(whole.response, response("it is [redacted] so"));
    let cut = taped(|taping| {
        taping.head(200);
        taping.chunk(&Bytes::from(text.clone()));
    });
    assert_eq!(stream(cut), (200, Vec::new()));
}

struct Saying(Response);

#[async_trait]
impl Driver for Saying {
    async fn request(&self, _: &Request, _: &mut dyn DriverOut) -> Result<Response, Error> {
        Ok(self.0.clone())
    }
}

#[tokio::test]
async fn what_a_driver_without_a_wire_answers_is_on_the_tape_without_the_key() {
    let tape = Arc::new(Tape::default());
    let mut services = services(capsule_api::SystemClock).recorded_by(tape.clone());
    services.secrets = Arc::new(Hiding);
    let answer = response(&format!("it is {KEY}"));
    let driver = Box::new(Saying(answer.clone()));
    let driver = TapedDriver { driver, services };
    let mut heard = Heard::default();
    assert_eq!(
        driver.request(&request("what is it?"), &mut heard).await.unwrap(),
        answer
    );
    let expected = TapeEntry::Response(TapedResponse {
        request: RequestShape::of(&request("what is it?")),
        response: response("it is [redacted]"),
    });
    assert_eq!(*tape.0.lock().unwrap(), [expected]);
}

proptest! {
    #[test]
    fn however_bytes_are_cut_the_texts_are_the_whole_text(text: String, cuts in proptest::collection::vec(0_usize..64, 0..8)) {
        let mut at: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([0, text.len()]).collect();
        at.sort_unstable();
        let bytes = Bytes::from(text.clone());
        let chunks = at.windows(2).map(|pair| (7, bytes.slice(pair[0]..pair[1]))).collect();
        let joined: String = texts(chunks).into_iter().map(|(_, text)| text).collect();
        prop_assert_eq!(joined, text);
    }

    #[test]
    fn any_bytes_make_texts(chunks in proptest::collection::vec(any::<Vec<u8>>(), 0..6)) {
        let count = chunks.len();
        let texts = texts(chunks.into_iter().map(|bytes| (0, Bytes::from(bytes))).collect());
        prop_assert!(texts.len() <= count + 1);
    }

    #[test]
    fn no_cut_leaves_a_key(before in "[a-z ]{0,9}", after in "[a-z ]{0,9}", cuts in proptest::collection::vec(0_usize..40, 0..12)) {
        let text = format!("{before}{KEY}{after}{KEY}");
        let mut at: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([0, text.len()]).collect();
        at.sort_unstable();
        let chunks = at.windows(2).map(|pair| (7, text[pair[0]..pair[1]].to_owned())).collect();
        let joined: String = redacted(chunks, &Hiding).into_iter().map(|(_, text)| text).collect();
        prop_assert_eq!(joined, format!("{before}[redacted]{after}[redacted]"));
    }
}
