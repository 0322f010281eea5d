//! Puts what a driver and a model say to each other on the run's tape, where there is one.
//!
//! An exchange is handed over when it ends, however it ends: what came before a cut or a cancel is on the tape too. Keys are taken out of the
//! texts. One that is spread over several pieces of a stream cannot be taken out of it; the answer is then recorded as what it says.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use capsule_api::{
    Billing, BlockDelta, Bytes, Driver, DriverOut, Error, Recorder, Request, RequestShape, Response, Secrets, Services,
    StreamItem, TapeEntry, TapedResponse, TapedStream, WireFormat, async_trait, http, serde_json,
};

use crate::wire_driver::Decoding;

/// Boundaries of chunks are looked for in a text with a secret up to this many bytes times chunks; above it the text is one chunk.
const MAX_EFFORT: usize = 1 << 27;

/// An exchange with a provider over HTTP, on its way to the tape.
pub(crate) struct Taping {
    recorder: Arc<dyn Recorder>,
    services: Services,
    wire: &'static str,
    format: WireFormat,
    request: RequestShape,
    started: Instant,
    /// None until the head of an answer is here. A request that was never answered is not on the tape.
    status: Option<u16>,
    chunks: Vec<(u64, Bytes)>,
    response: Option<Response>,
}

impl Taping {
    /// `None` where the run is not recorded.
    pub(crate) fn begin(
        services: &Services,
        wire: &'static str,
        format: WireFormat,
        request: &Request,
    ) -> Option<Self> {
        let recorder = services.recorder.clone()?;
        Some(Self {
            recorder,
            services: services.clone(),
            wire,
            format,
            request: shape(services, request),
            started: services.clock.now(),
            status: None,
            chunks: Vec::new(),
            response: None,
        })
    }

    pub(crate) fn head(&mut self, status: u16) {
        self.status = Some(status);
    }

    pub(crate) fn chunk(&mut self, bytes: &Bytes) {
        let passed = self.services.clock.now().saturating_duration_since(self.started);
        self.chunks.push((milliseconds(passed), bytes.clone()));
    }

    pub(crate) fn answered(&mut self, response: &Response) {
        self.response = Some(response.clone());
    }

    fn entry(&mut self) -> Option<TapeEntry> {
        let status = self.status?;
        let secrets = &*self.services.secrets;
        let request = std::mem::take(&mut self.request);
        let mut chunks = redacted(texts(std::mem::take(&mut self.chunks)), secrets);
        if status == 200 && says_a_secret(self.format, &chunks, secrets) {
            if let Some(response) = self.response.as_ref().and_then(|response| without(response, secrets)) {
                return Some(TapeEntry::Response(TapedResponse { request, response }));
            }
            // A cut answer with a key in it: the cut is worth keeping, the pieces are not.
            chunks.clear();
        }
        Some(TapeEntry::Stream(TapedStream {
            request,
            wire: self.wire.to_owned(),
            status,
            chunks,
        }))
    }
}

impl Drop for Taping {
    fn drop(&mut self) {
        if let Some(entry) = self.entry() {
            self.recorder.record(entry);
        }
    }
}

/// A driver that answers by itself, recorded.
pub(crate) struct TapedDriver {
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) services: Services,
}

#[async_trait]
impl Driver for TapedDriver {
    async fn request(&self, request: &Request, out: &mut dyn DriverOut) -> Result<Response, Error> {
        let answered = self.driver.request(request, out).await;
        // Whatever it quotes may be the key.
        let response =
            answered.map_err(|error| error.map_text(|text| self.services.secrets.redact(text).into_owned()))?;
        whole(&self.services, request, &response);
        Ok(response)
    }

    fn endpoint(&self) -> Option<http::Uri> {
        self.driver.endpoint()
    }

    fn facts(&self) -> Vec<(String, String)> {
        self.driver.facts()
    }

    fn billing(&self) -> Billing {
        self.driver.billing()
    }
}

/// Records a whole answer.
pub(crate) fn whole(services: &Services, request: &Request, response: &Response) {
    let Some(recorder) = &services.recorder else { return };
    if let Some(response) = without(response, &*services.secrets) {
        let request = shape(services, request);
        recorder.record(TapeEntry::Response(TapedResponse { request, response }));
    }
}

/// Records a stream that is itself a recording.
pub(crate) fn again(services: &Services, request: &Request, (wire, status): (&str, u16), chunks: &[(Duration, Bytes)]) {
    let Some(recorder) = &services.recorder else { return };
    let chunks = chunks.iter().map(|(at, bytes)| (milliseconds(*at), bytes.clone()));
    recorder.record(TapeEntry::Stream(TapedStream {
        request: shape(services, request),
        wire: wire.to_owned(),
        status,
        chunks: redacted(texts(chunks.collect()), &*services.secrets),
    }));
}

