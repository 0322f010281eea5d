//! JSON-RPC as MCP uses it: reading a message, writing an answer.

use http::StatusCode;
use serde_json::{Map, Value, json};

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// A message that wants an answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Request {
    /// A string or a number.
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
}

/// What a client may send.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    /// Wants an answer.
    Request(Request),
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
    /// Boxed, because most errors have none.
    pub(crate) data: Option<Box<Value>>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The same with data for the client's program.
    pub(crate) fn with(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
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
        Some(id) => Message::Request(Request { id, method, params }),
        None => Message::Notification { method, params },
    })
}

/// The answer to request `id`.
pub(crate) fn answer(id: &Value, outcome: Result<Value, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError { code, message, data }) => {
            let mut error = json!({"code": code, "message": message});
            if let Some(data) = data {
                error["data"] = *data;
            }
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}
