//! Codes that this driver may raise.

use capsule_api::{Code, ErrorKind};

/// No model.
pub(crate) const MODEL_MISSING: Code = Code {
    id: "ollama-model-missing",
    kind: ErrorKind::Settings,
    meaning: "No model is named, and Ollama has no default.",
    remedy: "Set `inference.model` to a model that `ollama list` shows.",
};
/// An endpoint that cannot be used.
pub(crate) const ENDPOINT: Code = Code {
    id: "ollama-endpoint",
    kind: ErrorKind::Settings,
    meaning: "The endpoint is not an https URL, nor an http URL of this machine's loopback.",
    remedy: "Set `inference.endpoint` to a URL such as `http://127.0.0.1:11434`, without the path `/api/chat`.",
};
/// 401, 403.
pub(crate) const AUTH: Code = Code {
    id: "ollama-auth",
    kind: ErrorKind::Auth,
    meaning: "The server wants a login that this driver has none for.",
    remedy: "Use a server that is open to this machine, or `ollama signin` for models that run elsewhere.",
};
/// 429.
pub(crate) const RATE_LIMITED: Code = Code {
    id: "ollama-rate-limited",
    kind: ErrorKind::RateLimited,
    meaning: "The server limits the rate of requests.",
    remedy: "Wait, or ask less often.",
};
/// 503.
pub(crate) const OVERLOADED: Code = Code {
    id: "ollama-overloaded",
    kind: ErrorKind::Overloaded,
    meaning: "The server has too many requests waiting.",
    remedy: "Try again later, or raise the server's `OLLAMA_MAX_QUEUE`.",
};
/// Other 5xx.
pub(crate) const SERVER: Code = Code {
    id: "ollama-server",
    kind: ErrorKind::Overloaded,
    meaning: "The server failed internally.",
    remedy: "Look at the server's log; a model that does not fit the memory is a usual cause.",
};
/// 400.
pub(crate) const BAD_REQUEST: Code = Code {
    id: "ollama-bad-request",
    kind: ErrorKind::BadRequest,
    meaning: "The server refuses the request as malformed.",
    remedy: "Read what the message names; a model without support for tools or a parameter under `inference.params` is a usual cause.",
};
/// 404.
pub(crate) const NOT_FOUND: Code = Code {
    id: "ollama-not-found",
    kind: ErrorKind::BadRequest,
    meaning: "The server has no such model, or is not Ollama.",
    remedy: "Run `ollama pull MODEL`, and check `inference.endpoint`.",
};
/// The context window.
pub(crate) const CONTEXT: Code = Code {
    id: "ollama-context",
    kind: ErrorKind::ContextOverflow,
    meaning: "The conversation no longer fits the model's context window.",
    remedy: "Start a new conversation, or raise `num_ctx` under `inference.params`.",
};
/// An answer that is none.
pub(crate) const PROTOCOL: Code = Code {
    id: "ollama-protocol",
    kind: ErrorKind::Protocol,
    meaning: "The endpoint answered something that Ollama's API does not answer.",
    remedy: "Check `inference.endpoint` and what stands between here and there.",
};
/// A stop reason that is not known.
pub(crate) const STOP_UNKNOWN: Code = Code {
    id: "ollama-stop-unknown",
    kind: ErrorKind::Protocol,
    meaning: "The model stopped for a reason that this version does not know, so what it wrote is not taken for an answer.",
    remedy: "Update the program; if there is no newer one, report the reason that the message names.",
};

/// All of them.
pub const ALL: &[&Code] = &[
    &MODEL_MISSING,
    &ENDPOINT,
    &AUTH,
    &RATE_LIMITED,
    &OVERLOADED,
    &SERVER,
    &BAD_REQUEST,
    &NOT_FOUND,
    &CONTEXT,
    &PROTOCOL,
    &STOP_UNKNOWN,
];
