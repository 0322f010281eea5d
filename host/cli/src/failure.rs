//! What keeps a command from doing its work, and how a person is told.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anstyle::{AnsiColor, Style};
use capsule_api::{Code, Error, ErrorKind};
use capsule_manifest::Report;
use serde_json::{Value, json};

use crate::{exit, view::plain};

/// Codes of the command line itself.
pub(crate) mod codes {
    use super::{Code, ErrorKind};

    pub(crate) const USAGE: Code = Code {
        id: "cli-usage",
        kind: ErrorKind::Settings,
        meaning: "The command line asks for something that cannot be done.",
        remedy: "See the command's `--help`.",
    };
    pub(crate) const INTERNAL: Code = Code {
        id: "cli-internal",
        kind: ErrorKind::Bug,
        meaning: "The operating system refused something that the host needs to run at all.",
        remedy: "Check the limits of open files and threads (`ulimit -a`).",
    };
    pub(crate) const OUTPUT: Code = Code {
        id: "cli-output",
        kind: ErrorKind::Storage,
        meaning: "What the command prints could not be written.",
        remedy: "Check where its output goes: a full disk, or a pipe whose reader ended.",
    };
    pub(crate) const NOT_BUILT: Code = Code {
        id: "cli-not-built",
        kind: ErrorKind::ToolsUnavailable,
        meaning: "A tool is named by its sources, and these are not built.",
        remedy: "Build it: `capsule build`, with the capsule's directory.",
    };
    pub(crate) const STALE: Code = Code {
        id: "cli-stale",
        kind: ErrorKind::ToolsUnavailable,
        meaning: "The sources of a tool, or the component that was built of them, changed since the build.",
        remedy: "Build it again: `capsule build`, with the capsule's directory.",
    };
    pub(crate) const BUILD: Code = Code {
        id: "cli-build",
        kind: ErrorKind::ToolsUnavailable,
        meaning: "The sources of a tool could not be built.",
        remedy: "Correct what cargo names above; `cargo build --release --target wasm32-wasip2` in the tool's directory does the same.",
    };
    pub(crate) const BUILD_TARGET: Code = Code {
        id: "cli-build-target",
        kind: ErrorKind::ToolsUnavailable,
        meaning: "The Rust compiler cannot build for WebAssembly.",
        remedy: "`rustup target add wasm32-wasip2`, or set RUSTC to a compiler that has the target.",
    };
    pub(crate) const BUILD_SOURCES: Code = Code {
        id: "cli-build-sources",
        kind: ErrorKind::ToolsUnavailable,
        meaning: "The directory of a tool is none that `capsule build` can build.",
        remedy: "Name the directory of a Cargo package, or build the component otherwise and name the .wasm file.",
    };
    pub(crate) const SCRIPT: Code = Code {
        id: "cli-script",
        kind: ErrorKind::BadRequest,
        meaning: "The script of the capsule did not come to its end.",
        remedy: "The message says what it did; the trace has the calls that it made.",
    };
    pub(crate) const TAPE: Code = Code {
        id: "cli-tape",
        kind: ErrorKind::Settings,
        meaning: "The tape cannot be played, or could not be written where it is asked for.",
        remedy: "Check the path and the file's access rights; a tape of another version is recorded again.",
    };
    pub(crate) const TAPE_FILE: Code = Code {
        id: "cli-tape-file",
        kind: ErrorKind::Storage,
        meaning: "The run is over, and its tape could not be written.",
        remedy: "Check the disk and the directory, and record the run again.",
    };
    pub(crate) const TAPE_PARTIAL: Code = Code {
        id: "cli-tape-partial",
        kind: ErrorKind::Storage,
        meaning: "A run that failed or was cancelled was recorded to a file that has a tape. A warning: that tape stays, and the partial one is \
                  beside it.",
        remedy: "Record again; a run that is played while its tools answer something else goes on with `--set inference.drift=ignore`.",
    };
    pub(crate) const TAPE_FULL: Code = Code {
        id: "cli-tape-full",
        kind: ErrorKind::Storage,
        meaning: "The run is longer than a tape may be; no tape was written.",
        remedy: "Record a shorter run.",
    };
    pub(crate) const NO_PROGRAM: Code = Code {
        id: "cli-no-program",
        kind: ErrorKind::TransportUnavailable,
        meaning: "The capsule runs on a command-line agent, and none of those that this program knows could run here.",
        remedy: "Install one of them and log in, or run the capsule with `--transport` on another transport; `capsule doctor` shows what could run.",
    };
    pub(crate) const PROGRAM_NOT_FOUND: Code = Code {
        id: "cli-program-not-found",
        kind: ErrorKind::TransportUnavailable,
        meaning: "The program that `inference.command` names is not there.",
        remedy: "Install it, or give `inference.command` the path of the program.",
    };
    pub(crate) const DIALECT: Code = Code {
        id: "cli-dialect-unclear",
        kind: ErrorKind::Settings,
        meaning: "The program that `inference.command` names does not tell which transport talks to it.",
        remedy: "Set `inference.dialect` to one of the transports that the message lists.",
    };
    pub(crate) const PROBE_TIMEOUT: Code = Code {
        id: "cli-probe-timeout",
        kind: ErrorKind::TransportUnavailable,
        meaning: "A transport did not say in time whether it could run here.",
        remedy: "Run its program by hand and see whether it answers.",
    };
    pub(crate) const NEEDS_SETTINGS: Code = Code {
        id: "cli-needs-settings",
        kind: ErrorKind::Settings,
        meaning: "A transport needs settings that it was not given: no capsule was named, or `inference` lacks them.",
        remedy: "Ask for a capsule, `capsule doctor DIR`, and give the settings in its `inference`.",
    };
    pub(crate) const ALL: &[&Code] = &[
        &USAGE,
        &INTERNAL,
        &OUTPUT,
        &TAPE,
        &TAPE_FILE,
        &TAPE_PARTIAL,
        &TAPE_FULL,
        &NOT_BUILT,
        &STALE,
        &BUILD,
        &BUILD_TARGET,
        &BUILD_SOURCES,
        &SCRIPT,
        &NO_PROGRAM,
        &PROGRAM_NOT_FOUND,
        &DIALECT,
        &PROBE_TIMEOUT,
        &NEEDS_SETTINGS,
    ];
}

