//! A stand-in for the claude CLI that misbehaves: how, the prompt says; the list is the library's. It has no model.
//!
//! Named `…-old` it is an old version.

use std::{io::BufRead as _, path::Path, process::ExitCode};

use capsule_oracles::{After, Bridge, Dialect, err, named, out, pass_on, play};
use serde_json::{Value, json};

fn main() -> ExitCode {
    pass_on();
    if std::env::args().any(|arg| arg == "--version") {
        let version = if named("-old") { "2.1.197" } else { "2.1.332" };
        out(format_args!("{version} (Claude Code)\n"));
        return ExitCode::SUCCESS;
    }
    let mut lines = std::io::stdin().lock().lines();
    let Some(Ok(line)) = lines.next() else {
        return ExitCode::FAILURE;
    };
    let message: Value = serde_json::from_str(&line).unwrap_or_default();
    let prompt = message["message"]["content"][0]["text"].as_str().unwrap_or_default();
    let after = play(prompt, &dialect());
    match after {
        After::Exit(code) => return code,
        After::Unknown => {
            err(format_args!("no such misbehaviour: {prompt}"));
            return ExitCode::FAILURE;
        }
        After::InputEnd | After::Mark(_) => {}
    }
    lines.for_each(drop);
    after.input_ended();
    ExitCode::SUCCESS
}

/// As the CLI tells it: a login of a subscription is no key.
fn key_source() -> &'static str {
    match std::env::var_os("ANTHROPIC_API_KEY") {
        Some(_) => "ANTHROPIC_API_KEY",
        None => "none",
    }
}

/// The server of the file that the arguments name.
fn bridge() -> Option<Bridge> {
    let file = std::env::args().skip_while(|arg| arg != "--mcp-config").nth(1)?;
    let config: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    Bridge::at(config["mcpServers"]["capsule"]["url"].as_str()?)
}

/// The first event: which tools are there.
fn init(bridge: Option<&Bridge>) -> Value {
    let tools = bridge.and_then(Bridge::tools);
    let status = if tools.is_some() { "connected" } else { "failed" };
    let tools = tools.into_iter().flatten().map(|tool| format!("mcp__capsule__{tool}"));
    let servers: Vec<_> = bridge
        .map(|_| json!({"name": "capsule", "status": status}))
        .into_iter()
        .collect();
    json!({"type": "system", "subtype": "init", "session_id": "s", "tools": tools.collect::<Vec<_>>(), "mcp_servers": servers,
        "model": "fake", "apiKeySource": key_source(), "claude_code_version": "2.1.332"})
}

fn call(id: &str, tool: &str, arguments: &Value) -> [Vec<Value>; 2] {
    let tool = format!("mcp__capsule__{tool}");
    let content = json!([{"type": "tool_use", "id": id, "name": tool, "input": arguments}]);
    let result = json!([{"type": "tool_result", "tool_use_id": id, "content": "worked"}]);
    [
        vec![json!({"type": "assistant", "message": {"id": "m0", "content": content, "stop_reason": "tool_use"}})],
        vec![json!({"type": "user", "message": {"content": result}})],
    ]
}

fn dialect() -> Dialect {
    let stream = |event: Value| json!({"type": "stream_event", "event": event});
    let bridge = bridge();
    let result = |result: Value| {
        let mut event = json!({"num_turns": 1, "subtype": "success"});
        for (key, value) in result.as_object().into_iter().flatten() {
            event[key] = value.clone();
        }
        event["type"] = json!("result");
        event
    };
    let refused = json!({"id": "m2", "model": "<synthetic>", "content": [{"type": "text", "text": "no credit"}]});
    Dialect {
        start: vec![
            init(bridge.as_ref()),
            stream(json!({"type": "message_start", "message": {"id": "m1"}})),
            stream(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
            stream(
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Fine."}}),
            ),
        ],
        end: vec![
            json!({"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "Fine."}]}}),
            stream(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})),
            stream(json!({"type": "message_stop"})),
            result(json!({"is_error": false, "terminal_reason": "completed", "result": "Fine."})),
        ],
        failure: vec![
            json!({"type": "assistant", "error": "billing_error", "is_api_error_message": true, "message": refused}),
            result(json!({"is_error": true, "api_error_status": 400, "result": "no credit"})),
        ],
        unknown: |text| json!({"type": "padding", "text": text}),
        call,
        call_id: "claudecode/toolUseId",
        bridge,
        config: std::env::var_os("CLAUDE_CONFIG_DIR").map(Into::into),
        login: std::env::var_os("CLAUDE_SECURESTORAGE_CONFIG_DIR").map(|place| {
            let renew: fn(&mut Value) = |login| {
                login["claudeAiOauth"]["accessToken"] = json!("sk-ant-oat01-renewed");
                login["claudeAiOauth"]["expiresAt"] = json!(4_102_444_900_000_u64);
            };
            (Path::new(&place).join(".credentials.json"), renew)
        }),
    }
}
