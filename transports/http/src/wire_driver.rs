//! Sends what a [`Wire`] encodes, and decodes what comes back.

use std::{sync::Arc, time::Duration};

use capsule_api::{
    Billing, Bytes, Clock, Decoder, Driver, DriverOut, Error, ErrorKind, Frame, Framing, HttpBody, Request, Response,
    Retry, Services, StreamItem, Wire, WireFormat, async_trait, http, timeout,
};

use futures_util::FutureExt as _;

use crate::{
    assemble::{Assembler, cut},
    codes,
    decoder::Framer,
    progress::{Progress, silent},
    retry,
    taping::Taping,
    transport::nothing,
};

/// The most of an error's body that is read.
const MAX_REFUSAL: usize = 64 << 10;
/// The most of an unexpected body that an error quotes, in characters.
const MAX_QUOTE: usize = 200;

/// The most bytes of one stream. Most of them are the provider's framing, and what it sends besides the answer.
const MAX_STREAM: usize = 256 << 20;
/// A provider behind HTTP.
pub(crate) struct WireDriver {
    pub(crate) wire: Arc<dyn Wire>,
    pub(crate) format: WireFormat,
    /// The driver's name, for a recording.
    pub(crate) name: &'static str,
    pub(crate) services: Services,
    /// The longest wait for the head of an answer, and between two pieces of it.
    pub(crate) idle: Duration,
}

#[async_trait]
impl Driver for WireDriver {
    async fn request(&self, request: &Request, out: &mut dyn DriverOut) -> Result<Response, Error> {
        let encoded = self.wire.encode(request)?;
        let mut tape = Taping::begin(&self.services, self.name, self.format, request);
        let answered = self.exchange(encoded, out, &mut tape).await;
        if let (Some(tape), Ok(response)) = (&mut tape, &answered) {
            tape.answered(response);
        }
        // A provider may quote what it was sent, and that may be the key.
        answered.map_err(|error| error.map_text(|text| self.services.secrets.redact(text).into_owned()))
    }

    fn endpoint(&self) -> Option<http::Uri> {
        let request = self.wire.encode(&nothing("none")).ok()?;
        Some(request.uri().clone())
    }

    fn billing(&self) -> Billing {
        self.wire.billing()
    }
}

impl WireDriver {
    async fn exchange(
        &self,
        mut request: http::Request<Bytes>,
        out: &mut dyn DriverOut,
        tape: &mut Option<Taping>,
    ) -> Result<Response, Error> {
        let plain = http::HeaderValue::from_static("identity");
        request.headers_mut().insert(http::header::ACCEPT_ENCODING, plain);
        let answer = self.patient(self.idle, self.services.http.send(request)).await?;
        let answer = answer.map_err(|error| self.hinted(error))?;
        let (head, mut body) = answer.into_parts();
        if let Some(tape) = tape {
            tape.head(head.status.as_u16());
        }
        let encoding = encoding(&head.headers);
        if head.status != http::StatusCode::OK {
            let start = self.start_of(&mut *body, tape).await;
            // What was compressed has no words for the driver.
            let said = if encoding.is_some() { &[] } else { start.as_slice() };
            return Err(refusal(self.format, &head, said, self.services.clock.as_ref()));
        }
        if let Some(encoding) = encoding {
            return Err(compressed(&encoding));
        }
        if !is_stream(&head.headers, self.format.framing) {
            let start = self.start_of(&mut *body, tape).await;
            return Err(not_a_stream(&head.headers, &start));
        }
        let mut decoding = Decoding::new(self.format);
        let mut progress = Progress::new(self.idle, self.services.clock.now());
        while !decoding.stopped() {
            let wait = progress.wait(self.services.clock.now())?;
            let chunk = self.patient(wait, body.chunk()).await;
            let now = self.services.clock.now();
            match chunk.map_err(|silent| progress.wait(now).err().unwrap_or(silent))?? {
                Some(bytes) => {
                    note(tape, &bytes);
                    decoding.bytes(&bytes, out)?;
                    progress.grown_to(decoding.size(), now);
                }
                None => {
                    decoding.end(out)?;
                    return decoding.response();
                }
            }
        }
        // The end of the body is not waited for; but where it is here already, reading it lets the client use the connection again.
        tokio::task::yield_now().await;
        let _ = body.chunk().now_or_never();
        decoding.response()
    }

