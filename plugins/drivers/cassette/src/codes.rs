//! Codes that this driver may raise.

use capsule_api::{Code, ErrorKind};

/// The file cannot be read.
pub(crate) const UNREADABLE: Code = Code {
    id: "cassette-unreadable",
    kind: ErrorKind::Storage,
    meaning: "The tape cannot be read.",
    remedy: "Check that the file that `inference.tape` names exists and can be read.",
};
/// The file is no tape.
pub(crate) const MALFORMED: Code = Code {
    id: "cassette-malformed",
    kind: ErrorKind::Settings,
    meaning: "The file that `inference.tape` names is not a tape.",
    remedy: "Record the tape again, or correct what the message names.",
};
/// Another version.
pub(crate) const VERSION: Code = Code {
    id: "cassette-version",
    kind: ErrorKind::Settings,
    meaning: "The tape has a version that this program does not read.",
    remedy: "Use the program that recorded it, or record it again.",
};
/// Too large.
pub(crate) const TOO_LARGE: Code = Code {
    id: "cassette-too-large",
    kind: ErrorKind::Settings,
    meaning: "The tape is larger than 64 MiB.",
    remedy: "Record a shorter run.",
};
/// The run is not the one that was recorded.
pub(crate) const DRIFT: Code = Code {
    id: "cassette-drift",
    kind: ErrorKind::Protocol,
    meaning: "The run differs from the one on the tape: the conversation has another shape, or a tool answered something else.",
    remedy: "`capsule test DIR` shows each difference whole; where it is meant, `capsule run DIR --replay TAPE --set inference.drift=ignore \
             --record TAPE` takes the results of the tools anew.",
};
/// The hint where not a result differs, but the conversation.
pub(crate) const OTHER_COURSE: &str = "A tape answers the conversation that was recorded, from its start: run without `--continue`, or \
    with a name that keeps no conversation yet; for what goes beyond the tape, use a driver of a provider.";
/// The tape has ended.
pub(crate) const EXHAUSTED: Code = Code {
    id: "cassette-exhausted",
    kind: ErrorKind::Protocol,
    meaning: "The run makes more model requests than the tape has.",
    remedy: "A tape answers the run that was recorded; for another task record another tape, or use a driver of a provider.",
};

/// The user says something else.
pub(crate) const OTHER_INPUT: Code = Code {
    id: "cassette-other-input",
    kind: ErrorKind::Protocol,
    meaning: "What the user says is not what was said when the tape was recorded. A warning: the tape answers what it has.",
    remedy: "For an answer to this task, record another tape, or use a driver of a provider.",
};

/// All of them.
pub const ALL: &[&Code] = &[
    &UNREADABLE,
    &MALFORMED,
    &VERSION,
    &TOO_LARGE,
    &DRIFT,
    &EXHAUSTED,
    &OTHER_INPUT,
];
