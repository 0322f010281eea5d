//! A stand-in for the claude CLI that misbehaves: how, the prompt says. It has no model and calls no tool.
//!
//! | prompt | what it does |
//! |---|---|
//! | `answer` | a good run |
//! | `no result` | starts, then exits with 0 and without a terminal event |
//! | `crash` | writes much to stderr and exits with 3 |
//! | `stay` | a good run, but it does not exit |
//! | `silence` | starts, then says nothing |
//! | `odd output` | a good run between a banner, a line of 300 KB, two events on one line and no final newline |
//! | `leave a child` | a good run that leaves a sleeper that ignores SIGTERM |
//! | `ignore signals` | tells text, then sleeps with a child, both ignoring SIGINT and SIGTERM |

use std::{
    fmt,
    io::{BufRead, Write, stderr, stdout},
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
    thread,
};

use serde_json::{Value, json};

const SLEEPER: &str = "trap '' INT TERM; exec sleep 1000";

fn main() -> ExitCode {
    if std::env::args().any(|arg| arg == "--version") {
        let old = std::env::args().next().is_some_and(|name| name.ends_with("old-claude"));
        out(format_args!(
            "{} (Claude Code)\n",
            if old { "2.1.197" } else { "2.1.332" }
        ));
        return ExitCode::SUCCESS;
    }
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).is_err() {
        return ExitCode::FAILURE;
    }
    let message: Value = serde_json::from_str(&line).unwrap_or_default();
    let prompt = message["message"]["content"][0]["text"].as_str().unwrap_or_default();
    match prompt {
        "answer" => run(),
        "no result" => say(&init()),
        "crash" => {
            for n in 0..4000 {
                err(format_args!("line {n} of what went wrong"));
            }
            return ExitCode::from(3);
        }
        "stay" => {
            run();
            sleep();
        }
        "silence" => {
            say(&init());
            sleep();
        }
        "odd output" => odd(),
        "leave a child" => {
            leave_child();
            run();
        }
        "ignore signals" => {
            say(&init());
            start().iter().for_each(say);
            leave_child();
            // The dispositions survive the exec, so from here on only SIGKILL ends it.
            let error = Command::new("/bin/sh").args(["-c", SLEEPER]).exec();
            err(format_args!("{error}"));
        }
        other => err(format_args!("no such misbehaviour: {other}")),
    }
    ExitCode::SUCCESS
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

fn say(event: &Value) {
    out(format_args!("{event}\n"));
}

fn run() {
    say(&init());
    start().iter().for_each(say);
    end().iter().for_each(say);
}

fn odd() {
    out(format_args!("Welcome! This is no event.\n"));
    say(&init());
    say(&json!({"type": "padding", "text": "x".repeat(300_000)}));
    start().iter().for_each(say);
    let events = end();
    let (last, others) = events.split_last().unwrap_or((&Value::Null, &[]));
    for pair in others.chunks(2) {
        out(format_args!(
            "{}\n",
            pair.iter().map(Value::to_string).collect::<String>()
        ));
    }
    out(format_args!("{last}"));
}

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": "s", "tools": [], "mcp_servers": [], "model": "fake",
        "apiKeySource": "ANTHROPIC_API_KEY", "claude_code_version": "2.1.332"})
}

fn start() -> Vec<Value> {
    let stream = |event: Value| json!({"type": "stream_event", "event": event});
    vec![
        stream(json!({"type": "message_start", "message": {"id": "m1"}})),
        stream(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
        stream(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Fine."}})),
    ]
}

fn end() -> Vec<Value> {
    let stream = |event: Value| json!({"type": "stream_event", "event": event});
    vec![
        json!({"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "Fine."}]}}),
        stream(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})),
        stream(json!({"type": "message_stop"})),
        json!({"num_turns": 1, "subtype": "success", "is_error": false, "terminal_reason": "completed", "result": "Fine.",
            "type": "result"}),
    ]
}
