//! Codes that these drivers may raise.

use capsule_api::{Code, ErrorKind};

/// No key.
pub(crate) const KEY_MISSING: Code = Code {
    id: "openai-key-missing",
    kind: ErrorKind::Settings,
    meaning: "There is no usable API key, and the endpoint is OpenAI's own.",
    remedy: "Set `inference.api_key`, for example to `${OPENAI_API_KEY}`, and export that variable.",
};
/// No model.
pub(crate) const MODEL_MISSING: Code = Code {
    id: "openai-model-missing",
    kind: ErrorKind::Settings,
    meaning: "No model is named, and the API has no default.",
    remedy: "Set `inference.model` to a model that the endpoint serves.",
};
/// An endpoint that cannot be used.
pub(crate) const ENDPOINT: Code = Code {
    id: "openai-endpoint",
    kind: ErrorKind::Settings,
    meaning: "The endpoint is not an https URL, nor an http URL of this machine's loopback.",
    remedy: "Set `inference.endpoint` to a base URL such as `https://api.openai.com/v1`, without the path of the API call.",
};
/// 401, 403.
pub(crate) const AUTH: Code = Code {
    id: "openai-auth",
    kind: ErrorKind::Auth,
    meaning: "The endpoint refused the API key, or wants one.",
    remedy: "Check that `inference.api_key` is a valid key of this endpoint and may use the model.",
};
/// 429.
pub(crate) const RATE_LIMITED: Code = Code {
    id: "openai-rate-limited",
    kind: ErrorKind::RateLimited,
    meaning: "The endpoint limits the rate of requests or tokens.",
    remedy: "Wait, or raise the account's limits.",
};
/// 503 and the like.
pub(crate) const OVERLOADED: Code = Code {
    id: "openai-overloaded",
    kind: ErrorKind::Overloaded,
    meaning: "The endpoint is overloaded.",
    remedy: "Try again later.",
};
/// Other 5xx.
pub(crate) const SERVER: Code = Code {
    id: "openai-server",
    kind: ErrorKind::Overloaded,
    meaning: "The endpoint failed internally.",
    remedy: "Try again later; if it stays, look at the provider's status page or at the server's log.",
};
/// No credit.
pub(crate) const QUOTA: Code = Code {
    id: "openai-quota",
    kind: ErrorKind::Quota,
    meaning: "The account has no credit or quota left.",
    remedy: "Add credit or raise the spending limit in the provider's console.",
};
/// 400, 422.
pub(crate) const BAD_REQUEST: Code = Code {
    id: "openai-bad-request",
    kind: ErrorKind::BadRequest,
    meaning: "The endpoint refuses the request as malformed.",
    remedy: "Read what the message names; a parameter under `inference.params` or a tool's schema is the usual cause.",
};
/// 404.
pub(crate) const NOT_FOUND: Code = Code {
    id: "openai-not-found",
    kind: ErrorKind::BadRequest,
    meaning: "The endpoint knows no such model, or has no such API.",
    remedy: "Check `inference.model` and `inference.endpoint`; the base URL usually ends in `/v1`.",
};
/// 413.
pub(crate) const TOO_LARGE: Code = Code {
    id: "openai-too-large",
    kind: ErrorKind::BadRequest,
    meaning: "The request is larger than the endpoint accepts.",
    remedy: "Give the task less text, or let tools return less.",
};
/// The context window.
pub(crate) const CONTEXT: Code = Code {
    id: "openai-context",
    kind: ErrorKind::ContextOverflow,
    meaning: "The conversation no longer fits the model's context window.",
    remedy: "Start a new conversation, or let tools return less.",
};
/// A stored conversation that is gone.
pub(crate) const LOST: Code = Code {
    id: "openai-conversation-lost",
    kind: ErrorKind::ConversationLost,
    meaning: "The provider no longer has the stored answer that the conversation continues.",
    remedy: "Start a new conversation, or leave `store` out of `inference.params`.",
};
/// An answer that is none.
pub(crate) const PROTOCOL: Code = Code {
    id: "openai-protocol",
    kind: ErrorKind::Protocol,
    meaning: "The endpoint answered something that the API does not answer.",
    remedy: "Check `inference.endpoint`, whether it serves this API, and what stands between here and there.",
};
/// A stop reason that is not known.
pub(crate) const STOP_UNKNOWN: Code = Code {
    id: "openai-stop-unknown",
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
    &LOST,
    &PROTOCOL,
    &STOP_UNKNOWN,
];
