//! Scripts from files, and the program that serves them.

use std::process::Stdio;

use capsule_fakes::{Provider, Script};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::client::{hi, post};

#[tokio::test]
async fn every_kind_of_step_loads_from_json() {
    let script = json!({
        "exhausted": "repeat_last",
        "allow_non_streaming": true,
        "steps": [
            {"reply": {"blocks": [
                {"text": "whole"},
                {"text": ["a", "b"]},
                {"thinking": {"text": "hmm", "signature": "s"}},
                {"redacted_thinking": "opaque"},
                {"call": {"id": "c", "name": "hello", "input": {}, "pieces": ["{", "}"]}},
                {"call": {"name": "bye", "raw_name": true}},
                {"other": {"start": {"type": "x"}, "deltas": [{"type": "y"}]}},
                {"events": [{"event": "z", "data": "{}"}]},
            ], "stop": "end_turn", "usage": {"input_tokens": 1}, "chunking": {"bytes": 3}}},
            {"fault": {"answer": {"status": 429, "headers": {"retry-after": "1"},
                                  "body": {"error": {"kind": "rate_limit_error", "message": "m"}}}}},
            {"fault": {"close_before_headers": "reset"}},
            {"fault": {"hang_before_headers": {"blocks": [{"text": "late"}]}}},
            {"fault": {"cut": {"reply": {}, "after": {"events": 2}, "close": "end_of_body"}}},
            {"fault": {"stall": {"reply": {}, "after": {"bytes": 2}}}},
            {"fault": {"error_event": {"reply": {}, "after_events": 1,
                                       "error": {"kind": "api_error", "message": "m"}}}},
        ],
    });
    let script = Script::from_json(&script.to_string()).expect("a script");
    let provider = Provider::start(script).await.unwrap();

    let first = post(&provider, &hi()).await;
    let second = post(&provider, &hi()).await;

    assert_eq!(first.joined("text"), "wholeab");
    assert_eq!((second.status, second.header("retry-after")), (429, "1"));
    provider.assert_clean();
    provider.shutdown().await;
}

#[test]
fn an_unknown_key_is_an_error_with_its_place() {
    let error = Script::from_json(r#"{"steps": [{"reply": {"blokcs": []}}]}"#).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("not a script: unknown field `blokcs`"), "{text}");
    assert!(text.contains("line 1 column"), "{text}");
}

#[tokio::test]
async fn a_script_that_http_cannot_carry_does_not_start() {
    let answer = |status: u16, header: &str| {
        json!({"fault": {"answer": {"status": status, "headers": {header: "x"},
                                    "body": {"html": ""}}}})
    };
    for (step, flaw) in [
        (answer(100, "a"), "step 0: not a final status: 100"),
        (answer(200, "a b"), "step 0: not a header: \"a b\": \"x\""),
        (
            json!({"reply": {"content_type": "a\nb"}}),
            "step 0: not a content type: \"a\\nb\"",
        ),
    ] {
        let script = Script::from_json(&json!({"steps": [step]}).to_string()).unwrap();

        let error = Provider::start(script).await.unwrap_err();

        assert_eq!(error.to_string(), flaw);
    }
}

#[tokio::test]
async fn the_program_serves_a_script_until_its_input_ends() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/hello.json");
    let mut program = Command::new(env!("CARGO_BIN_EXE_scripted-provider"))
        .args(["--script", script])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");
    let stdout = program.stdout.take().expect("a pipe");
    let line = BufReader::new(stdout).lines().next_line().await.unwrap();
    let line = line.expect("a line");
    assert!(line.starts_with("listening on http://127.0.0.1:"), "{line}");

    drop(program.stdin.take());
    let output = program.wait_with_output().await.unwrap();

    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "0 model requests\n");
}

/// The script serves a live run of the capsule `hello`, the tape a rehearsal: both must say the same.
#[tokio::test]
async fn the_committed_script_tells_the_story_of_the_capsules_tape() {
    let script = include_str!("../../scripts/hello.json");
    let tape = include_str!("../../../../plugins/capsules/hello/tapes/hello.json");
    let tape: Value = serde_json::from_str(tape).expect("a tape");
    let provider = Provider::start(Script::from_json(script).unwrap()).await.unwrap();
    let mut request = hi();
    request["tools"] = json!([
        {"name": "hello", "input_schema": {"type": "object"}},
        {"name": "read-file", "input_schema": {"type": "object"}},
    ]);

    for entry in tape["entries"].as_array().expect("entries") {
        let chunks = entry["chunks"].as_array().expect("chunks").iter();
        let recorded: String = chunks.map(|chunk| chunk[1].as_str().expect("a text")).collect();
        let served = post(&provider, &request).await;
        assert_eq!(blocks(&served.text), blocks(&recorded));
    }
    provider.assert_clean();
    provider.shutdown().await;
}

/// What a stream says, however it is cut: its blocks, each with its whole text or arguments, and its end.
fn blocks(stream: &str) -> Vec<Value> {
    let mut blocks = Vec::new();
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    for event in data.map(|data| serde_json::from_str::<Value>(data).expect("JSON")) {
        match event["type"].as_str().expect("a type") {
            "content_block_start" => blocks.push((event["content_block"].clone(), String::new())),
            "content_block_delta" => {
                let delta = &event["delta"];
                let piece = delta["text"].as_str().or(delta["partial_json"].as_str());
                blocks.last_mut().expect("a block").1.push_str(piece.expect("a piece"));
            }
            "message_delta" => blocks.push((json!([event["delta"], event["usage"]]), String::new())),
            _ => {}
        }
    }
    let whole = blocks.into_iter().map(|(start, text)| {
        let text = serde_json::from_str(&text).unwrap_or(Value::String(text));
        json!([start, text])
    });
    whole.collect()
}
