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
/// The bridge could not listen.
pub const BRIDGE_BIND: Code = Code {
    id: "process-bridge-bind",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "The tool bridge could not listen on 127.0.0.1, so the program would have run without its tools.",
    remedy: "Check that the loopback interface is up and that ports are left for new listeners.",
};
/// All of them.
pub const ALL: &[&Code] = &[&SPAWN, &STDIN, &RUN_DIR, &BRIDGE_BIND];
