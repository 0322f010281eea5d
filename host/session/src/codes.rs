//! Codes that a session may raise.

use capsule_api::{Code, ErrorKind};

/// A plugin panicked.
pub const PANICKED: Code = Code {
    id: "session-plugin-panicked",
    kind: ErrorKind::Bug,
    meaning: "A plugin panicked while it ran a turn.",
    remedy: "This is a fault of the crate named in the message; report it there with the trace of the run.",
};

/// A directory or file of the host's own cannot be used.
pub const STORAGE: Code = Code {
    id: "session-storage",
    kind: ErrorKind::Storage,
    meaning: "A directory or file of the run's state cannot be read or written.",
    remedy: "Check that the path in the message exists, belongs to you, is writable and has space; XDG_STATE_HOME moves it.",
};

/// The trace could not be written to its end.
pub const TRACE: Code = Code {
    id: "session-trace",
    kind: ErrorKind::Storage,
    meaning: "The trace of the run could not be written, or not to its end.",
    remedy: "Make space or choose another place with `--trace FILE`; `trace: {capture: none}` writes no file.",
};

/// A kept context is in use by another run.
pub const CONTEXT_BUSY: Code = Code {
    id: "session-context-busy",
    kind: ErrorKind::Settings,
    meaning: "Another run is using the same kept context.",
    remedy: "Wait until the other run ends, or continue another context.",
};

/// A kept context cannot be read, or belongs to something else.
pub const CONTEXT_UNREADABLE: Code = Code {
    id: "session-context-unreadable",
    kind: ErrorKind::ConversationLost,
    meaning: "What was kept of a context cannot be read, or was kept by another transport.",
    remedy: "Continue it with the transport that kept it, or start a new context under another name.",
};

/// A directory of the host's that is not the user's alone.
pub const PLACE: Code = Code {
    id: "session-place",
    kind: ErrorKind::Storage,
    meaning: "A directory of the host's state is a link, belongs to somebody else, or is open to the writes of others.",
    remedy: "Remove it, or make it yours alone (`chmod go-w`); XDG_STATE_HOME moves the state.",
};

/// A name that cannot be a context's.
pub const CONTEXT_NAME: Code = Code {
    id: "session-context-name",
    kind: ErrorKind::Settings,
    meaning: "The name of a kept context is not one that a directory could have.",
    remedy: "Use up to 100 letters, digits, `-`, `_` and `.`, not starting with a dot.",
};

/// All of them.
pub const ALL: &[&Code] = &[
    &PANICKED,
    &STORAGE,
    &TRACE,
    &CONTEXT_BUSY,
    &CONTEXT_UNREADABLE,
    &CONTEXT_NAME,
    &PLACE,
];
