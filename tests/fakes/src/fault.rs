//! What can go wrong at a provider.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Reply;

/// A provider's misbehaviour.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// An answer that is no model's reply: any status, headers and body.
    Answer(Answer),
    /// The connection ends before any answer.
    CloseBeforeHeaders(Close),
    /// No byte until the gate opens, then the reply.
    HangBeforeHeaders(Reply),
    /// The reply ends at a position.
    Cut {
        /// The reply that is cut.
        reply: Reply,
        /// Where.
        after: Position,
        /// How.
        close: Close,
    },
    /// The reply pauses at a position until the gate opens.
    Stall {
        /// The reply that pauses.
        reply: Reply,
        /// Where.
        after: Position,
    },
    /// The first events of the reply, then an `error` event, and the body ends.
    ErrorEvent {
        /// The reply that fails.
        reply: Reply,
        /// How many of its events are sent.
        after_events: usize,
        /// The error.
        error: ApiError,
    },
}

/// A place in a reply's stream; beyond its end means its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// After this many server-sent events. A client that asked for one JSON message gets half of it.
    Events(usize),
    /// After all that the blocks say, before what ends the message.
    Content,
    /// After this many bytes of the body, in the middle of an event or a character as it may be.
    Bytes(usize),
}

/// How a connection ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// TCP reset.
    Reset,
    /// TCP is closed in order, HTTP is not: the chunked body has no end.
    Close,
    /// HTTP ends in order, only the events are incomplete. Before the headers it is the same as
    /// `Close`.
    EndOfBody,
}

/// An error as a provider names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiError {
    /// The error's type, e.g. `overloaded_error`.
    pub kind: String,
    /// What it says.
    pub message: String,
}

/// An HTTP answer made by hand.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The status, 200 to 599.
    pub status: u16,
    /// Headers, added to the usual ones.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: AnswerBody,
}

/// The body of an [`Answer`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerBody {
    /// The wire format's error object.
    Error(ApiError),
    /// Any JSON.
    Json(Value),
    /// A page.
    Html(String),
    /// Any text under any content type.
    Text {
        /// The content type.
        content_type: String,
        /// The text.
        text: String,
    },
}

impl ApiError {
    /// An error of this type.
    #[must_use]
    pub fn new(kind: &str, message: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            message: message.to_owned(),
        }
    }

    /// The error that a busy provider sends in the middle of a stream.
    #[must_use]
    pub fn overloaded() -> Self {
        Self::new("overloaded_error", "Overloaded")
    }
}

impl Answer {
    /// The wire format's error object under this status; the error's type follows from it.
    #[must_use]
    pub fn error(status: u16, message: &str) -> Self {
        Self::with_body(status, AnswerBody::Error(ApiError::new(kind_of(status), message)))
    }

    /// The wire format's error object with a type of its own.
    #[must_use]
    pub fn error_of_kind(status: u16, kind: &str, message: &str) -> Self {
        Self::with_body(status, AnswerBody::Error(ApiError::new(kind, message)))
    }

    /// 429 with `retry-after` in seconds.
    #[must_use]
    pub fn rate_limited(retry_after_seconds: u32) -> Self {
        Self::error(429, "This request would exceed your rate limit.")
            .header("retry-after", &retry_after_seconds.to_string())
    }

    /// Any JSON.
    #[must_use]
    pub fn json(status: u16, body: Value) -> Self {
        Self::with_body(status, AnswerBody::Json(body))
    }

    /// A page, as a proxy or a captive portal sends it.
    #[must_use]
    pub fn html(status: u16, page: &str) -> Self {
        Self::with_body(status, AnswerBody::Html(page.to_owned()))
    }

    /// Any text under any content type.
    #[must_use]
    pub fn text(status: u16, content_type: &str, text: &str) -> Self {
        Self::with_body(
            status,
            AnswerBody::Text {
                content_type: content_type.to_owned(),
                text: text.to_owned(),
            },
        )
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// What HTTP could not carry.
    pub(crate) fn flaw(&self) -> Option<String> {
        if !(200..=599).contains(&self.status) {
            return Some(format!("not a final status: {}", self.status));
        }
        if let AnswerBody::Text { content_type, .. } = &self.body
            && HeaderValue::from_str(content_type).is_err()
        {
            return Some(format!("not a content type: {content_type:?}"));
        }
        let mut headers = self.headers.iter();
        let (name, value) = headers.find(|(name, value)| {
            HeaderName::from_bytes(name.as_bytes()).is_err() || HeaderValue::from_str(value).is_err()
        })?;
        Some(format!("not a header: {name:?}: {value:?}"))
    }

    fn with_body(status: u16, body: AnswerBody) -> Self {
        Self {
            status,
            headers: BTreeMap::new(),
            body,
        }
    }
}

/// The status that goes with an error's type.
pub(crate) fn status_of(kind: &str) -> u16 {
    let statuses = [400, 401, 402, 403, 404, 413, 429, 504, 529];
    let known = statuses.into_iter().find(|&status| kind_of(status) == kind);
    known.unwrap_or(500)
}

/// The error type that goes with a status, as the Messages API documents it.
fn kind_of(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500..=599 => "api_error",
        _ => "invalid_request_error",
    }
}
