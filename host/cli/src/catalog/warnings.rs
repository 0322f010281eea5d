//! Codes of what is survived. They are in events, in the trace and on standard error; a run with one of them may be a good one.

use capsule_api::{Code, ErrorKind};
use capsule_tools::codes;

/// A warning is no error; its kind says what kind of error the same thing would be.
const fn warning(id: &'static str, kind: ErrorKind, meaning: &'static str, remedy: &'static str) -> Code {
    Code {
        id,
        kind,
        meaning,
        remedy,
    }
}

/// Of the tools.
pub(super) const TOOLS: &[&Code] = &[
    &warning(
        codes::CACHE_UNUSED,
        ErrorKind::Storage,
        "A warning: the cache of compiled components, or one file of it, was not used. The component was compiled anew, which takes longer.",
        "Check that the cache directory can be written and belongs to you, with mode 0700; deleting it is safe.",
    ),
    &warning(
        codes::ENV_UNSET,
        ErrorKind::Settings,
        "A warning: an environment variable that is granted to the tools is not set; they do not see it.",
        "Set the variable, or take it out of `capabilities.env.allow`.",
    ),
    &warning(
        codes::PANICKED,
        ErrorKind::Bug,
        "A warning: the host's part of a tool call panicked; the call ended as failed.",
        "Report it with the message and the component.",
    ),
    &warning(
        codes::STREAM_CUT,
        ErrorKind::ToolsUnavailable,
        "A warning: a tool shows more text while it works than `limits.output` allows; the rest of it was dropped.",
        "Raise `capabilities.limits.output`, or let the tool show less.",
    ),
    &warning(
        codes::SCHEMA_CURED,
        ErrorKind::ToolsUnavailable,
        "A warning: a tool's input schema is shown to models otherwise than it is written, since some peers refuse it as it is.",
        "Nothing has to be done: arguments are held against the schema as written. `capsule tool list --json` has the shown form.",
    ),
    &warning(
        codes::DESCRIPTION_CUT,
        ErrorKind::ToolsUnavailable,
        "A warning: a tool's description is longer than 4096 bytes; models see its beginning.",
        "Shorten it, in the component or with `description` in the manifest's entry.",
    ),
    &warning(
        codes::POOL_UNAVAILABLE,
        ErrorKind::ToolsUnavailable,
        "A warning: no pool of places for calls could be reserved, so each call takes its memory from the system, which is slower.",
        "Raise the limit of address space (`ulimit -v`), or lower `capabilities.limits.concurrent_calls`.",
    ),
];

/// Of the session.
pub(super) const SESSION: &[&Code] = &[
    &warning(
        "session-turn-overran",
        ErrorKind::Bug,
        "A warning: the transport did not stop in its time after a cancel and was dropped.",
        "The run is over. Report it to the transport's authors with the trace.",
    ),
    &warning(
        "session-close-failed",
        ErrorKind::Bug,
        "A warning: the conversation could not be closed, so what it left behind is not known.",
        "Look for processes and files of the run that are still there; report it to the transport's authors.",
    ),
];
