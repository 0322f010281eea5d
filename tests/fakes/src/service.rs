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
use crate::wire::anthropic::{self, Route};
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

type Answered = Result<Response<Body>, ScriptedCut>;

impl Service {
    /// Answers a request. An error ends the connection, as scripted.
    pub(crate) async fn answer(self, request: Request<Incoming>) -> Answered {
        let recorder = &self.shared.recorder;
        let route = anthropic::route(request.method(), request.uri().path());
        if recorder.is_full() {
            let full = ApiError::new("api_error", "the provider's record of requests is full");
            recorder.violation(full.message.clone());
            return Ok(error_answer(500, &full, "req_unrecorded"));
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
                return Ok(error_answer(status, &error, "req_unread"));
            }
        };
        match route {
            Route::Messages => self.messages(request).await,
            other => {
                let answer = side_answer(other, &request);
                recorder.other(request, Outcome::Answered);
                Ok(answer)
            }
        }
    }

    async fn messages(self, request: RecordedRequest) -> Answered {
        let Shared { script, recorder, .. } = &*self.shared;
        let checked = anthropic::check(&request.headers, &request.body, script.allow_non_streaming);
        if let Err(refusal) = checked {
            recorder.refuse(request, refusal.message.clone());
            let error = ApiError::new(refusal.kind, &refusal.message);
            return Ok(error_answer(refusal.status, &error, "req_refused"));
        }
        let body = request.body.clone();
        let mut exchange = recorder.open(request);
        match script.step(exchange.number).cloned() {
            Some(step) => self.perform(step, &body, exchange).await,
            None => {
                let steps = script.steps.len();
                let message = format!("script exhausted after {steps} requests");
                let id = request_id(&exchange);
                exchange.finish(Outcome::Overrun);
                let error = ApiError::new("api_error", &message);
                Ok(error_answer(500, &error, &id))
            }
        }
    }

    async fn perform(self, step: Step, body: &Value, mut exchange: Exchange) -> Answered {
        match step {
            Step::Reply(reply) => self.deliver(&reply, body, exchange, None),
            Step::Fault(Fault::Answer(answer)) => {
                let answer = by_hand(&answer, &request_id(&exchange));
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
                self.deliver(&reply, body, exchange, None)
            }
            Step::Fault(Fault::Cut { reply, after, close }) => {
                self.deliver(&reply, body, exchange, Some((after, Act::Cut(close))))
            }
            Step::Fault(Fault::Stall { reply, after }) => {
                self.deliver(&reply, body, exchange, Some((after, Act::Wait)))
            }
            Step::Fault(Fault::ErrorEvent {
                reply,
                after_events,
                error,
            }) => self.fail_midway(&reply, body, exchange, (after_events, &error)),
        }
    }

    fn deliver(
        self,
        reply: &Reply,
        body: &Value,
        mut exchange: Exchange,
        interruption: Option<(Position, Act)>,
    ) -> Answered {
        let number = exchange.number;
        let (encoded, usual_type) = if body["stream"] == true {
            let events = anthropic::events(reply, body, number);
            (events, "text/event-stream; charset=utf-8")
        } else {
            let message = anthropic::whole(reply, body, number);
            let one = message.map(|message| vec![message.to_string().into()]);
            (one, "application/json")
        };
        let id = request_id(&exchange);
        match encoded {
            Ok(events) => {
                let content_type = reply.content_type.as_deref().unwrap_or(usual_type);
                let acts = plan(&events, reply.chunking, interruption);
                Ok(self.stream(acts, exchange, content_type))
            }
            Err(not_offered) => {
                let error = ApiError::new("api_error", &not_offered.to_string());
                self.shared.recorder.violation(error.message.clone());
                exchange.finish(Outcome::Refused);
                Ok(error_answer(500, &error, &id))
            }
        }
    }

    /// The first events of a reply, then an error event. A client that asked for one JSON message
    /// gets the error as the answer.
    fn fail_midway(
        self,
        reply: &Reply,
        body: &Value,
        mut exchange: Exchange,
        (after_events, error): (usize, &ApiError),
    ) -> Answered {
        let id = request_id(&exchange);
        if body["stream"] != true {
            exchange.finish(Outcome::Answered);
            return Ok(error_answer(status_of(&error.kind), error, &id));
        }
        match anthropic::events(reply, body, exchange.number) {
            Ok(mut events) => {
                events.truncate(after_events);
                events.push(anthropic::error_event(error, &id));
                let acts = plan(&events, reply.chunking, None);
                Ok(self.stream(acts, exchange, "text/event-stream; charset=utf-8"))
            }
            // Records and reports the tool that is not on offer.
            Err(_) => self.deliver(reply, body, exchange, None),
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
        Route::Messages | Route::Unknown => {
            let message = format!("no such route: {} {}", request.method, request.path);
            let error = ApiError::new("not_found_error", &message);
            json(404, anthropic::error_body(&error, "req_side"))
        }
    }
}

fn by_hand(answer: &Answer, id: &str) -> Response<Body> {
    let (content_type, text) = match &answer.body {
        AnswerBody::Error(error) => ("application/json", anthropic::error_body(error, id).to_string()),
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

fn error_answer(status: u16, error: &ApiError, id: &str) -> Response<Body> {
    let body = whole(anthropic::error_body(error, id).to_string());
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
