use std::{fs, path::Path, sync::Arc, time::Duration};

use capsule_api::*;
use capsule_session::{Capture, Task, TraceWriter};
use serde_json::{Value, json};

use crate::support::{OneSecret, agent, place};

/// A run with a call, a retraction and a retry, traced to `path`; every line without its time and task.
async fn traced(path: &Path, capture: Capture) -> Result<Vec<Value>, Error> {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(|_, io| async move {
        let block = io.events.block();
        io.events.emit(Event::RequestStarted { n: 1 });
        io.events.emit(Event::Delta {
            block,
            kind: BlockKind::Text,
            text: "hal".into(),
        });
        io.events.emit(Event::Retracted { block });
        let after = Duration::from_millis(1500);
        io.events.emit(Event::Retrying {
            attempt: 1,
            after,
            cause: ErrorKind::Overloaded,
        });
        let arguments = json!({"path": "secrets/a", "key": "hunter2-hunter2"});
        io.events.emit(Event::Call {
            call: CallId::new("c1"),
            name: "mirror".into(),
            arguments: arguments.clone(),
        });
        io.tools
            .call(ToolCall::new(CallId::new("c1"), "mirror", arguments))
            .await;
        io.events.emit(Event::RequestEnded {
            n: 1,
            stop: "end_turn".into(),
        });
        Ok(Outcome::Completed { text: "done".into() })
    });
    let task = Task::new(&agent.services);
    let writer = TraceWriter::create(path)?;
    let secrets = Arc::new(OneSecret("hunter2-hunter2"));
    let following = tokio::spawn(writer.follow(task.log.reader(), task.log.task().into(), capture, secrets));
    agent.run(&task, Input::text("go"), place(dir.path(), &task)).await;
    following.await.unwrap()?;
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    Ok(lines
        .map(|mut line| {
            assert_eq!(line["task"], task.log.task());
            let map = line.as_object_mut().unwrap();
            map.remove("ts");
            map.remove("task");
            line
        })
        .collect())
}

#[tokio::test]
async fn a_trace_with_content_has_everything_but_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let lines = traced(&dir.path().join("trace.jsonl"), Capture::Content).await.unwrap();
    let arguments = json!({"path": "secrets/a", "key": "[redacted]"});
    let result = json!({"path": "secrets/a", "key": "[redacted]"}).to_string();
    let expected = json!([
        {"v": 1, "seq": 1, "kind": "run_start", "capsule": "notes", "capsule_version": "0.1.0", "transport": "scripted", "input": ["go"]},
        {"v": 1, "seq": 2, "kind": "state", "state": "working"},
        {"v": 1, "seq": 3, "kind": "request_start", "n": 1},
        {"v": 1, "seq": 5, "kind": "retracted", "block": 0},
        {"v": 1, "seq": 6, "kind": "retry", "attempt": 1, "after_ms": 1500, "cause": "overloaded"},
        {"v": 1, "seq": 7, "kind": "call", "call": "c1", "name": "mirror", "arguments": arguments},
        {"v": 1, "seq": 8, "kind": "call_start", "call": "c1", "name": "mirror", "arguments": arguments},
        {"v": 1, "seq": 9, "kind": "call_end", "call": "c1", "name": "mirror", "status": "denied", "ms": 3, "denied": true, "result": [result]},
        {"v": 1, "seq": 10, "kind": "request_end", "n": 1, "stop": "end_turn"},
        {"v": 1, "seq": 11, "kind": "state", "state": "completed"},
        {"v": 1, "seq": 12, "kind": "run_end", "outcome": {"is": "completed", "text": "done"}, "scratch": {"files": 1, "bytes": 21}},
    ]);
    assert_eq!(Value::Array(lines), expected);
}

#[tokio::test]
async fn a_summary_has_sizes_and_hashes_in_the_place_of_texts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.jsonl");
    let lines = traced(&path, Capture::Summary).await.unwrap();
    let end = lines.last().unwrap();
    let sha256 = "a4c3ed04a95a3da14a9d235c83d868bed7c0f45cf7f3faa751ee8f50598d2211";
    assert_eq!(
        end["outcome"],
        json!({"is": "completed", "text": {"bytes": 4, "sha256": sha256}})
    );
    let text = fs::read_to_string(&path).unwrap();
    for said in ["\"go\"", "done\"", "secrets/a", "hunter2"] {
        assert!(!text.contains(said), "{said} is in {text}");
    }
}

#[tokio::test]
async fn a_full_disk_is_an_error_of_the_trace_and_of_nothing_else() {
    let error = traced(Path::new("/dev/full"), Capture::Content).await.unwrap_err();
    assert_eq!(error.code, "session-trace");
    assert!(error.message.contains("No space left on device"), "{}", error.message);
}

#[tokio::test]
async fn a_trace_that_cannot_be_made_says_where_and_why() {
    let error = TraceWriter::create(Path::new("/proc/nowhere/trace.jsonl")).unwrap_err();
    assert_eq!(error.code, "session-trace");
    assert!(
        error
            .message
            .starts_with("cannot write the trace /proc/nowhere/trace.jsonl: "),
        "{}",
        error.message
    );
}

#[test]
fn a_secret_that_looks_like_a_word_of_the_trace_damages_no_record() {
    let record = json!({"v": 1, "kind": "usage", "output": 5, "state": "output", "arguments": {"output": "the output"}, "text": "output"});
    let expected = json!({"v": 1, "kind": "usage", "output": 5, "state": "output", "arguments": {"[redacted]": "the [redacted]"}, "text": "[redacted]"});
    assert_eq!(capsule_session::redacted(record, &OneSecret("output")), expected);
}
