//! JSON-RPC as MCP uses it over HTTP: reading a request, writing an answer.

use bytes::Bytes;
use capsule_net::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// What a POST may hold.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    /// Wants an answer with this id, a string or a number.
    Request {
        id: Value,
        method: String,
        params: Map<String, Value>,
    },
    /// Wants none.
    Notification { method: String, params: Map<String, Value> },
    /// An answer to something that was never asked.
    Response,
}

/// A message that is not one. Answered with HTTP 400, or 200 where only `params` are wrong.
#[derive(Debug, PartialEq)]
pub(crate) struct Unreadable {
    pub(crate) status: StatusCode,
    pub(crate) id: Value,
    pub(crate) error: RpcError,
}

/// An error of JSON-RPC.
#[derive(Debug, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// Reads a body.
pub(crate) fn read(body: &[u8]) -> Result<Message, Unreadable> {
    let refuse = |id: Value, code: i64, message: String| Unreadable {
        status: StatusCode::BAD_REQUEST,
        id,
        error: RpcError::new(code, message),
    };
    let message: Value = serde_json::from_slice(body)
        .map_err(|error| refuse(Value::Null, PARSE_ERROR, format!("the body is not JSON: {error}")))?;
    let Value::Object(mut message) = message else {
        let what = if message.is_array() {
            "batches are not served"
        } else {
            "the body is not an object"
        };
        return Err(refuse(Value::Null, INVALID_REQUEST, what.to_owned()));
    };
    let id = message.remove("id");
    let usable = id.as_ref().is_none_or(|id| id.is_string() || id.is_number());
    let echoed = id.clone().filter(|_| usable).unwrap_or(Value::Null);
    let invalid = |why: &str| Err(refuse(echoed.clone(), INVALID_REQUEST, why.to_owned()));
    if !usable {
        return invalid("`id` is neither a string nor a number");
    }
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid("`jsonrpc` is not \"2.0\"");
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return invalid("`method` is not a string"),
        None if id.is_some() && (message.contains_key("result") || message.contains_key("error")) => {
            return Ok(Message::Response);
        }
        None => return invalid("there is no `method`"),
    };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        // Nobody waits for an answer to a notification, not even for this one.
        Some(_) if id.is_none() => Map::new(),
        Some(_) => {
            let error = RpcError::new(INVALID_PARAMS, "`params` is not an object");
            return Err(Unreadable {
                status: StatusCode::OK,
                id: echoed,
                error,
            });
        }
    };
    Ok(match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    })
}

/// The answer to request `id`.
pub(crate) fn answer(id: &Value, outcome: Result<Value, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError { code, message }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    }
}

/// A response of one JSON value.
pub(crate) fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    with(
        Response::new(Body::full(value.to_string())),
        status,
        &[(header::CONTENT_TYPE, "application/json")],
    )
}

/// A response without a body.
pub(crate) fn accepted() -> Response<Body> {
    with(Response::new(Body::empty()), StatusCode::ACCEPTED, &[])
}

/// A response of events.
pub(crate) fn event_stream(body: Body) -> Response<Body> {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
    ];
    with(Response::new(body), StatusCode::OK, &headers)
}

fn with(mut response: Response<Body>, status: StatusCode, headers: &[(HeaderName, &'static str)]) -> Response<Body> {
    *response.status_mut() = status;
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// One message as an event. JSON text has no line breaks, so it is one line of data.
pub(crate) fn event(message: &Value) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

/// A sign of life without meaning.
pub(crate) const COMMENT: Bytes = Bytes::from_static(b": still running\n\n");

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
