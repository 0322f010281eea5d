//! What the stand-ins for the CLIs share: the ways to misbehave. A stand-in adds its dialect.
//!
//! | prompt | what it does |
//! |---|---|
//! | `answer` | a good turn |
//! | `no end` | starts the turn, then exits with 0 and without its end, with words on stderr |
//! | `failed` | a turn that fails, and an exit with 0 |
//! | `crash` | writes much to stderr and exits with 3 |
//! | `stay` | a good turn, but it does not exit |
//! | `silence` | starts the turn, then says nothing |
//! | `odd output` | a good turn between a banner, a line of 300 KB, two events on one line and no final newline |
//! | `leave a child` | a good turn that leaves a sleeper that ignores SIGTERM |
//! | `ignore signals` | tells text, then sleeps with a child, both ignoring SIGINT and SIGTERM |
//! | `renew the login` | a good turn, before which it writes a login that is good until later over the one that it was lent |
//! | `read to the end` | a good turn; leaves the file `input-ended` in its configuration once its input has ended |
//! | `call in secret` | calls the capsule's tool `echo` and says nothing of it; a good turn |
//! | `work in silence` | tells a call of the capsule's tool `work`, is silent for as long as it runs (900 ms), tells its result; a good turn |
//!
//! The tools are asked for at the start. Under a name that ends with `-no-tools` they are not; under one with `-no-token` the token is lost.
//!
//! A stand-in beside a file `real` runs that program in its own place: under a name that ends with `-wrong-token` with another token for the
//! capsule's tools, under one with `-closed-port` with a port for them where nobody listens, under one with `-port-N` with the port N.
#![warn(missing_docs)]

mod bridge;
mod passed_on;

use std::{
    fmt,
    io::{self, Write as _, stderr, stdout},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitCode},
    thread,
};

pub use bridge::Bridge;
pub use passed_on::pass_on;
use serde_json::{Value, json};

/// Ends only by `SIGKILL`.
const SLEEPER: &str = "trap '' INT TERM; exec sleep 1000";

/// How a CLI says what happens in a turn: events, each a line of its output.
pub struct Dialect {
    /// From its start to a first piece of text, `Fine.`. The first event is none of an answer's.
    pub start: Vec<Value>,
    /// From there to its good end; the last event is the terminal one.
    pub end: Vec<Value>,
    /// From there to the end of a turn that failed.
    pub failure: Vec<Value>,
    /// An event that nobody knows, with this text in it.
    pub unknown: fn(String) -> Value,
    /// What it tells of a call of the capsule's tools, by id, tool and arguments: before the call, and of its result.
    pub call: Told,
    /// The member of a call's `_meta` that holds its id.
    pub call_id: &'static str,
    /// The capsule's tools, where it has any.
    pub bridge: Option<Bridge>,
    /// Where it keeps its configuration.
    pub config: Option<PathBuf>,
    /// Its credential file, and what it makes of it when it renews the login.
    pub login: Option<(PathBuf, Renew)>,
}

/// Tells of a call.
pub type Told = fn(id: &str, tool: &str, arguments: &Value) -> [Vec<Value>; 2];

/// Makes a renewed login of one that was lent.
pub type Renew = fn(&mut Value);

/// What comes after a turn.
pub enum After {
    /// The end of the input is waited for; then it exits with 0.
    InputEnd,
    /// The same, and then the file is left.
    Mark(PathBuf),
    /// It exits at once.
    Exit(ExitCode),
    /// The prompt is none of the list.
    Unknown,
}

