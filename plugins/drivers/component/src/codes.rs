//! Codes that this driver may raise. Those of loading the component are the sandbox's.

use capsule_api::{Code, ErrorKind};

/// A host without a sandbox.
pub(crate) const NO_SANDBOX: Code = Code {
    id: "component-no-sandbox",
    kind: ErrorKind::TransportUnavailable,
    meaning: "This program cannot run drivers that are components: it has no sandbox.",
    remedy: "Use the `capsule` program, or a driver that is part of this one.",
};
/// An endpoint that cannot be used.
pub(crate) const ENDPOINT: Code = Code {
    id: "component-endpoint",
    kind: ErrorKind::Settings,
    meaning: "The endpoint is not an https URL, nor an http URL of this machine's loopback.",
    remedy: "Set `inference.endpoint` to a URL such as `https://api.example.com/v1`.",
};
/// A header that cannot carry the key.
pub(crate) const AUTH_HEADER: Code = Code {
    id: "component-auth-header",
    kind: ErrorKind::Settings,
    meaning: "The header that carries the key is not one.",
    remedy: "Write `inference.auth` as `Name: value` with `{}` once in the value, for example `x-api-key: {}`.",
};
/// No key.
pub(crate) const KEY_MISSING: Code = Code {
    id: "component-key-missing",
    kind: ErrorKind::Settings,
    meaning: "There is no key to attach to the requests of the driver's component, or it cannot be sent.",
    remedy: "Export the variable that `inference.api_key` names, or leave `api_key` out where the endpoint needs none.",
};
/// It trapped.
pub(crate) const TRAPPED: Code = Code {
    id: "component-trapped",
    kind: ErrorKind::Crashed,
    meaning: "The driver's component crashed in place of answering.",
    remedy: "Report the message to the author of the component.",
};
/// Its time was over.
pub(crate) const TIMED_OUT: Code = Code {
    id: "component-timed-out",
    kind: ErrorKind::Network,
    meaning: "The driver's component did not answer within its time.",
    remedy: "Raise `inference.component_limits.deadline` for a model that answers slowly.",
};
/// Another limit.
pub(crate) const LIMIT: Code = Code {
    id: "component-limit",
    kind: ErrorKind::Crashed,
    meaning: "The driver's component ran into one of its limits.",
    remedy: "Raise the limit that the message names in `inference.component_limits`.",
};
/// The host could not run it.
pub(crate) const NOT_RUN: Code = Code {
    id: "component-not-run",
    kind: ErrorKind::TransportUnavailable,
    meaning: "The driver's component could not be run.",
    remedy: "Read the message; where the program is ending, run it again.",
};
/// It asked for more than it is granted.
pub(crate) const DENIED: Code = Code {
    id: "component-denied",
    kind: ErrorKind::Settings,
    meaning: "The driver's component was denied a request: it may reach the host of `inference.endpoint` alone.",
    remedy: "Check `inference.endpoint`; if it is right, the component asks for what it should not.",
};
/// What it returned is no answer.
pub(crate) const MALFORMED: Code = Code {
    id: "component-malformed",
    kind: ErrorKind::Protocol,
    meaning: "The driver's component returned something that is not an answer.",
    remedy: "Report the message to the author of the component; the page of this driver has the form of an answer.",
};
/// A stop reason that is not known.
pub(crate) const STOP_UNKNOWN: Code = Code {
    id: "component-stop-unknown",
    kind: ErrorKind::Protocol,
    meaning: "The model stopped for a reason that this version does not know, so what it wrote is not taken for an answer.",
    remedy: "Report the reason that the message names to the author of the component.",
};
/// It reports a failure of no class.
pub(crate) const FAILED: Code = Code {
    id: "component-failed",
    kind: ErrorKind::Protocol,
    meaning: "The driver's component reports that the request failed.",
    remedy: "Read the message; it is the component's own.",
};
/// It reports a failure that may pass.
pub(crate) const TRANSIENT: Code = Code {
    id: "component-transient",
    kind: ErrorKind::Overloaded,
    meaning: "The driver's component reports that the request failed for a reason that may pass, or that the provider is overloaded.",
    remedy: "Try again later.",
};
/// `auth`.
pub(crate) const AUTH: Code = Code {
    id: "component-auth",
    kind: ErrorKind::Auth,
    meaning: "The driver's component reports that the provider refused the key.",
    remedy: "Check `inference.api_key`, and that `inference.auth` is the header that the provider reads.",
};
/// `rate_limited`.
pub(crate) const RATE_LIMITED: Code = Code {
    id: "component-rate-limited",
    kind: ErrorKind::RateLimited,
    meaning: "The driver's component reports that the provider limits the rate of requests.",
    remedy: "Wait, or raise the account's limits.",
};
/// `quota`.
pub(crate) const QUOTA: Code = Code {
    id: "component-quota",
    kind: ErrorKind::Quota,
    meaning: "The driver's component reports that the account has no credit left.",
    remedy: "Add credit to the provider's account.",
};
/// `context_overflow`.
pub(crate) const CONTEXT: Code = Code {
    id: "component-context",
    kind: ErrorKind::ContextOverflow,
    meaning: "The driver's component reports that the conversation no longer fits the model's context window.",
    remedy: "Start a new conversation, or let tools return less.",
};
/// `bad_request`.
pub(crate) const BAD_REQUEST: Code = Code {
    id: "component-bad-request",
    kind: ErrorKind::BadRequest,
    meaning: "The driver's component reports that the provider refuses the request.",
    remedy: "Read the message; the model's name, a parameter under `inference.params` or a tool's schema is the usual cause.",
};
/// `network`.
pub(crate) const NETWORK: Code = Code {
    id: "component-network",
    kind: ErrorKind::Network,
    meaning: "The driver's component reports that the provider could not be reached, or that the connection broke.",
    remedy: "Check `inference.endpoint` and the network, and run it again.",
};
/// `conversation_lost`.
pub(crate) const CONVERSATION_LOST: Code = Code {
    id: "component-conversation-lost",
    kind: ErrorKind::ConversationLost,
    meaning: "The driver's component reports that the provider no longer holds the conversation.",
    remedy: "Nothing: the whole conversation is sent once more.",
};

/// All of them.
pub const ALL: &[&Code] = &[
    &NO_SANDBOX,
    &ENDPOINT,
    &AUTH_HEADER,
    &KEY_MISSING,
    &TRAPPED,
    &TIMED_OUT,
    &LIMIT,
    &NOT_RUN,
    &DENIED,
    &MALFORMED,
    &STOP_UNKNOWN,
    &FAILED,
    &TRANSIENT,
    &AUTH,
    &RATE_LIMITED,
    &QUOTA,
    &CONTEXT,
    &BAD_REQUEST,
    &NETWORK,
    &CONVERSATION_LOST,
];
