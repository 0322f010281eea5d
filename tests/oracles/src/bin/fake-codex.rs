//! A stand-in for the codex CLI that misbehaves: how, the prompt says, or the name that it is started under. It has no model and calls no
//! tool.
//!
//! | prompt | what it does |
//! |---|---|
//! | `answer` | a good turn |
//! | `no end` | starts the turn, then exits with 0 and without its end |
//! | `failed` | a turn that fails, and an exit with 0 |
//! | `stay` | a good turn, but it does not exit |
//! | `silence` | starts the turn, then says nothing |
//! | `odd output` | a good turn between a banner, a line of 300 KB, two messages on one line and no final newline |
//! | `own work` | runs a command of its own |
//! | `leave a child` | a good turn that leaves a sleeper that ignores SIGTERM |
//! | `ignore signals` | tells text, then sleeps with a child, both ignoring SIGINT and SIGTERM |
//!
//! Named `codex-old` it is an old version; `codex-no-shell-switch` does not know the feature `shell_tool`; `codex-no-server` has no
//! app-server; `codex-strict` refuses a switch when it starts.

use std::{
    fmt,
    io::{BufRead, Lines, StdinLock, Write, stderr, stdout},
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
    thread,
};

use serde_json::{Value, json};

const SLEEPER: &str = "trap '' INT TERM; exec sleep 1000";

fn main() -> ExitCode {
    let name = std::env::args().next().unwrap_or_default();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--version"] => {
            let version = if name.ends_with("-old") { "0.90.0" } else { "0.171.0" };
            out(format_args!("codex-cli {version}\n"));
        }
        ["features", "list"] => {
            if !name.ends_with("-no-shell-switch") {
                out(format_args!("shell_tool    stable  true\n"));
            }
            out(format_args!("unified_exec  stable  true\n"));
        }
        ["app-server", "--help"] => {
            if name.ends_with("-no-server") {
                err(format_args!("error: unrecognized subcommand 'app-server'"));
                return ExitCode::from(2);
            }
            out(format_args!("Options:\n  --stdio  Use stdio\n"));
        }
        _ if name.ends_with("-strict") => {
            err(format_args!("Error: Unknown feature flag: unified_exec"));
            return ExitCode::FAILURE;
        }
        _ => serve(),
    }
    ExitCode::SUCCESS
}

/// The handshake, the thread, and the one turn.
fn serve() {
    let mut lines = std::io::stdin().lock().lines();
    while let Some(message) = next(&mut lines) {
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => say(&json!({"id": message["id"], "result": {"userAgent": "fake"}})),
            "thread/start" => {
                say(&json!({"id": message["id"],
                    "result": {"thread": {"id": "t"}, "model": "fake", "modelProvider": "capsule"}}));
            }
            "turn/start" => {
                let prompt = message["params"]["input"][0]["text"].as_str().unwrap_or_default();
                if turn(prompt) {
                    return;
                }
            }
            _ => {}
        }
    }
}

fn next(lines: &mut Lines<StdinLock<'_>>) -> Option<Value> {
    let line = lines.next()?.ok()?;
    Some(serde_json::from_str(&line).unwrap_or_default())
}

/// Plays a turn; whether it exits after it, without waiting for the end of its input.
fn turn(prompt: &str) -> bool {
    match prompt {
        "answer" => run(),
        "no end" => {
            start().iter().for_each(say);
            return true;
        }
        "failed" => {
            start().iter().for_each(say);
            let error = json!({"message": "no", "codexErrorInfo": "usageLimitExceeded"});
            say(&told(
                "turn/completed",
                json!({"turn": {"id": "u", "status": "failed", "error": error}}),
            ));
        }
        "stay" => {
            run();
            sleep();
        }
        "silence" => {
            start().iter().for_each(say);
            sleep();
        }
        "odd output" => {
            odd();
            return true;
        }
        "own work" => {
            start().iter().for_each(say);
            say(&told(
                "item/started",
                json!({"turnId": "u", "item": {"type": "commandExecution", "id": "c", "command": "id"}}),
            ));
        }
        "leave a child" => {
            leave_child();
            run();
        }
        "ignore signals" => {
            start().iter().for_each(say);
            leave_child();
            // The dispositions survive the exec, so from here on only SIGKILL ends it.
            let error = Command::new("/bin/sh").args(["-c", SLEEPER]).exec();
            err(format_args!("{error}"));
        }
        other => err(format_args!("no such misbehaviour: {other}")),
    }
    false
}

/// Written and flushed at once: the last line has no newline. Whoever reads may be gone, which is no failure here.
fn out(text: fmt::Arguments<'_>) {
    let mut out = stdout().lock();
    let _ = out.write_fmt(text).and_then(|()| out.flush());
}

fn err(text: fmt::Arguments<'_>) {
    let _ = writeln!(stderr(), "{text}");
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

fn say(message: &Value) {
    out(format_args!("{message}\n"));
}

fn run() {
    start().iter().for_each(say);
    end().iter().for_each(say);
}

fn odd() {
    out(format_args!("Welcome! This is no message.\n"));
    say(&json!({"method": "padding", "params": {"text": "x".repeat(300_000)}}));
    start().iter().for_each(say);
    let messages = end();
    let (last, others) = messages.split_last().unwrap_or((&Value::Null, &[]));
    for pair in others.chunks(2) {
        out(format_args!(
            "{}\n",
            pair.iter().map(Value::to_string).collect::<String>()
        ));
    }
    out(format_args!("{last}"));
}

fn told(method: &str, mut params: Value) -> Value {
    params["threadId"] = json!("t");
    json!({"method": method, "params": params})
}

fn start() -> Vec<Value> {
    vec![
        told("turn/started", json!({"turn": {"id": "u", "status": "inProgress"}})),
        told(
            "item/agentMessage/delta",
            json!({"turnId": "u", "itemId": "m", "delta": "Fine."}),
        ),
    ]
}

fn end() -> Vec<Value> {
    let message = json!({"type": "agentMessage", "id": "m", "text": "Fine."});
    vec![
        told("item/completed", json!({"turnId": "u", "item": message})),
        told(
            "rawResponse/completed",
            json!({"turnId": "u", "usage": {"inputTokens": 1, "outputTokens": 1}}),
        ),
        told("turn/completed", json!({"turn": {"id": "u", "status": "completed"}})),
    ]
}
