//! A stand-in for the codex CLI that misbehaves: how, the prompt says, or the name that it is started under. It has no model.
//! The list is the library's; of its own it has
//!
//! | prompt | what it does |
//! |---|---|
//! | `own work` | runs a command of its own |
//! | `remark` | a good turn with a remark that means nothing |
//! | `ask and not listen` | asks the host two thousand things, reads none of the answers and sleeps |
//! | `ignored key` | a good turn with the remark that a key of the configuration is ignored |
//!
//! Named `…-old` it is an old version; `…-no-shell-switch` does not know the feature `shell_tool`; `…-no-server` has no app-server;
//! `…-strict` refuses a switch when it starts.

use std::{
    io::{BufRead, Lines, StdinLock},
    path::Path,
    process::ExitCode,
};

use capsule_oracles::{After, Bridge, Dialect, err, named, out, pass_on, play, say};
use serde_json::{Value, json};

fn main() -> ExitCode {
    pass_on();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--version"] => {
            let version = if named("-old") { "0.90.0" } else { "0.171.0" };
            out(format_args!("codex-cli {version}\n"));
        }
        ["features", "list"] => {
            if !named("-no-shell-switch") {
                out(format_args!("shell_tool    stable  true\n"));
            }
            out(format_args!("unified_exec  stable  true\n"));
        }
        ["app-server", "--help"] => {
            if named("-no-server") {
                err(format_args!("error: unrecognized subcommand 'app-server'"));
                return ExitCode::from(2);
            }
            out(format_args!("Options:\n  --stdio  Use stdio\n"));
        }
        _ if named("-strict") => {
            err(format_args!("Error: Unknown feature flag: unified_exec"));
            return ExitCode::FAILURE;
        }
        _ => return serve(),
    }
    ExitCode::SUCCESS
}

/// The handshake, the thread, and the one turn.
fn serve() -> ExitCode {
    let mut lines = std::io::stdin().lock().lines();
    let mut after = After::InputEnd;
    while let Some(message) = next(&mut lines) {
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                bridge().and_then(|bridge| bridge.tools());
                say(&json!({"id": message["id"], "result": {"userAgent": "fake"}}));
            }
            "getAuthStatus" => say(&json!({"id": message["id"], "result": {"authMethod": "chatgpt"}})),
            "thread/start" => {
                say(&json!({"id": message["id"],
                    "result": {"thread": {"id": "t"}, "model": "fake", "modelProvider": "capsule"}}));
            }
            "turn/start" => {
                let prompt = message["params"]["input"][0]["text"].as_str().unwrap_or_default();
                after = turn(prompt);
                if let After::Exit(code) = after {
                    return code;
                }
            }
            _ => {}
        }
    }
    after.input_ended();
    ExitCode::SUCCESS
}

fn next(lines: &mut Lines<StdinLock<'_>>) -> Option<Value> {
    let line = lines.next()?.ok()?;
    Some(serde_json::from_str(&line).unwrap_or_default())
}

fn turn(prompt: &str) -> After {
    let after = play(prompt, &dialect());
    if !matches!(after, After::Unknown) {
        return after;
    }
    let remark = |summary: &str| say(&json!({"method": "configWarning", "params": {"summary": summary}}));
    match prompt {
        "own work" => {
            dialect().start.iter().for_each(say);
            let item = json!({"type": "commandExecution", "id": "c", "command": "id"});
            say(&told("item/started", json!({"turnId": "u", "item": item})));
        }
        "ask and not listen" => {
            dialect().start.iter().for_each(say);
            for n in 0..2000 {
                say(&json!({"id": n, "method": "item/commandExecution/requestApproval", "params": {}}));
            }
            loop {
                std::thread::park();
            }
        }
        "remark" => {
            remark("nothing to worry about");
            play("answer", &dialect());
        }
        "ignored key" => {
            remark("ignoring unrecognized configuration `approval_policy`");
            play("answer", &dialect());
        }
        other => err(format_args!("no such misbehaviour: {other}")),
    }
    After::InputEnd
}

fn told(method: &str, mut params: Value) -> Value {
    params["threadId"] = json!("t");
    json!({"method": method, "params": params})
}

/// The server of the configuration in the arguments.
fn bridge() -> Option<Bridge> {
    let url = std::env::args().find_map(|arg| Some(arg.strip_prefix("mcp_servers.capsule.url=")?.to_owned()))?;
    Bridge::at(url.trim_matches('"'))
}

fn call(id: &str, tool: &str, arguments: &Value) -> [Vec<Value>; 2] {
    let mut item = json!({"type": "mcpToolCall", "id": id, "server": "capsule", "tool": tool, "arguments": arguments});
    let started = told("item/started", json!({"turnId": "u", "item": item}));
    item["result"] = json!({"content": [{"type": "text", "text": "worked"}]});
    let usage = json!({"turnId": "u", "usage": {"inputTokens": 1, "outputTokens": 1}});
    [
        vec![started, told("rawResponse/completed", usage)],
        vec![told("item/completed", json!({"turnId": "u", "item": item}))],
    ]
}

fn dialect() -> Dialect {
    let message = json!({"type": "agentMessage", "id": "m", "text": "Fine."});
    let piece = json!({"turnId": "u", "itemId": "m", "delta": "Fine."});
    let usage = json!({"turnId": "u", "usage": {"inputTokens": 1, "outputTokens": 1}});
    let error = json!({"message": "no", "codexErrorInfo": "usageLimitExceeded"});
    let failed = json!({"turn": {"id": "u", "status": "failed", "error": error}});
    Dialect {
        start: vec![
            told("turn/started", json!({"turn": {"id": "u", "status": "inProgress"}})),
            told("item/agentMessage/delta", piece),
        ],
        end: vec![
            told("item/completed", json!({"turnId": "u", "item": message})),
            told("rawResponse/completed", usage),
            told("turn/completed", json!({"turn": {"id": "u", "status": "completed"}})),
        ],
        failure: vec![told("turn/completed", failed)],
        unknown: |text| json!({"method": "padding", "params": {"text": text}}),
        call,
        call_id: "callId",
        bridge: bridge(),
        config: std::env::var_os("CODEX_HOME").map(Into::into),
        login: std::env::var_os("CODEX_HOME").map(|home| {
            let renew: fn(&mut Value) = |login| {
                login["tokens"]["refresh_token"] = json!("rt-renewed");
                login["last_refresh"] = json!("2026-12-01T00:00:00.5Z");
            };
            (Path::new(&home).join("auth.json"), renew)
        }),
    }
}