/// Why a command did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The manifest is not valid.
    Manifest(Box<Report>),
    /// The tools cannot be loaded.
    Tools(Vec<Error>),
    /// Anything else.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Report> for Failure {
    fn from(report: Report) -> Self {
        Self::Manifest(Box::new(report))
    }
}

impl Failure {
    /// A command line that makes no sense, and what to write instead.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Error(Error::new(&codes::USAGE, message).hint(hint))
    }

    /// The exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Manifest(_) | Self::Tools(_) => exit::USAGE,
            Self::Error(error) => exit::of_error(error),
        })
    }

    /// Tells a program that asked for JSON: one line on standard output. A person is told as well.
    pub(crate) fn show_json(&self) {
        let errors = match self {
            Self::Manifest(report) => report
                .problems
                .iter()
                .map(|problem| {
                    let mut told = json!(problem);
                    told["file"] = json!(report.file);
                    told
                })
                .collect(),
            Self::Tools(errors) => errors.iter().map(error_json).collect(),
            Self::Error(error) => vec![error_json(error)],
        };
        // If standard output is gone, standard error and the exit code still say it.
        let _ = writeln!(io::stdout().lock(), "{}", json!({ "errors": errors }));
    }

    /// Tells a person. If even that cannot be written there is nobody left to tell.
    pub fn show(&self, out: &mut dyn Write) {
        let _ = match self {
            Self::Manifest(report) => show_report(report, out),
            Self::Tools(errors) => errors.iter().try_for_each(|error| show_error(error, out)),
            Self::Error(error) => show_error(error, out),
        };
    }
}

fn error_json(error: &Error) -> Value {
    let context: serde_json::Map<_, _> = error
        .context
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    json!({
        "code": error.code,
        "kind": error.kind.as_str(),
        "message": error.message,
        "hint": error.hint,
        "context": context,
    })
}

/// What is wrong with a manifest: the places, then each code to look up. What to do is said where the message does not say it already.
fn show_report(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}", plain(&report.render()))?;
    for code in report.codes() {
        if code.id != capsule_manifest::codes::INVALID.id {
            writeln!(out, "  hint: {}", code.remedy)?;
        }
        show_code(code.id, out)?;
    }
    Ok(())
}

fn show_code(code: &str, out: &mut dyn Write) -> io::Result<()> {
    let dim = Style::new().dimmed();
    writeln!(out, "  {dim}{code} · `capsule explain {code}`{dim:#}")
}

/// An error as people see it: what happened, the facts, what to do, the code to look it up.
pub(crate) fn show_error(error: &Error, out: &mut dyn Write) -> io::Result<()> {
    let red = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
    writeln!(out, "{red}error{red:#}: {}", plain(&error.message))?;
    for (name, value) in error
        .context
        .iter()
        .filter(|(_, value)| !error.message.contains(value.as_str()))
    {
        let value = plain(value);
        let mut lines = value.lines();
        writeln!(out, "  {name}: {}", lines.next().unwrap_or_default())?;
        lines.try_for_each(|line| writeln!(out, "    {line}"))?;
    }
    if !error.hint.is_empty() {
        writeln!(out, "  hint: {}", plain(&error.hint))?;
    }
    show_code(error.code, out)
}

pub(crate) fn internal(what: &str, error: &io::Error) -> Error {
    Error::new(&codes::INTERNAL, format!("cannot {what}: {error}"))
}

/// There is no standard output.
pub(crate) fn closed() -> Error {
    let error = Error::new(&codes::OUTPUT, "standard output is closed, so nothing was run");
    error.hint("Let it lead somewhere; `> /dev/null` drops what is printed.")
}

pub(crate) fn output(error: &io::Error) -> Error {
    Error::new(&codes::OUTPUT, format!("cannot write the output: {error}"))
}
