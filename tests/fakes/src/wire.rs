//! One module per wire format: what it accepts, and how a reply looks on it.

mod anthropic;
mod ollama;
mod openai;
mod responses;

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;

use crate::record::tool_names;
use crate::{ApiError, Call, Reply};

/// A wire format. The request's path chooses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Anthropic's Messages API.
    Messages,
    /// Chat Completions.
    Chat,
    /// OpenAI's Responses API.
    Responses,
    /// Ollama's native API.
    Ollama,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// A model's reply.
    Model(Format),
    /// The size of a request.
    CountTokens,
    /// A look whether anyone is there.
    Probe,
    /// Nothing that exists.
    Unknown,
}

/// A reply on the wire: its events, and how many of them come before what ends it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) events: Vec<Bytes>,
    pub(crate) content: usize,
}

/// What a request with this method and path (without query) asks for.
pub(crate) fn route(method: &Method, path: &str) -> Route {
    match (method, path) {
        (&Method::POST, "/v1/messages") => Route::Model(Format::Messages),
        (&Method::POST, "/v1/messages/count_tokens") => Route::CountTokens,
        (&Method::POST, "/v1/chat/completions") => Route::Model(Format::Chat),
        (&Method::POST, "/v1/responses") => Route::Model(Format::Responses),
        (&Method::POST, "/api/chat") => Route::Model(Format::Ollama),
        (&Method::HEAD, _) => Route::Probe,
        _ => Route::Unknown,
    }
}

impl Format {
    /// Checks a request; the first broken rule is the answer.
    pub(crate) fn check(self, headers: &HeaderMap, body: &Value, allow_non_streaming: bool) -> Checked {
        match self {
            Self::Messages => anthropic::check(headers, body, allow_non_streaming),
            Self::Chat => openai::check(headers, body, allow_non_streaming),
            Self::Responses => responses::check(headers, body, allow_non_streaming),
            Self::Ollama => ollama::check(headers, body, allow_non_streaming),
        }
    }

    /// Whether a request asks for a stream.
    pub(crate) fn streams(self, body: &Value) -> bool {
        match self {
            Self::Ollama => body["stream"] != false,
            _ => body["stream"] == true,
        }
    }

    /// A reply as a stream.
    pub(crate) fn events(self, reply: &Reply, request: &Value, number: usize) -> Result<Stream, NotOffered> {
        match self {
            Self::Messages => anthropic::events(reply, request, number),
            Self::Chat => openai::events(reply, request, number),
            Self::Responses => responses::events(reply, request, number),
            Self::Ollama => ollama::events(reply, request, number),
        }
    }

    /// A reply as one JSON object.
    pub(crate) fn whole(self, reply: &Reply, request: &Value, number: usize) -> Result<Value, NotOffered> {
        match self {
            Self::Messages => anthropic::whole(reply, request, number),
            Self::Chat => openai::whole(reply, request, number),
            Self::Responses => responses::whole(reply, request, number),
            Self::Ollama => ollama::whole(reply, request, number),
        }
    }

    /// The content type of a stream.
    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream; charset=utf-8",
        }
    }

    /// An error as the body of an answer.
    pub(crate) fn error_body(self, error: &ApiError, request_id: &str) -> Value {
        match self {
            Self::Messages => anthropic::error_body(error, request_id),
            Self::Chat | Self::Responses => openai::error_body(error),
            Self::Ollama => ollama::error_body(error),
        }
    }

    /// An error as the end of a stream.
    pub(crate) fn error_event(self, error: &ApiError, request_id: &str) -> Bytes {
        match self {
            Self::Messages => anthropic::error_event(error, request_id),
            Self::Chat => openai::error_event(error),
            Self::Responses => responses::error_event(error),
            Self::Ollama => ollama::error_event(error),
        }
    }
}

/// The results of tool calls in a request of any format, in order: what names the call (its id, or the tool where the format has no ids)
/// and the text.
pub(crate) fn results(body: &Value) -> Vec<(String, String)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for entry in list(&body["messages"]).into_iter().chain(list(&body["input"])) {
        let parts = list(&entry["content"]).into_iter();
        for one in parts.filter(|part| part["type"] == "tool_result").chain([entry]) {
            let names = ["tool_use_id", "tool_call_id", "call_id", "tool_name"];
            let name = names.into_iter().find_map(|key| one[key].as_str());
            let said = ["output", "content"].into_iter().map(|key| &one[key]);
            let said = said.into_iter().find(|said| !said.is_null());
            let call = one["type"] == "function_call";
            if let (Some(name), Some(said), false) = (name, said, call) {
                found.push((name.to_owned(), plain(said)));
            }
        }
    }
    found
}

/// Text, also where it comes as parts.
fn plain(value: &Value) -> String {
    match value {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

/// Whether a request keeps the rules.
pub(crate) type Checked = Result<(), Refusal>;

/// The refusal of a malformed request.
pub(crate) fn refuse(message: impl Into<String>) -> Checked {
    Err(Refusal {
        status: 400,
        kind: "invalid_request_error",
        message: message.into(),
    })
}

/// A request that breaks a rule of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The status of the answer.
    pub(crate) status: u16,
    /// The error's type.
    pub(crate) kind: &'static str,
    /// What is wrong, in the API's words where they are known.
    pub(crate) message: String,
}

/// A script's tool that the request does not offer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script calls the tool `{name}`, but the request offers only: {offered}")]
pub(crate) struct NotOffered {
    /// The script's name.
    pub(crate) name: String,
    /// The offered names.
    pub(crate) offered: String,
}

/// A server-sent event with a name, as bytes.
pub(crate) fn sse(event: Option<&str>, data: &str) -> Bytes {
    let name = event.map_or_else(String::new, |event| format!("event: {event}\n"));
    Bytes::from(format!("{name}data: {data}\n\n"))
}

/// The name under which a call goes out.
pub(crate) fn named(call: &Call, request: &Value) -> Result<String, NotOffered> {
    if call.raw_name {
        return Ok(call.name.clone());
    }
    let offered = tool_names(request).collect::<Vec<_>>();
    resolve(&call.name, offered.into_iter())
}

/// The offered name that a script's bare name stands for: equal, or ending with `__<name>`, as
/// command-line clients prefix the names of an MCP server's tools.
pub(crate) fn resolve<'a>(name: &str, offered: impl Iterator<Item = &'a str> + Clone) -> Result<String, NotOffered> {
    let suffix = format!("__{name}");
    let found = offered
        .clone()
        .find(|&tool| tool == name)
        .or_else(|| offered.clone().find(|tool| tool.ends_with(&suffix)));
    found.map(str::to_owned).ok_or_else(|| NotOffered {
        name: name.to_owned(),
        offered: offered.collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_name_wins_over_a_prefixed_one() {
        let offered = ["mcp__a__read", "read"].into_iter();
        assert_eq!(resolve("read", offered), Ok("read".to_owned()));
    }

    #[test]
    fn a_prefixed_name_is_found() {
        let offered = ["mcp__a__spread", "mcp__a__read"].into_iter();
        assert_eq!(resolve("read", offered), Ok("mcp__a__read".to_owned()));
    }

    #[test]
    fn a_name_that_only_ends_alike_is_not_offered() {
        let expected = NotOffered {
            name: "read".to_owned(),
            offered: "spread".to_owned(),
        };
        assert_eq!(resolve("read", ["spread"].into_iter()), Err(expected));
    }
}
