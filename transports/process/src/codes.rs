//! Codes that the library may raise. A transport lists them in its descriptor beside its own.

use capsule_api::{Code, ErrorKind};

/// The program could not be started.
pub const SPAWN: Code = Code {
    id: "process-spawn-failed",
    kind: ErrorKind::TransportUnavailable,
    meaning: "The program of the transport could not be started.",
    remedy: "Check that the path in the message exists, is executable by this user and fits this machine.",
};
/// The program does not take its input.
pub const STDIN: Code = Code {
    id: "process-stdin-closed",
    kind: ErrorKind::Crashed,
    meaning: "The program stopped reading its input before it had all of it.",
    remedy: "Read the end of the program's own messages in the context of this error.",
};
/// A private directory or file of the run could not be made.
pub const RUN_DIR: Code = Code {
    id: "process-run-directory",
    kind: ErrorKind::Storage,
    meaning: "A private directory or file of the run could not be created or removed.",
    remedy: "Check that the directory in the message is writable by this user and that its disk is not full.",
};
/// More output than a turn may have.
pub const OUTPUT_LIMIT: Code = Code {
    id: "process-output-limit",
    kind: ErrorKind::Protocol,
    meaning: "The program wrote more to its standard output in one turn than any turn needs (4 GiB), and was ended.",
    remedy: "Divide the task, or lower `max_turns`; where little was asked for, check that `inference.command` names the CLI itself in a tested version.",
};
/// The bridge could not listen.
pub const BRIDGE_BIND: Code = Code {
    id: "process-bridge-bind",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "The tool bridge could not listen on 127.0.0.1, so the program would have run without its tools.",
    remedy: "Check that the loopback interface is up and that ports are left for new listeners.",
};
/// The settings name no credential, or several.
pub const LOGIN_SETTINGS: Code = Code {
    id: "process-login-settings",
    kind: ErrorKind::Settings,
    meaning: "`login` and the keys of a credential do not fit together.",
    remedy: "Give `api_key` with `login: api_key`, `token` with `login: token`, and neither with `login: subscription`.",
};
/// Where the credential would be sent.
pub const LOGIN_ENDPOINT: Code = Code {
    id: "process-login-endpoint",
    kind: ErrorKind::Settings,
    meaning: "A person's login may only be sent to the provider that it belongs to, or to loopback.",
    remedy: "Remove `endpoint`, or set `login: api_key` and give the key of that endpoint.",
};
/// Not logged in.
pub const LOGIN_MISSING: Code = Code {
    id: "process-login-missing",
    kind: ErrorKind::TransportUnavailable,
    meaning: "The CLI is not logged in for this person, so there is no subscription to use.",
    remedy: "Log in with the CLI once, name the directory of its login by `login_home`, or set `login: api_key` and give a key.",
};
/// A file that is no login.
pub const LOGIN_UNREADABLE: Code = Code {
    id: "process-login-unreadable",
    kind: ErrorKind::TransportUnavailable,
    meaning: "The CLI's credential file cannot be read, or holds no login of a subscription.",
    remedy: "Log in with the CLI again, or set `login: api_key` and give a key.",
};
/// Another run keeps it.
pub const LOGIN_BUSY: Code = Code {
    id: "process-login-busy",
    kind: ErrorKind::Storage,
    meaning: "Another run keeps the login locked.",
    remedy: "Try again when the other run has ended.",
};
/// The login could not be copied or given back.
pub const LOGIN_NOT_WRITTEN: Code = Code {
    id: "process-login-not-written",
    kind: ErrorKind::Storage,
    meaning: "The login could not be copied for the run, or a renewed one could not be written back.",
    remedy: "Check that the directory in the message is writable by this user and that its disk is not full.",
};
/// All of them.
pub const ALL: &[&Code] = &[
    &SPAWN,
    &STDIN,
    &RUN_DIR,
    &OUTPUT_LIMIT,
    &BRIDGE_BIND,
    &LOGIN_SETTINGS,
    &LOGIN_ENDPOINT,
    &LOGIN_MISSING,
    &LOGIN_UNREADABLE,
    &LOGIN_BUSY,
    &LOGIN_NOT_WRITTEN,
];

/// The codes of a dialect, each a name, an id, its kind, its meaning and its remedy; and `ALL` of them, with those of this library.
#[macro_export]
macro_rules! dialect_codes {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $kind:ident, $meaning:literal, $remedy:literal;)*) => {
        $($(#[$doc])* pub const $name: $crate::Code = $crate::Code {
            id: $id,
            kind: $crate::ErrorKind::$kind,
            meaning: $meaning,
            remedy: $remedy,
        };)*

        /// All of this transport and of the library below it.
        pub const ALL: &[&$crate::Code] = &[
            $(&$name,)*
            &$crate::codes::SPAWN,
            &$crate::codes::STDIN,
            &$crate::codes::RUN_DIR,
            &$crate::codes::OUTPUT_LIMIT,
            &$crate::codes::BRIDGE_BIND,
            &$crate::codes::LOGIN_SETTINGS,
            &$crate::codes::LOGIN_ENDPOINT,
            &$crate::codes::LOGIN_MISSING,
            &$crate::codes::LOGIN_UNREADABLE,
            &$crate::codes::LOGIN_BUSY,
            &$crate::codes::LOGIN_NOT_WRITTEN,
        ];
    };
}