/// Plays a turn.
pub fn play(prompt: &str, dialect: &Dialect) -> After {
    let start = || dialect.start.iter().for_each(say);
    let run = || {
        start();
        dialect.end.iter().for_each(say);
    };
    match prompt {
        "answer" => run(),
        "no end" => {
            start();
            err(format_args!("the last words"));
            return After::Exit(ExitCode::SUCCESS);
        }
        "failed" => {
            start();
            dialect.failure.iter().for_each(say);
        }
        "crash" => {
            for n in 0..4000 {
                err(format_args!("line {n} of what went wrong"));
            }
            return After::Exit(ExitCode::from(3));
        }
        "stay" => {
            run();
            sleep();
        }
        "silence" => {
            start();
            sleep();
        }
        "odd output" => {
            odd(dialect);
            return After::Exit(ExitCode::SUCCESS);
        }
        "leave a child" => {
            leave_child();
            run();
        }
        "ignore signals" => {
            start();
            leave_child();
            // The dispositions survive the exec, so from here on only SIGKILL ends it.
            let error = Command::new("/bin/sh").args(["-c", SLEEPER]).exec();
            err(format_args!("{error}"));
        }
        _ => return beside(prompt, dialect),
    }
    After::InputEnd
}

/// A good turn with something beside it.
fn beside(prompt: &str, dialect: &Dialect) -> After {
    match prompt {
        "renew the login" => {
            if let Err(error) = renew(dialect) {
                err(format_args!("the login was not renewed: {error}"));
                return After::Exit(ExitCode::FAILURE);
            }
        }
        "read to the end" => {}
        "call in secret" => {
            if let Some(bridge) = &dialect.bridge {
                bridge.call(dialect.call_id, "secret-1", "echo", &json!({"text": "hello"}));
            }
        }
        "work in silence" => {
            work(dialect);
            return After::InputEnd;
        }
        _ => return After::Unknown,
    }
    play("answer", dialect);
    match &dialect.config {
        Some(config) if prompt == "read to the end" => After::Mark(config.join("input-ended")),
        _ => After::InputEnd,
    }
}

fn work(dialect: &Dialect) {
    let (first, rest) = dialect.start.split_at(1);
    let arguments = json!({"much": 900});
    let [before, after] = (dialect.call)("call-1", "work", &arguments);
    first.iter().chain(&before).for_each(say);
    if let Some(bridge) = &dialect.bridge {
        bridge.call(dialect.call_id, "call-1", "work", &arguments);
    }
    after.iter().chain(rest).chain(&dialect.end).for_each(say);
}

fn renew(dialect: &Dialect) -> io::Result<()> {
    let (path, edit) = dialect.login.as_ref().ok_or(io::ErrorKind::NotFound)?;
    let mut login = serde_json::from_slice(&std::fs::read(path)?)?;
    edit(&mut login);
    std::fs::write(path, login.to_string())
}

impl After {
    /// Leaves the mark, if there is one to leave; called once the input has ended.
    pub fn input_ended(&self) {
        if let Self::Mark(path) = self
            && let Err(error) = std::fs::write(path, "yes")
        {
            err(format_args!("{}: {error}", path.display()));
        }
    }
}

fn odd(dialect: &Dialect) {
    out(format_args!("Welcome! This is no event.\n"));
    say(&(dialect.unknown)("x".repeat(300_000)));
    dialect.start.iter().for_each(say);
    let Some((last, others)) = dialect.end.split_last() else {
        return;
    };
    for pair in others.chunks(2) {
        let line: String = pair.iter().map(Value::to_string).collect();
        out(format_args!("{line}\n"));
    }
    out(format_args!("{last}"));
}

fn sleep() {
    loop {
        thread::park();
    }
}

fn leave_child() {
    if let Err(error) = Command::new("/bin/sh").args(["-c", SLEEPER]).spawn() {
        err(format_args!("{error}"));
    }
}

/// Writes an event as a line.
pub fn say(event: &Value) {
    out(format_args!("{event}\n"));
}

/// Written and flushed at once: the last line may have no newline. Whoever reads may be gone, which is no failure here.
pub fn out(text: fmt::Arguments<'_>) {
    let mut out = stdout().lock();
    let _ = out.write_fmt(text).and_then(|()| out.flush());
}

/// Writes a line to stderr, where anybody reads it.
pub fn err(text: fmt::Arguments<'_>) {
    let _ = writeln!(stderr(), "{text}");
}

/// Whether the stand-in was started under a name with this end.
pub fn named(end: &str) -> bool {
    std::env::args().next().is_some_and(|name| name.ends_with(end))
}
