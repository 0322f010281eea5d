//! One request, from its arrival to its answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::delivery::{Act, Body, ScriptedCut, perform, plan, whole};
use crate::fault::status_of;
use crate::provider::MAX_BODY_BYTES;
use crate::record::{Exchange, Recorder};
use crate::wire::{self, Format, Route, Stream};
use crate::{
    Answer, AnswerBody, ApiError, Close, Fault, Gate, Outcome, Position, RecordedRequest, Reply, Script, Step,
};

/// The longest time that a request body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) recorder: Recorder,
    pub(crate) gate: Gate,
}

/// One connection's view of the provider.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    pub(crate) shared: Arc<Shared>,
    /// Set when the connection is to end by a reset.
    pub(crate) reset: Arc<AtomicBool>,
}

/// A model request: its wire format and body.
#[derive(Clone, Copy)]
struct Asked<'a> {
    format: Format,
    body: &'a Value,
}

type Answered = Result<Response<Body>, ScriptedCut>;

impl Service {
    /// Answers a request. An error ends the connection, as scripted.
    pub(crate) async fn answer(self, request: Request<Incoming>) -> Answered {
        let recorder = &self.shared.recorder;
        let route = wire::route(request.method(), request.uri().path());
        // Where a request has no format, errors look as those of the first one.
        let format = match route {
            Route::Model(format) => format,
            _ => Format::Messages,
        };
        if recorder.is_full() {
            let full = ApiError::new("api_error", "the provider's record of requests is full");
            recorder.violation(full.message.clone());
            return Ok(error_answer(format, 500, &full, "req_unrecorded"));
        }
        let (head, body) = request.into_parts();
        let request = match read_body(body).await {
            Ok(bytes) => recorded(head, &bytes),
            Err(Unread::ClientGone) => {
                recorder.other(recorded(head, &[]), Outcome::Dropped);
                return Err(ScriptedCut);
            }
            Err(Unread::Refused(status, error)) => {
                recorder.refuse(recorded(head, &[]), error.message.clone());
                return Ok(error_answer(format, status, &error, "req_unread"));
            }
        };
        match route {
            Route::Model(format) => self.model(format, request).await,
            other => {
                let answer = side_answer(other, &request);
                recorder.other(request, Outcome::Answered);
                Ok(answer)
            }
        }
    }

    async fn model(self, format: Format, request: RecordedRequest) -> Answered {
        let Shared { script, recorder, .. } = &*self.shared;
        let checked = format.check(&request.headers, &request.body, script.allow_non_streaming);
        if let Err(refusal) = checked {
            recorder.refuse(request, refusal.message.clone());
            let error = ApiError::new(refusal.kind, &refusal.message);
            return Ok(error_answer(format, refusal.status, &error, "req_refused"));
        }
        let body = request.body.clone();
        let mut exchange = recorder.open(request);
        match script.step(exchange.number).cloned() {
            Some(step) => self.perform(step, Asked { format, body: &body }, exchange).await,
            None => {
                let steps = script.steps.len();
                let message = format!("script exhausted after {steps} requests");
                let id = request_id(&exchange);
                exchange.finish(Outcome::Overrun);
                let error = ApiError::new("api_error", &message);
                Ok(error_answer(format, 500, &error, &id))
            }
        }
    }

    async fn perform(self, step: Step, asked: Asked<'_>, mut exchange: Exchange) -> Answered {
        match step {
            Step::Reply(reply) => self.deliver(&reply, asked, exchange, None),
            Step::Fault(Fault::Answer(answer)) => {
                let answer = by_hand(asked.format, &answer, &request_id(&exchange));
                exchange.finish(Outcome::Answered);
                Ok(answer)
            }
            Step::Fault(Fault::CloseBeforeHeaders(close)) => {
                self.reset.store(close == Close::Reset, Ordering::Release);
                exchange.finish(Outcome::Cut);
                Err(ScriptedCut)
            }
            Step::Fault(Fault::HangBeforeHeaders(reply)) => {
                self.shared.gate.pass().await;
                self.deliver(&reply, asked, exchange, None)
            }
            Step::Fault(Fault::Cut { reply, after, close }) => {
                self.deliver(&reply, asked, exchange, Some((after, Act::Cut(close))))
            }
            Step::Fault(Fault::Stall { reply, after }) => {
                self.deliver(&reply, asked, exchange, Some((after, Act::Wait)))
            }
            Step::Fault(Fault::ErrorEvent {
                reply,
                after_events,
                error,
            }) => self.fail_midway(&reply, asked, exchange, (after_events, &error)),
        }
    }

    fn deliver(
        self,
        reply: &Reply,
        asked: Asked<'_>,
        mut exchange: Exchange,
        mut interruption: Option<(Position, Act)>,
    ) -> Answered {
        let number = exchange.number;
        let Asked { format, body } = asked;
        let (encoded, usual_type) = if format.streams(body) {
            (format.events(reply, body, number), format.stream_type())
        } else {
            let message = format.whole(reply, body, number).map(|message| message.to_string());
            if let (Ok(message), Some((position @ (Position::Events(_) | Position::Content), _))) =
                (&message, &mut interruption)
            {
                *position = Position::Bytes(message.len() / 2);
            }
            let one = message.map(|message| Stream {
                events: vec![message.into()],
                content: 1,
            });
            (one, "application/json")
        };
        let id = request_id(&exchange);
        match encoded {
            Ok(told) => {
                let content_type = reply.content_type.as_deref().unwrap_or(usual_type);
                let acts = plan(&told.events, told.content, reply.chunking, interruption);
                Ok(self.stream(acts, exchange, content_type))
            }
            Err(not_offered) => {
                let error = ApiError::new("api_error", &not_offered.to_string());
                self.shared.recorder.violation(error.message.clone());
                exchange.finish(Outcome::Refused);
                Ok(error_answer(format, 500, &error, &id))
            }
        }
    }

