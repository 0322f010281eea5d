//! One request over `wasi:http`, its answer read as it comes.

use capsule_guest::Json;
use wasip2::{
    http::{
        outgoing_handler::handle,
        types::{ErrorCode, Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme},
    },
    io::streams::StreamError,
};

use crate::{answer::Answer, events::Events, failure::Failure};

/// The most that one write takes.
const PIECE: usize = 4096;
/// The most of an error's body that is read.
const REFUSAL: usize = 64 << 10;
const READ: u64 = 64 << 10;

/// Sends the request; the events of the answer go to `answer`.
pub(crate) fn send(url: &str, body: &Json, answer: &mut Answer) -> Result<(), Failure> {
    let request = request(url)?;
    let out = request.body().map_err(|()| unsendable(url))?;
    let response = handle(request, None).map_err(|code| unreachable(&code))?;
    write(out, body.to_string().as_bytes())?;
    response.subscribe().block();
    let response = match response.get() {
        Some(Ok(Ok(response))) => response,
        Some(Ok(Err(code))) => return Err(unreachable(&code)),
        _ => return Err(Failure::new("network", "the response is gone")),
    };
    if response.status() != 200 {
        return Err(refusal(&response));
    }
    let mut events = Events::default();
    read(&response, |bytes| {
        events.take(bytes, |data| answer.event(data));
        !answer.is_over()
    })
}

fn request(url: &str) -> Result<OutgoingRequest, Failure> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| unsendable(url))?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let scheme = match scheme {
        "http" => Scheme::Http,
        _ => Scheme::Https,
    };
    let fields = Fields::new();
    for (name, value) in [("content-type", "application/json"), ("accept", "text/event-stream")] {
        fields.append(name, value.as_bytes()).map_err(|_| unsendable(url))?;
    }
    let request = OutgoingRequest::new(fields);
    let set = request
        .set_method(&Method::Post)
        .and_then(|()| request.set_scheme(Some(&scheme)))
        .and_then(|()| request.set_authority(Some(authority)))
        .and_then(|()| request.set_path_with_query(Some(path)));
    set.map_err(|()| unsendable(url))?;
    Ok(request)
}

fn unsendable(url: &str) -> Failure {
    Failure::new(
        "bad_request",
        format!("{url} is not an address that a request can go to"),
    )
}

fn write(body: OutgoingBody, bytes: &[u8]) -> Result<(), Failure> {
    let broken = || Failure::new("network", "the connection broke while the request was sent").transient();
    let stream = body.write().map_err(|()| broken())?;
    for piece in bytes.chunks(PIECE) {
        // A provider may answer before it has read all; its answer then says why.
        if stream.blocking_write_and_flush(piece).is_err() {
            return Ok(());
        }
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(|code| unreachable(&code))
}

/// Hands the body on, until `take` wants no more.
fn read(response: &IncomingResponse, mut take: impl FnMut(&[u8]) -> bool) -> Result<(), Failure> {
    let gone = || Failure::new("network", "the body of the response is gone");
    let body: IncomingBody = response.consume().map_err(|()| gone())?;
    let stream = body.stream().map_err(|()| gone())?;
    loop {
        match stream.blocking_read(READ) {
            Ok(bytes) if take(&bytes) => {}
            Ok(_) | Err(StreamError::Closed) => return Ok(()),
            Err(StreamError::LastOperationFailed(_)) => {
                return Err(Failure::new("network", "the connection broke in the middle of the answer").transient());
            }
        }
    }
}

fn refusal(response: &IncomingResponse) -> Failure {
    let wait = response.headers().get("retry-after");
    let wait = wait
        .first()
        .and_then(|value| std::str::from_utf8(value).ok()?.trim().parse().ok());
    let mut body = Vec::new();
    // What was read before a break is as good as any.
    let _ = read(response, |bytes| {
        body.extend_from_slice(bytes);
        body.len() < REFUSAL
    });
    Failure::of_status(response.status(), wait, &String::from_utf8_lossy(&body))
}

fn unreachable(code: &ErrorCode) -> Failure {
    let failure = Failure::new("network", format!("the endpoint was not reached: {code:?}"));
    match code {
        ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited | ErrorCode::HttpRequestUriInvalid => failure,
        ErrorCode::HttpRequestBodySize(_) | ErrorCode::TlsCertificateError | ErrorCode::TlsProtocolError => failure,
        _ => failure.transient(),
    }
}
