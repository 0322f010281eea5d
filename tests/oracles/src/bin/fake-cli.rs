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
#![allow(clippy::print_stdout, clippy::print_stderr)] // It is a program whose output is its purpose.

use std::{
    io::{BufRead, Write},
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
    thread,
};

use serde_json::{Value, json};

const SLEEPER: &str = "trap '' INT TERM; exec sleep 1000";

fn main() -> ExitCode {
    if std::env::args().any(|arg| arg == "--version") {
        println!("2.1.332 (Claude Code)");
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
                eprintln!("line {n} of what went wrong");
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
            eprintln!("{error}");
        }
        other => eprintln!("no such misbehaviour: {other}"),
    }
    ExitCode::SUCCESS
}

fn sleep() {
    loop {
        thread::park();
    }
}

fn leave_child() {
    if let Err(error) = Command::new("/bin/sh").args(["-c", SLEEPER]).spawn() {
        eprintln!("{error}");
    }
}

fn say(event: &Value) {
    println!("{event}");
}

fn run() {
    say(&init());
    start().iter().for_each(say);
    end().iter().for_each(say);
}

fn odd() {
    println!("Welcome! This is no event.");
    say(&init());
    println!("{}", json!({"type": "padding", "text": "x".repeat(300_000)}));
    start().iter().for_each(say);
    let events = end();
    let (last, others) = events.split_last().unwrap_or((&Value::Null, &[]));
    for pair in others.chunks(2) {
        println!("{}", pair.iter().map(Value::to_string).collect::<String>());
    }
    print!("{last}");
    // The output is line-buffered; without this the last line would wait for the exit, and `stay` for ever.
    let _ = std::io::stdout().flush();
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
