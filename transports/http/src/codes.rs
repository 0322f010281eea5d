//! Codes that this transport may raise.

use capsule_api::{Code, ErrorKind};

/// The stream ended before the model's answer did.
pub(crate) const STREAM_CUT: Code = Code {
    id: "http-stream-cut",
    kind: ErrorKind::Network,
    meaning: "The provider's stream ended before the answer was complete.",
    remedy: "Run it again; if it happens often, look at proxies and time-outs between here and the endpoint.",
};
/// Nothing came for too long.
pub(crate) const IDLE: Code = Code {
    id: "http-idle",
    kind: ErrorKind::Network,
    meaning: "The provider sent nothing for longer than `idle_timeout`, or for ten times as long nothing that belongs to its answer.",
    remedy: "Run it again, or raise `inference.idle_timeout` for a model that thinks long before its first word.",
};
/// Status 200, but no stream.
pub(crate) const NOT_A_STREAM: Code = Code {
    id: "http-not-a-stream",
    kind: ErrorKind::Protocol,
    meaning: "The endpoint answered with something other than the stream that was asked for, or compressed it.",
    remedy: "Check `inference.endpoint` and whether a proxy or a login page answers in its place.",
};
/// A frame beyond the limit.
pub(crate) const FRAME_TOO_LONG: Code = Code {
    id: "http-frame-too-long",
    kind: ErrorKind::Protocol,
    meaning: "One frame of the provider's stream is larger than 16 MiB.",
    remedy: "Check that `inference.endpoint` is the provider's API.",
};
/// An answer beyond the limit.
pub(crate) const ANSWER_TOO_LONG: Code = Code {
    id: "http-answer-too-long",
    kind: ErrorKind::Protocol,
    meaning: "One answer of the model is larger than 64 MiB (a block counts 1 KiB beside its text), or its stream than 256 MiB.",
    remedy: "Lower `inference.max_tokens`, and check that `inference.endpoint` is the provider's API.",
};
/// More calls than one answer may have.
pub(crate) const TOO_MANY_CALLS: Code = Code {
    id: "http-too-many-calls",
    kind: ErrorKind::Protocol,
    meaning: "One answer of the model has more than 256 tool calls; none of them was run.",
    remedy: "Ask for less at once, lower `inference.max_tokens`, or use another model.",
};
/// Items that contradict each other.
pub(crate) const BAD_ITEMS: Code = Code {
    id: "http-bad-items",
    kind: ErrorKind::Bug,
    meaning: "A driver's decoder reported a piece of a block that does not exist or is of another kind.",
    remedy: "Report it to the author of the driver.",
};
/// Arguments that are not a whole JSON object.
pub(crate) const CALL_INCOMPLETE: Code = Code {
    id: "http-call-incomplete",
    kind: ErrorKind::Protocol,
    meaning: "The model ended its answer with a tool call whose arguments are not a complete JSON object; it was not run.",
    remedy: "Run it again; if it happens often, raise `inference.max_tokens` or use another model.",
};
/// It stopped for calls and made none.
pub(crate) const CALLS_MISSING: Code = Code {
    id: "http-calls-missing",
    kind: ErrorKind::Protocol,
    meaning: "The model stopped to wait for tool results but called no tool.",
    remedy: "Run it again; if it happens often, the endpoint drops tool calls: look at its settings.",
};
/// The answer says that it failed.
pub(crate) const ANSWER_FAILED: Code = Code {
    id: "http-answer-failed",
    kind: ErrorKind::Protocol,
    meaning: "The driver reports that the model's answer failed, without saying why.",
    remedy: "Run it again; the provider's own log may know more.",
};
/// The kept conversation cannot be read.
pub(crate) const CONVERSATION_LOST: Code = Code {
    id: "http-conversation-lost",
    kind: ErrorKind::ConversationLost,
    meaning: "The kept conversation cannot be continued by this version.",
    remedy: "Start a new conversation.",
};
/// The task has a file.
pub(crate) const FILE_INPUT: Code = Code {
    id: "http-file-input",
    kind: ErrorKind::BadRequest,
    meaning: "The task has a file as a part, and drivers take text.",
    remedy: "Put the file where a tool of the capsule can read it, and name it in the task's text.",
};
/// Older turns stay.
pub(crate) const NO_SUMMARY: Code = Code {
    id: "http-no-summary",
    kind: ErrorKind::Protocol,
    meaning: "Older turns of a conversation that fills the context window could not be summarised; it goes on as it is.",
    remedy: "Start a new conversation, or raise `context.max_tokens` if the model takes more.",
};
/// A limit on cost that could not be kept.
pub(crate) const PRICES_MISSING: Code = Code {
    id: "http-prices-missing",
    kind: ErrorKind::Settings,
    meaning: "`max_cost` is set, and not every kind of token has a price.",
    remedy: "Set all of `inference.prices`: `input`, `output`, `cache_read` and `cache_write` (0 where it costs nothing).",
};
/// A recording of a wire that is not linked.
pub(crate) const NO_WIRE: Code = Code {
    id: "http-no-wire",
    kind: ErrorKind::Settings,
    meaning: "A recording was made with a driver that has no wire format in this program.",
    remedy: "Use a program that links the driver that the recording names, or record again.",
};

/// All of them.
pub const ALL: &[&Code] = &[
    &STREAM_CUT,
    &IDLE,
    &NOT_A_STREAM,
    &FRAME_TOO_LONG,
    &ANSWER_TOO_LONG,
    &TOO_MANY_CALLS,
    &BAD_ITEMS,
    &CALL_INCOMPLETE,
    &CALLS_MISSING,
    &ANSWER_FAILED,
    &CONVERSATION_LOST,
    &FILE_INPUT,
    &NO_SUMMARY,
    &PRICES_MISSING,
    &NO_WIRE,
];
