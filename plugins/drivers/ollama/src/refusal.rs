//! Errors in the server's words, from a status or from within a stream. They are text: what they say decides.

use capsule_api::{
    Code, Error, Retry,
    http::response::Parts,
    serde_json::{self, Value},
};

use crate::codes;

/// The most of the server's message that an error repeats, in characters.
const MAX_MESSAGE: usize = 1000;

/// The error behind a status that is not 200.
pub(crate) fn refusal(head: &Parts, body: &[u8]) -> Error {
    let status = head.status.as_u16();
    let body = serde_json::from_slice::<Value>(body).unwrap_or_default();
    match said(&body) {
        Some(said) => {
            let (code, retry) = class(&said, status);
            Error::new(code, format!("Ollama answered with status {status}: {said}")).retry(retry)
        }
        None => without_words(status, head),
    }
}

/// The error of a line of a stream.
pub(crate) fn in_stream(line: &Value) -> Error {
    let said = said(line).unwrap_or_default();
    let (code, retry) = class(&said, 0);
    Error::new(code, format!("Ollama answered in its stream: {said}")).retry(retry)
}

fn said(body: &Value) -> Option<String> {
    let error = &body["error"];
    let text = error.as_str().or_else(|| error["message"].as_str())?;
    Some(text.chars().filter(|c| !c.is_control()).take(MAX_MESSAGE).collect())
}

fn class(said: &str, status: u16) -> (&'static Code, Retry) {
    let lower = said.to_ascii_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    if says(&["context length", "context size", "context window"]) {
        return (&codes::CONTEXT, Retry::Never);
    }
    if says(&["server busy", "overloaded", "maximum pending requests"]) {
        return (&codes::OVERLOADED, Retry::Later);
    }
    match status {
        401 | 403 => (&codes::AUTH, Retry::Never),
        404 => (&codes::NOT_FOUND, Retry::Never),
        429 => (&codes::RATE_LIMITED, Retry::Later),
        503 | 529 => (&codes::OVERLOADED, Retry::Later),
        501 | 505 => (&codes::SERVER, Retry::Never),
        // Within a stream the server fails where its runner does.
        0 | 500..=599 => (&codes::SERVER, Retry::Later),
        400 | 413 | 422 => (&codes::BAD_REQUEST, Retry::Never),
        _ => (&codes::PROTOCOL, Retry::Never),
    }
}

/// An answer without an error of the API: a proxy's, a login page's, another program's.
fn without_words(status: u16, head: &Parts) -> Error {
    let content_type = head.headers.get("content-type").and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or("no content type");
    let (code, retry) = match class("", status) {
        // A page with one of these says nothing of the server's load or of a model.
        (_, Retry::Never) if status != 401 => (&codes::PROTOCOL, Retry::Never),
        known => known,
    };
    let message =
        format!("the endpoint answered with status {status} and {content_type}, not with an error of the API");
    Error::new(code, message).retry(retry)
}

#[cfg(test)]
mod tests {
    use capsule_api::{ErrorKind, http::Response, serde_json::json};

    use super::*;

    fn refused(status: u16, body: &str) -> Error {
        let head = Response::builder().status(status).body(()).unwrap().into_parts().0;
        refusal(&head, body.as_bytes())
    }

    #[test]
    fn each_refusal_has_its_class() {
        for (status, said, expected) in [
            (404, "model 'nope' not found", ErrorKind::BadRequest),
            (400, "qwen does not support tools", ErrorKind::BadRequest),
            (
                400,
                "the input exceeds the available context size",
                ErrorKind::ContextOverflow,
            ),
            (401, "unauthorized", ErrorKind::Auth),
            (429, "slow down", ErrorKind::RateLimited),
            (500, "llama runner process has terminated", ErrorKind::Overloaded),
            (
                503,
                "server busy, please try again. maximum pending requests exceeded",
                ErrorKind::Overloaded,
            ),
        ] {
            let error = refused(status, &json!({"error": said}).to_string());
            assert_eq!(
                (error.kind, error.message.clone()),
                (expected, format!("Ollama answered with status {status}: {said}"))
            );
        }
        assert!(refused(404, r#"{"error": "no"}"#).hint.contains("ollama pull"));
    }

    #[test]
    fn h_02_an_error_within_a_stream_has_its_class() {
        let of = |said: &str| in_stream(&json!({"error": said}));
        assert_eq!(
            (of("unexpected EOF").code, of("unexpected EOF").retry),
            ("ollama-server", Retry::Later)
        );
        assert_eq!(of("server busy").kind, ErrorKind::Overloaded);
    }

    #[test]
    fn a_page_is_no_answer_of_the_api() {
        assert_eq!(refused(404, "<html>").code, "ollama-protocol");
        assert_eq!(
            (refused(502, "<html>").kind, refused(502, "").retry),
            (ErrorKind::Overloaded, Retry::Later)
        );
    }
}
