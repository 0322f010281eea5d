//! The part that speaks to the host.

use std::time::Duration;

use capsule_guest::Error;
use url::{Position, Url};
use wasip2::clocks::monotonic_clock;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    self, ErrorCode, Fields, FutureIncomingResponse, IncomingResponse, OutgoingBody, OutgoingRequest, RequestOptions,
    Scheme,
};
use wasip2::io::poll::{Pollable, poll};
use wasip2::io::streams::{InputStream, StreamError};

use crate::redirects::{Response, origin};
use crate::request::{Method, Request};

/// Bytes that are written or read at once. A stream takes no more than this in one blocking write.
const PIECE: usize = 4096;
const READ: u64 = 64 << 10;

/// When the time of a call is over.
pub(super) struct Clock {
    end: Pollable,
    time: Duration,
}

impl Clock {
    pub(super) fn start(time: Duration) -> Self {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            end: monotonic_clock::subscribe_duration(nanoseconds),
            time,
        }
    }

    /// Waits for `ready`.
    fn wait(&self, ready: &Pollable, url: &Url) -> Result<(), Error> {
        // Of two that are ready, the answer counts.
        if poll(&[ready, &self.end]).contains(&0) {
            return Ok(());
        }
        let seconds = self.time.as_secs();
        Err(Error::new(format!(
            "{} has not answered within {seconds} s",
            origin(url)
        )))
    }
}

pub(super) fn send(request: &Request, clock: &Clock, most: usize) -> Result<Response, Error> {
    let url = &request.url;
    let outgoing = outgoing(request)
        .ok_or_else(|| Error::new(format!("the host takes no request like this for {}", origin(url))))?;
    let body = outgoing.body().map_err(|()| Error::new("the request has no body"))?;
    let options = RequestOptions::new();
    let nanoseconds = u64::try_from(clock.time.as_nanos()).unwrap_or(u64::MAX);
    // The clock is what ends a call; these end what the host waits for, too. A host without them does not matter.
    let _ = options.set_connect_timeout(Some(nanoseconds));
    let _ = options.set_first_byte_timeout(Some(nanoseconds));
    let _ = options.set_between_bytes_timeout(Some(nanoseconds));
    let future = outgoing_handler::handle(outgoing, Some(options)).map_err(|code| failed(&code, url))?;
    let written = write(body, &request.body);
    // Where the host refuses a request, writing fails too: its own reason says more.
    let incoming = answer(&future, clock, url)?;
    written?;
    read(&incoming, clock, most, url)
}

fn outgoing(request: &Request) -> Option<OutgoingRequest> {
    let mut headers: Vec<(String, Vec<u8>)> = request
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
        .collect();
    if request.method == Method::Post {
        headers.push(("content-length".to_owned(), request.body.len().to_string().into_bytes()));
    }
    let outgoing = OutgoingRequest::new(Fields::from_list(&headers).ok()?);
    let url = &request.url;
    let (method, scheme) = match (request.method, url.scheme()) {
        (Method::Get, scheme) => (types::Method::Get, scheme),
        (Method::Post, scheme) => (types::Method::Post, scheme),
    };
    let scheme = if scheme == "https" { Scheme::Https } else { Scheme::Http };
    outgoing.set_method(&method).ok()?;
    outgoing.set_scheme(Some(&scheme)).ok()?;
    outgoing
        .set_authority(Some(&url[Position::BeforeHost..Position::AfterPort]))
        .ok()?;
    outgoing
        .set_path_with_query(Some(&url[Position::BeforePath..Position::AfterQuery]))
        .ok()?;
    Some(outgoing)
}

fn write(body: OutgoingBody, bytes: &[u8]) -> Result<(), Error> {
    let told = |what: &str| Error::new(format!("the request could not be sent: {what}"));
    let stream = body.write().map_err(|()| told("it has no stream"))?;
    for piece in bytes.chunks(PIECE) {
        stream
            .blocking_write_and_flush(piece)
            .map_err(|error| told(&format!("{error:?}")))?;
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(|code| told(&format!("{code:?}")))
}

fn answer(future: &FutureIncomingResponse, clock: &Clock, url: &Url) -> Result<IncomingResponse, Error> {
    loop {
        match future.get() {
            Some(Ok(Ok(response))) => return Ok(response),
            Some(Ok(Err(code))) => return Err(failed(&code, url)),
            Some(Err(())) => return Err(Error::new("the answer was taken twice")),
            None => clock.wait(&future.subscribe(), url)?,
        }
    }
}

fn read(incoming: &IncomingResponse, clock: &Clock, most: usize, url: &Url) -> Result<Response, Error> {
    let headers = incoming.headers().entries();
    let headers = headers
        .into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect();
    let gone = || Error::new(format!("{} gave no body", origin(url)));
    let body = incoming.consume().map_err(|()| gone())?;
    let stream = body.stream().map_err(|()| gone())?;
    let (body, cut) = read_stream(&stream, clock, most, url)?;
    Ok(Response {
        status: incoming.status(),
        headers,
        body,
        cut,
    })
}

/// The bytes of a stream, and whether there are more.
fn read_stream(stream: &InputStream, clock: &Clock, most: usize, url: &Url) -> Result<(Vec<u8>, bool), Error> {
    let mut bytes = Vec::new();
    loop {
        clock.wait(&stream.subscribe(), url)?;
        match stream.read(READ) {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(StreamError::Closed) => return Ok((bytes, false)),
            Err(StreamError::LastOperationFailed(error)) => {
                let what = error.to_debug_string();
                return Err(Error::new(format!("the answer of {} broke off: {what}", origin(url))));
            }
        }
        if bytes.len() > most {
            bytes.truncate(most);
            return Ok((bytes, true));
        }
    }
}

/// Why there is no answer. What was denied is told by the host beside this.
fn failed(code: &ErrorCode, url: &Url) -> Error {
    let to = origin(url);
    let why = match code {
        ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => {
            return Error::denied(format!("{to} was not asked: it is not granted"));
        }
        ErrorCode::DnsError(_) | ErrorCode::DnsTimeout | ErrorCode::DestinationNotFound => "its name is not known",
        ErrorCode::ConnectionRefused | ErrorCode::DestinationUnavailable => "it cannot be reached",
        ErrorCode::ConnectionTimeout | ErrorCode::ConnectionReadTimeout | ErrorCode::HttpResponseTimeout => {
            "it has not answered in time"
        }
        ErrorCode::TlsProtocolError | ErrorCode::TlsCertificateError | ErrorCode::TlsAlertReceived(_) => {
            "its encryption failed"
        }
        ErrorCode::HttpRequestBodySize(_) => "what was to be sent is larger than `limits.http_body`",
        other => return Error::new(format!("{to} gave no answer: {other:?}")),
    };
    Error::new(format!("{to} gave no answer: {why}"))
}