    /// What starts a server is the driver's to know.
    fn hinted(&self, error: Error) -> Error {
        match self.wire.start_hint() {
            Some(hint) if retry::is_refused(&error) => error.hint(hint),
            _ => error,
        }
    }

    /// Waits, but no longer than the provider may be silent.
    async fn patient<T>(&self, wait: Duration, work: impl Future<Output = T>) -> Result<T, Error> {
        timeout(self.services.clock.as_ref(), wait, work)
            .await
            .map_err(|_| silent("the provider sent nothing", self.idle))
    }

    /// The first bytes of a body, as far as they come within the idle time-out: some are better than nothing.
    async fn start_of(&self, body: &mut dyn HttpBody, tape: &mut Option<Taping>) -> Vec<u8> {
        let mut start = Vec::new();
        let reading = async {
            while start.len() < MAX_REFUSAL
                && let Ok(Some(bytes)) = body.chunk().await
            {
                let room = MAX_REFUSAL - start.len();
                let bytes = bytes.slice(..bytes.len().min(room));
                note(tape, &bytes);
                start.extend_from_slice(&bytes);
            }
        };
        // The status says the most; a body without end does not keep it from being told.
        let _ = timeout(self.services.clock.as_ref(), self.idle, reading).await;
        start
    }
}

fn note(tape: &mut Option<Taping>, bytes: &Bytes) {
    if let Some(tape) = tape {
        tape.chunk(bytes);
    }
}

/// One stream on its way to a response.
pub(crate) struct Decoding {
    framer: Framer,
    decoder: Box<dyn Decoder>,
    assembler: Assembler,
    done: bool,
    frames: Vec<Frame>,
    received: usize,
}

impl Decoding {
    pub(crate) fn new(format: WireFormat) -> Self {
        Self {
            framer: Framer::new(format.framing),
            decoder: (format.decoder)(),
            assembler: Assembler::default(),
            done: false,
            frames: Vec::new(),
            received: 0,
        }
    }

    /// Whether the answer is complete. What a provider sends after that is not waited for.
    pub(crate) fn stopped(&self) -> bool {
        self.done || self.assembler.stopped()
    }

    /// How large the answer is by now.
    fn size(&self) -> usize {
        self.assembler.size()
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8], out: &mut dyn DriverOut) -> Result<(), Error> {
        self.received = self.received.saturating_add(bytes.len());
        if self.received > MAX_STREAM {
            let message = format!("the stream of the answer is larger than {} MiB", MAX_STREAM >> 20);
            return Err(Error::new(&codes::ANSWER_TOO_LONG, message));
        }
        self.framer.push(bytes, &mut self.frames)?;
        self.decode(out)
    }

    /// The stream ended cleanly.
    pub(crate) fn end(&mut self, out: &mut dyn DriverOut) -> Result<(), Error> {
        self.framer.finish(&mut self.frames);
        self.decode(out)?;
        if self.stopped() {
            Ok(())
        } else {
            self.finish(false, out)
        }
    }

    pub(crate) fn response(self) -> Result<Response, Error> {
        self.assembler.finish()
    }

    fn decode(&mut self, out: &mut dyn DriverOut) -> Result<(), Error> {
        let mut frames = std::mem::take(&mut self.frames);
        let mut items = Vec::new();
        for frame in frames.drain(..) {
            if self.stopped() {
                break;
            }
            if frame.data == "[DONE]" {
                self.finish(true, out)?;
                break;
            }
            let decoded = self.decoder.frame(&frame, &mut items);
            self.deliver(&mut items, out)?;
            decoded?;
        }
        self.frames = frames;
        Ok(())
    }

    /// The stream is over: `marked` where `[DONE]` says so.
    fn finish(&mut self, marked: bool, out: &mut dyn DriverOut) -> Result<(), Error> {
        self.done = true;
        let mut items = Vec::new();
        let finished = if marked {
            self.decoder.done(&mut items)
        } else {
            self.decoder.finish(&mut items)
        };
        self.deliver(&mut items, out)?;
        finished?;
        if self.assembler.stopped() { Ok(()) } else { Err(cut()) }
    }

    fn deliver(&mut self, items: &mut Vec<StreamItem>, out: &mut dyn DriverOut) -> Result<(), Error> {
        for item in items.drain(..) {
            self.assembler.item(&item)?;
            out.item(item);
        }
        Ok(())
    }
}

