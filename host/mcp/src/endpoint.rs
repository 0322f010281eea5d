//! The service over HTTP: what is read from headers, and how answers are written.

use std::net::SocketAddr;

use async_trait::async_trait;
use bytes::Bytes;
use capsule_net::{Body, Handler};
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use serde_json::Value;

use crate::{McpService, reply::Reply, service::Via};

#[async_trait]
impl Handler for McpService {
    async fn handle(&self, request: Request<Bytes>, _peer: SocketAddr) -> Response<Body> {
        let (head, body) = request.into_parts();
        write(self.answer(Via::Http(&head.headers), &body).await)
    }
}

fn write(reply: Reply) -> Response<Body> {
    match reply {
        Reply::Nothing => with(Response::new(Body::empty()), StatusCode::ACCEPTED, &[]),
        Reply::One(status, message) => with(
            Response::new(Body::full(message.to_string())),
            status,
            &[(header::CONTENT_TYPE, "application/json")],
        ),
        Reply::Many(messages) => {
            let events = messages.map(|message| message.map_or(COMMENT, |message| event(&message)));
            let headers = [
                (header::CONTENT_TYPE, "text/event-stream"),
                (header::CACHE_CONTROL, "no-cache, no-transform"),
                // A proxy that collects the stream would keep signs of life from the client.
                (HeaderName::from_static("x-accel-buffering"), "no"),
            ];
            with(Response::new(Body::stream(events)), StatusCode::OK, &headers)
        }
    }
}

fn with(mut response: Response<Body>, status: StatusCode, headers: &[(HeaderName, &'static str)]) -> Response<Body> {
    *response.status_mut() = status;
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// One message as an event. JSON text has no line breaks, so it is one line of data.
fn event(message: &Value) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

/// A sign of life without meaning.
const COMMENT: Bytes = Bytes::from_static(b": still running\n\n");

/// Whether the client takes an event stream as the answer.
pub(crate) fn accepts_events(headers: &HeaderMap) -> bool {
    let mut accepted = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    accepted.any(|range| {
        let range = range.split(';').next().unwrap_or_default().trim();
        ["text/event-stream", "text/*", "*/*"]
            .iter()
            .any(|known| range.eq_ignore_ascii_case(known))
    })
}
