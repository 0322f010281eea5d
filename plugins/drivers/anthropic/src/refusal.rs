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
    let error = serde_json::from_slice::<Value>(body).ok();
    let error = error
        .filter(|body| body["error"].is_object())
        .map(|body| body["error"].clone());
    let Some(error) = error else {
        return without_words(status, head, body);
    };
    let kind = error["type"].as_str().unwrap_or_default();
    let message = error["message"].as_str().unwrap_or_default();
    let made = classified(kind, message, Some(status));
    match head.headers.get("request-id").and_then(|id| id.to_str().ok()) {
        Some(id) => made.with("request_id", id),
        None => made,
    }
}

/// The error of an `error` event.
pub(crate) fn in_stream(data: &Value) -> Error {
    let kind = data["error"]["type"].as_str().unwrap_or_default();
    let message = data["error"]["message"].as_str().unwrap_or_default();
    classified(kind, message, None)
}

fn classified(kind: &str, message: &str, status: Option<u16>) -> Error {
    let (code, retry) = class(kind, message, status.unwrap_or_default());
    let said: String = message.chars().filter(|c| !c.is_control()).take(MAX_MESSAGE).collect();
    let place = status.map_or("in its stream".to_owned(), |status| format!("with status {status}"));
    Error::new(code, format!("Anthropic answered {place}: {kind}: {said}")).retry(retry)
}

/// The class of an error. What it says goes first: a status may be anything on the way through a gateway.
fn class(kind: &str, message: &str, status: u16) -> (&'static Code, Retry) {
    let lower = message.to_ascii_lowercase();
    if lower.contains("credit balance") || kind == "billing_error" || status == 402 {
        return (&codes::QUOTA, Retry::Never);
    }
    if lower.contains("prompt is too long") || lower.contains("exceed context limit") {
        return (&codes::CONTEXT, Retry::Never);
    }
    match (kind, status) {
        ("authentication_error" | "permission_error", _) | (_, 401 | 403) => (&codes::AUTH, Retry::Never),
        ("rate_limit_error", _) | (_, 429) => (&codes::RATE_LIMITED, Retry::Later),
        ("overloaded_error", _) | (_, 529 | 503) => (&codes::OVERLOADED, Retry::Later),
        ("request_too_large", _) | (_, 413) => (&codes::TOO_LARGE, Retry::Never),
        ("not_found_error", _) | (_, 404) => (&codes::NOT_FOUND, Retry::Never),
        ("invalid_request_error", _) | (_, 400) => (&codes::BAD_REQUEST, Retry::Never),
        (_, 501 | 505) => (&codes::SERVER, Retry::Never),
        ("api_error" | "timeout_error", 0) | (_, 500..) => (&codes::SERVER, Retry::Later),
        _ => (&codes::PROTOCOL, Retry::Never),
    }
}

/// An answer without the API's error object: a proxy's, a login page's, another program's.
fn without_words(status: u16, head: &Parts, body: &[u8]) -> Error {
    let content_type = head.headers.get("content-type").and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or("no content type");
    let what = if body.is_empty() { "an empty body" } else { content_type };
    let (code, retry) = match class("", "", status) {
        // A page with one of these says nothing of the provider's load or of the key.
        (_, Retry::Never) if status != 401 => (&codes::PROTOCOL, Retry::Never),
        known => known,
    };
    let message = format!("the endpoint answered with status {status} and {what}, not with an error of the API");
    Error::new(code, message).retry(retry)
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
