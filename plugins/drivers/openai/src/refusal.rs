//! Errors in the API's words, from a status or from within a stream.

use capsule_api::{
    Code, Error, Retry,
    http::response::Parts,
    serde_json::{self, Value},
};

use crate::codes;

/// The most of the provider's message that an error repeats, in characters.
const MAX_MESSAGE: usize = 1000;

/// The error behind a status that is not 200.
pub(crate) fn refusal(head: &Parts, body: &[u8]) -> Error {
    let status = head.status.as_u16();
    let body = serde_json::from_slice::<Value>(body).unwrap_or_default();
    // Some servers wrap the object in a list, some send a text in its place, some put its fields at the top.
    let body = if body.is_array() { &body[0] } else { &body };
    let said = Said::read(body);
    let Some(said) = said else {
        return without_words(status, head);
    };
    let made = said.error(Some(status));
    match head.headers.get("x-request-id").and_then(|id| id.to_str().ok()) {
        Some(id) => made.with("request_id", id),
        None => made,
    }
}

/// The error in a frame of a stream: an object with `error`, or the fields themselves.
pub(crate) fn in_stream(data: &Value) -> Error {
    let nothing = || Error::new(&codes::PROTOCOL, "the endpoint sent an error that says nothing");
    Said::read(data).map_or_else(nothing, |said| said.error(None))
}

/// What an error object says.
struct Said {
    kind: String,
    code: String,
    message: String,
}

impl Said {
    fn read(body: &Value) -> Option<Self> {
        let error = match &body["error"] {
            Value::Null => body,
            error => error,
        };
        if let Value::String(message) = error {
            return Some(Self::of("", "", message));
        }
        let message = error["message"].as_str().or_else(|| error["detail"].as_str());
        let kind = error["type"].as_str().unwrap_or_default();
        let code = match &error["code"] {
            Value::String(code) => code.clone(),
            Value::Number(code) => code.to_string(),
            _ => String::new(),
        };
        (message.is_some() || !code.is_empty()).then(|| Self::of(kind, &code, message.unwrap_or_default()))
    }

    fn of(kind: &str, code: &str, message: &str) -> Self {
        let clean = |text: &str| text.chars().filter(|c| !c.is_control()).take(MAX_MESSAGE).collect();
        Self {
            kind: clean(kind),
            code: clean(code),
            message: clean(message),
        }
    }

    fn error(&self, status: Option<u16>) -> Error {
        // Within a stream, routers write the status of the server behind them as the code.
        let effective = status.or_else(|| self.code.parse().ok()).unwrap_or_default();
        let (code, retry) = class(self, effective);
        let place = status.map_or("in its stream".to_owned(), |status| format!("with status {status}"));
        let name = [&self.code, &self.kind].into_iter().find(|name| !name.is_empty());
        let name = name.map_or(String::new(), |name| format!("{name}: "));
        Error::new(code, format!("the endpoint answered {place}: {name}{}", self.message)).retry(retry)
    }

    fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.code.as_str()) || names.contains(&self.kind.as_str())
    }
}

/// The class of an error. What it says goes first: a status may be anything on the way through a gateway.
fn class(said: &Said, status: u16) -> (&'static Code, Retry) {
    let lower = said.message.to_ascii_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    let no_credit = ["insufficient_quota", "billing_not_active", "billing_hard_limit_reached"];
    if said.is(&no_credit) || status == 402 || says(&["exceeded your current quota", "insufficient credits"]) {
        return (&codes::QUOTA, Retry::Never);
    }
    let too_long = ["context_length_exceeded", "exceed_context_size_error"];
    let full = ["maximum context length", "context window", "available context size"];
    if said.is(&too_long) || says(&full) {
        return (&codes::CONTEXT, Retry::Never);
    }
    if said.is(&["previous_response_not_found"]) {
        return (&codes::LOST, Retry::Never);
    }
    if said.is(&["model_not_found"]) {
        return (&codes::NOT_FOUND, Retry::Never);
    }
    if said.is(&["invalid_api_key", "authentication_error", "permission_error"]) {
        return (&codes::AUTH, Retry::Never);
    }
    if said.is(&["rate_limit_exceeded", "rate_limit_error", "too_many_requests"]) {
        return (&codes::RATE_LIMITED, Retry::Later);
    }
    if said.is(&[
        "server_is_overloaded",
        "overloaded_error",
        "slow_down",
        "service_unavailable",
    ]) {
        return (&codes::OVERLOADED, Retry::Later);
    }
    by_status(said, status)
}

fn by_status(said: &Said, status: u16) -> (&'static Code, Retry) {
    match status {
        401 | 403 => (&codes::AUTH, Retry::Never),
        404 => (&codes::NOT_FOUND, Retry::Never),
        413 => (&codes::TOO_LARGE, Retry::Never),
        429 => (&codes::RATE_LIMITED, Retry::Later),
        503 | 529 => (&codes::OVERLOADED, Retry::Later),
        501 | 505 => (&codes::SERVER, Retry::Never),
        500..=599 => (&codes::SERVER, Retry::Later),
        400 | 409 | 422 => (&codes::BAD_REQUEST, Retry::Never),
        _ if said.is(&["server_error", "api_error", "internal_error", "timeout"]) => (&codes::SERVER, Retry::Later),
        _ if said.is(&["invalid_request_error", "invalid_prompt"]) => (&codes::BAD_REQUEST, Retry::Never),
        _ => (&codes::PROTOCOL, Retry::Never),
    }
}

/// An answer without an error object: a proxy's, a login page's, another program's.
fn without_words(status: u16, head: &Parts) -> Error {
    let content_type = head.headers.get("content-type").and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or("no content type");
    let (code, retry) = match by_status(&Said::of("", "", ""), status) {
        // A page with one of these says nothing of the provider's load or of the key.
        (_, Retry::Never) if status != 401 => (&codes::PROTOCOL, Retry::Never),
        known => known,
    };
    let message =
        format!("the endpoint answered with status {status} and {content_type}, not with an error of the API");
    Error::new(code, message).retry(retry)
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