/// The error behind a status that is not 200: the driver knows the provider's words, the policy here knows the statuses.
pub(crate) fn refusal(format: WireFormat, head: &http::response::Parts, body: &[u8], clock: &dyn Clock) -> Error {
    let error = (format.refusal)(head, body).with("status", head.status.as_str());
    // An account without credit answers 429 too, and waiting does not fill it.
    let hopeless = matches!(
        error.kind,
        ErrorKind::Quota | ErrorKind::Auth | ErrorKind::ContextOverflow | ErrorKind::Settings
    );
    if hopeless || !retry::worth_another_try(head.status) {
        return error;
    }
    match retry::retry_after(&head.headers, clock.wall()) {
        Some(after) => error.retry(Retry::After(after)),
        None if error.retry == Retry::Never => error.retry(Retry::Later),
        None => error,
    }
}

fn is_stream(headers: &http::HeaderMap, framing: Framing) -> bool {
    let Some(content_type) = headers.get(http::header::CONTENT_TYPE) else {
        return true;
    };
    let essence = content_type
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    match framing {
        Framing::EventStream => essence == "text/event-stream",
        Framing::JsonLines => essence.contains("json") || essence == "text/plain",
    }
}

/// The encoding of a body that cannot be read here.
fn encoding(headers: &http::HeaderMap) -> Option<String> {
    let named = headers.get_all(http::header::CONTENT_ENCODING).iter();
    let named: Vec<_> = named.map(|value| quote(value.as_bytes())).collect();
    let named = named.join(", ");
    let plain = named.is_empty() || named.eq_ignore_ascii_case("identity");
    (!plain).then_some(named)
}

fn compressed(encoding: &str) -> Error {
    let message = format!("the endpoint answered with the content encoding `{encoding}`, which was not asked for");
    let hint = "Switch compression off at the endpoint, or at the proxy before it: `identity` is asked for.";
    Error::new(&codes::NOT_A_STREAM, message).hint(hint)
}

fn not_a_stream(headers: &http::HeaderMap, body: &[u8]) -> Error {
    let content_type = headers.get(http::header::CONTENT_TYPE);
    let content_type = content_type
        .and_then(|value| value.to_str().ok())
        .map_or_else(|| "no content type".to_owned(), |value| quote(value.as_bytes()));
    let message = format!(
        "the endpoint answered with {content_type} in place of a stream: {}",
        quote(body)
    );
    Error::new(&codes::NOT_A_STREAM, message)
}

/// The readable start of a body: no tags, no control characters, one line.
pub(crate) fn quote(body: &[u8]) -> String {
    let body = String::from_utf8_lossy(body);
    let mut plain = String::new();
    let mut in_tag = false;
    for c in body.chars() {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => {
                in_tag = false;
                plain.push(' ');
            }
            _ if in_tag => {}
            c if c.is_control() => plain.push(' '),
            c => plain.push(c),
        }
    }
    let words: Vec<_> = plain.split_whitespace().collect();
    words.join(" ").chars().take(MAX_QUOTE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_quoted_without_its_tags_and_on_one_line() {
        let page = b"<html>\n<head><title>Sign in</title></head><body>to\tthe  <b>guest</b> network\x1b[0m</body>";
        assert_eq!(quote(page), "Sign in to the guest network [0m");
        assert_eq!(quote(&[b'x'; 5000]).len(), MAX_QUOTE);
    }

    struct Nobody;

    impl DriverOut for Nobody {
        fn item(&mut self, _: StreamItem) {}
    }

    #[test]
    fn a_stream_of_comments_ends() {
        use capsule_driver_anthropic as _;
        let drivers = capsule_api::Registry::<capsule_api::DriverDescriptor>::linked().unwrap();
        let mut decoding = Decoding::new(drivers.get("anthropic").unwrap().wire.unwrap());
        let mut comment = vec![b':'; 1 << 20];
        comment[(1 << 20) - 1] = b'\n';
        for _ in 0..MAX_STREAM >> 20 {
            decoding.bytes(&comment, &mut Nobody).unwrap();
        }
        let error = decoding.bytes(b":", &mut Nobody).unwrap_err();
        assert_eq!((error.code, error.retry), ("http-answer-too-long", Retry::Never));
    }
}