fn milliseconds(passed: Duration) -> u64 {
    u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
}

fn shape(services: &Services, request: &Request) -> RequestShape {
    RequestShape::of(request).map_text(|text| services.secrets.redact(text).into_owned())
}

/// The answer without what must not be shown. `None` if it could not be read any more, which no replacement within a text brings about.
fn without(response: &Response, secrets: &dyn Secrets) -> Option<Response> {
    let text = serde_json::to_string(response).ok()?;
    serde_json::from_str(&secrets.redact(&text)).ok()
}

/// Chunks as text. A character that is spread over two of them belongs to the later one.
fn texts(chunks: Vec<(u64, Bytes)>) -> Vec<(u64, String)> {
    let mut open = Vec::new();
    let mut last = 0;
    let mut texts = Vec::new();
    for (ms, bytes) in chunks {
        open.extend_from_slice(&bytes);
        let whole = open.len() - unfinished(&open);
        let rest = open.split_off(whole);
        texts.push((ms, String::from_utf8_lossy(&open).into_owned()));
        (open, last) = (rest, ms);
    }
    if !open.is_empty() {
        texts.push((last, String::from_utf8_lossy(&open).into_owned()));
    }
    texts
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    bytes[from..]
        .utf8_chunks()
        .last()
        .filter(|chunk| bytes.ends_with(chunk.invalid()) && !chunk.invalid().is_empty())
        .filter(|chunk| chunk.invalid()[0] >= 0xC2 && needs(chunk.invalid()[0]) > chunk.invalid().len())
        .map_or(0, |chunk| chunk.invalid().len())
}

/// How many bytes a character has that begins with this one.
fn needs(first: u8) -> usize {
    match first {
        0xF0..=0xF4 => 4,
        0xE0..=0xEF => 3,
        0xC2..=0xDF => 2,
        _ => 1,
    }
}

/// The chunks without secrets. A chunk that ends within one is joined with the next.
fn redacted(chunks: Vec<(u64, String)>, secrets: &dyn Secrets) -> Vec<(u64, String)> {
    let text: String = chunks.iter().map(|(_, text)| text.as_str()).collect();
    let clean = secrets.redact(&text);
    if clean == text {
        return chunks;
    }
    let affordable = text.len().saturating_mul(chunks.len()) <= MAX_EFFORT;
    let mut joined = Vec::new();
    let (mut end, mut taken) = (0, 0);
    let count = chunks.len();
    for (n, (ms, chunk)) in chunks.into_iter().enumerate() {
        end += chunk.len();
        let last = n + 1 == count;
        if !last && !affordable {
            continue;
        }
        let before = secrets.redact(&text[..end]);
        // A boundary within a secret leaves parts that are found on neither side of it.
        let whole = clean
            .strip_prefix(&*before)
            .is_some_and(|rest| rest == secrets.redact(&text[end..]));
        if last {
            joined.push((ms, clean[taken..].to_owned()));
        } else if whole && before.len() >= taken {
            joined.push((ms, before[taken..].to_owned()));
            taken = before.len();
        }
    }
    joined
}

/// Whether the pieces of an answer make up a secret that the text as it came does not show.
fn says_a_secret(format: WireFormat, chunks: &[(u64, String)], secrets: &dyn Secrets) -> bool {
    let mut heard = Heard::default();
    let mut decoding = Decoding::new(format);
    for (_, text) in chunks {
        if decoding.stopped() || decoding.bytes(text.as_bytes(), &mut heard).is_err() {
            break;
        }
    }
    let mut said = heard.0.values();
    said.any(|text| secrets.redact(text) != text.as_str())
}

/// What each block says, put together.
#[derive(Default)]
struct Heard(BTreeMap<(u32, u8), String>);

impl DriverOut for Heard {
    fn item(&mut self, item: StreamItem) {
        let StreamItem::Delta { index, delta } = item else {
            return;
        };
        let (kind, piece) = match delta {
            BlockDelta::Text(text) => (0, text),
            BlockDelta::Signature(text) => (1, text),
            BlockDelta::Input(text) => (2, text),
            BlockDelta::WholeInput(value) => (3, value.to_string()),
            _ => return,
        };
        self.0.entry((index, kind)).or_default().push_str(&piece);
    }
}

#[cfg(test)]
#[path = "taping_tests.rs"]
mod tests;