    /// The first events of a reply, then an error event. A client that asked for one JSON message
    /// gets the error as the answer.
    fn fail_midway(
        self,
        reply: &Reply,
        asked: Asked<'_>,
        mut exchange: Exchange,
        (after_events, error): (usize, &ApiError),
    ) -> Answered {
        let id = request_id(&exchange);
        let Asked { format, body } = asked;
        if !format.streams(body) {
            exchange.finish(Outcome::Answered);
            return Ok(error_answer(format, status_of(&error.kind), error, &id));
        }
        match format.events(reply, body, exchange.number) {
            Ok(Stream { mut events, content }) => {
                events.truncate(after_events);
                events.push(format.error_event(error, &id));
                let acts = plan(&events, content, reply.chunking, None);
                Ok(self.stream(acts, exchange, format.stream_type()))
            }
            // Records and reports the tool that is not on offer.
            Err(_) => self.deliver(reply, asked, exchange, None),
        }
    }

    fn stream(self, acts: VecDeque<Act>, exchange: Exchange, content_type: &str) -> Response<Body> {
        let id = request_id(&exchange);
        let gate = self.shared.gate.clone();
        let body = perform(acts, gate, exchange, self.reset);
        response(200, content_type, &id, body)
    }
}

/// Why a request's body was not read to its end.
enum Unread {
    /// The client left.
    ClientGone,
    /// Too large or too late: the status and the error of the answer.
    Refused(u16, ApiError),
}

/// Reads a body to its end, within the limits of size and time.
async fn read_body(body: Incoming) -> Result<Bytes, Unread> {
    let collected = Limited::new(body, MAX_BODY_BYTES).collect();
    match tokio::time::timeout(BODY_TIMEOUT, collected).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("Request exceeds the maximum size of {MAX_BODY_BYTES} bytes");
            Err(Unread::Refused(413, ApiError::new("request_too_large", &message)))
        }
        Ok(Err(_)) => Err(Unread::ClientGone),
        Err(_) => {
            let message = format!("no complete request body within {BODY_TIMEOUT:?}");
            Err(Unread::Refused(408, ApiError::new("invalid_request_error", &message)))
        }
    }
}

fn recorded(head: Parts, body: &[u8]) -> RecordedRequest {
    let mut headers = head.headers;
    mark_sensitive(&mut headers);
    RecordedRequest {
        method: head.method,
        path: head.uri.to_string(),
        headers,
        body: serde_json::from_slice(body).unwrap_or(Value::Null),
        outcome: Outcome::Open,
        size: body.len(),
    }
}

/// Keeps keys out of `Debug` output.
fn mark_sensitive(headers: &mut HeaderMap) {
    for name in ["x-api-key", "authorization", "proxy-authorization"] {
        if let Some(value) = headers.get_mut(name) {
            value.set_sensitive(true);
        }
    }
}

fn request_id(exchange: &Exchange) -> String {
    format!("req_scripted_{:04}", exchange.number + 1)
}

/// The answer to a request that is not a model request.
fn side_answer(route: Route, request: &RecordedRequest) -> Response<Body> {
    let json = |status, body: Value| {
        let body = if request.method == Method::HEAD {
            whole("")
        } else {
            whole(body.to_string())
        };
        response(status, "application/json", "req_side", body)
    };
    match route {
        Route::CountTokens => {
            // About four characters to a token.
            let tokens = request.body.to_string().len().div_ceil(4);
            json(200, json!({"input_tokens": tokens}))
        }
        Route::Probe => json(200, Value::Null),
        Route::Model(_) | Route::Unknown => {
            let message = format!("no such route: {} {}", request.method, request.path);
            let error = ApiError::new("not_found_error", &message);
            json(404, Format::Messages.error_body(&error, "req_side"))
        }
    }
}

fn by_hand(format: Format, answer: &Answer, id: &str) -> Response<Body> {
    let (content_type, text) = match &answer.body {
        AnswerBody::Error(error) => ("application/json", format.error_body(error, id).to_string()),
        AnswerBody::Json(body) => ("application/json", body.to_string()),
        AnswerBody::Html(page) => ("text/html; charset=utf-8", page.clone()),
        AnswerBody::Text { content_type, text } => (content_type.as_str(), text.clone()),
    };
    let mut response = response(answer.status, content_type, id, whole(text));
    for (name, value) in &answer.headers {
        let name = header::HeaderName::from_bytes(name.as_bytes());
        let pair = name.ok().zip(HeaderValue::from_str(value).ok());
        let (name, value) = pair.expect("`Answer::flaw` found none at the start");
        response.headers_mut().insert(name, value);
    }
    response
}

fn error_answer(format: Format, status: u16, error: &ApiError, id: &str) -> Response<Body> {
    let body = whole(format.error_body(error, id).to_string());
    response(status, "application/json", id, body)
}

fn response(status: u16, content_type: &str, id: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).expect("`Answer::flaw` found none at the start");
    let headers = response.headers_mut();
    let content_type = HeaderValue::from_str(content_type).expect("`Step::flaw` found none at the start");
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert("request-id", HeaderValue::from_str(id).expect("request ids are ASCII"));
    response
}
