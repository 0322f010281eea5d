//! Codes that this driver may raise.

use capsule_api::{Code, ErrorKind};

/// No key.
pub(crate) const KEY_MISSING: Code = Code {
    id: "anthropic-key-missing",
    kind: ErrorKind::Settings,
    meaning: "There is no API key for the Anthropic API.",
    remedy: "Set `inference.api_key`, for example to `${ANTHROPIC_API_KEY}`, and export that variable.",
};
/// No model.
pub(crate) const MODEL_MISSING: Code = Code {
    id: "anthropic-model-missing",
    kind: ErrorKind::Settings,
    meaning: "No model is named, and the Messages API has no default.",
    remedy: "Set `inference.model`, for example to `claude-sonnet-4-5`.",
};
/// An endpoint that cannot be used.
pub(crate) const ENDPOINT: Code = Code {
    id: "anthropic-endpoint",
    kind: ErrorKind::Settings,
    meaning: "The endpoint is not an https URL, nor an http URL of this machine's loopback.",
    remedy: "Set `inference.endpoint` to a URL such as `https://api.anthropic.com`, without the path `/v1/messages`.",
};
/// 401, 403.
pub(crate) const AUTH: Code = Code {
    id: "anthropic-auth",
    kind: ErrorKind::Auth,
    meaning: "Anthropic refused the API key.",
    remedy: "Check that `inference.api_key` is a valid key of the Anthropic console and may use the model.",
};
/// 429.
pub(crate) const RATE_LIMITED: Code = Code {
    id: "anthropic-rate-limited",
    kind: ErrorKind::RateLimited,
    meaning: "Anthropic limits the rate of requests or tokens.",
    remedy: "Wait, or raise the account's limits.",
};
/// 529, 503.
pub(crate) const OVERLOADED: Code = Code {
    id: "anthropic-overloaded",
    kind: ErrorKind::Overloaded,
    meaning: "Anthropic's API is overloaded.",
    remedy: "Try again later.",
};
/// Other 5xx.
pub(crate) const SERVER: Code = Code {
    id: "anthropic-server",
    kind: ErrorKind::Overloaded,
    meaning: "Anthropic's API failed internally.",
    remedy: "Try again later; if it stays, look at the provider's status page.",
};
/// No credit.
pub(crate) const QUOTA: Code = Code {
    id: "anthropic-quota",
    kind: ErrorKind::Quota,
    meaning: "The Anthropic account has no credit left.",
    remedy: "Add credit in the Anthropic console.",
};
/// 400.
pub(crate) const BAD_REQUEST: Code = Code {
    id: "anthropic-bad-request",
    kind: ErrorKind::BadRequest,
    meaning: "Anthropic refuses the request as malformed.",
    remedy: "Read what the message names; a parameter under `inference.params` or a tool's schema is the usual cause.",
};
/// 404.
pub(crate) const NOT_FOUND: Code = Code {
    id: "anthropic-not-found",
    kind: ErrorKind::BadRequest,
    meaning: "Anthropic knows no such model, or the endpoint has no Messages API.",
    remedy: "Check `inference.model` and `inference.endpoint`.",
};
/// 413.
pub(crate) const TOO_LARGE: Code = Code {
    id: "anthropic-too-large",
    kind: ErrorKind::BadRequest,
    meaning: "The request is larger than Anthropic accepts.",
    remedy: "Give the task less text, or let tools return less.",
};
/// The context window.
pub(crate) const CONTEXT: Code = Code {
    id: "anthropic-context",
    kind: ErrorKind::ContextOverflow,
    meaning: "The conversation no longer fits the model's context window.",
    remedy: "Start a new conversation, or let tools return less.",
};
/// An answer that is none.
pub(crate) const PROTOCOL: Code = Code {
    id: "anthropic-protocol",
    kind: ErrorKind::Protocol,
    meaning: "The endpoint answered something that the Messages API does not answer.",
    remedy: "Check `inference.endpoint` and what stands between here and there.",
};
/// A stop reason that is not known.
pub(crate) const STOP_UNKNOWN: Code = Code {
    id: "anthropic-stop-unknown",
    kind: ErrorKind::Protocol,
    meaning: "The model stopped for a reason that this version does not know, so what it wrote is not taken for an answer.",
    remedy: "Update the program; if there is no newer one, report the reason that the message names.",
};

/// All of them.
pub const ALL: &[&Code] = &[
    &KEY_MISSING,
    &MODEL_MISSING,
    &ENDPOINT,
    &AUTH,
    &RATE_LIMITED,
    &OVERLOADED,
    &SERVER,
    &QUOTA,
    &BAD_REQUEST,
    &NOT_FOUND,
    &TOO_LARGE,
    &CONTEXT,
    &PROTOCOL,
    &STOP_UNKNOWN,
];
