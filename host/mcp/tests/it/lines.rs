//! The same service over a pair of pipes.

use std::{sync::Arc, time::Duration};

use capsule_api::{CallId, SystemClock};
use capsule_mcp::{LONGEST_LINE, McpService, Options, serve_lines};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines},
    sync::mpsc,
    task::JoinHandle,
};

use crate::{
    peer::{complete, error, options, result, with_meta},
    tools::Tools,
};

struct Pipes {
    tools: Arc<Tools>,
    drops: mpsc::UnboundedReceiver<CallId>,
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Pipes {
    fn new(options: Options) -> Self {
        Self::with_grace(options, Duration::from_secs(3600))
    }

    fn with_grace(options: Options, grace: Duration) -> Self {
        let (tools, drops) = Tools::new();
        let service = McpService::new(tools.clone(), Arc::new(SystemClock), options);
        let (input, theirs) = tokio::io::duplex(64 << 10);
        let (output, ours) = tokio::io::duplex(64 << 10);
        let server = tokio::spawn(serve_lines(service, theirs, ours, grace));
        let output = BufReader::new(output).lines();
        Self {
            tools,
            drops,
            input,
            output,
            server,
        }
    }

    async fn say(&mut self, message: impl ToString) {
        let line = message.to_string() + "\n";
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = self.output.next_line().await.unwrap();
        serde_json::from_str(&line.expect("the server ended")).unwrap()
    }

    async fn ask(&mut self, message: impl ToString) -> Value {
        self.say(message).await;
        self.hear().await
    }
}

fn request(id: i32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[tokio::test]
async fn both_generations_are_served() {
    let mut pipes = Pipes::new(options());
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let answer = pipes.ask(request(1, "initialize", hello)).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    pipes
        .say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    assert_eq!(pipes.ask(request(2, "ping", json!({}))).await["result"], json!({}));
    let tools = pipes.ask(request(3, "tools/list", json!({}))).await["result"]["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 4);
    // There are no headers here that could differ from the body.
    let call = with_meta(json!({"name": "echo_", "arguments": {"a": 1}}), "2026-07-28");
    let answer = pipes.ask(request(4, "tools/call", call)).await;
    assert_eq!(answer, complete(result(json!(4), r#"{"a":1}"#, false)));
    let old = with_meta(json!({}), "1900-01-01");
    assert_eq!(pipes.ask(request(5, "tools/list", old)).await["error"]["code"], -32022);
}

#[tokio::test]
async fn progress_comes_before_the_result() {
    let mut pipes = Pipes::new(options());
    let call = json!({"name": "steps", "_meta": {"progressToken": "p"}});
    pipes.say(request(1, "tools/call", call)).await;
    let mut figures = Vec::new();
    for _ in 0..3 {
        figures.push(pipes.hear().await["params"]["progress"].as_f64().unwrap());
    }
    assert_eq!(figures, [0.001, 50.0, 100.0]);
    assert_eq!(pipes.hear().await, result(json!(1), "done", false));
}

#[tokio::test]
async fn m_09_a_cancel_that_follows_its_call_at_once_stops_it_and_others_go_on() {
    let mut pipes = Pipes::new(options());
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let both = format!("{}\n{cancel}", request(1, "tools/call", json!({"name": "wait"})));
    pipes.say(both).await;
    let words = "tool 'wait' failed: the call was cancelled";
    assert_eq!(pipes.hear().await, result(json!(1), words, true));
    // A call that waits keeps nobody else waiting.
    pipes.say(request(2, "tools/call", json!({"name": "wait"}))).await;
    assert_eq!(pipes.ask(request(3, "ping", json!({}))).await["id"], 3);
    pipes.tools.go.add_permits(1);
    assert_eq!(pipes.hear().await, result(json!(2), "gone", false));
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_the_next_line_read() {
    let mut pipes = Pipes::new(options());
    assert_eq!(pipes.ask("{oops").await["error"]["code"], -32700);
    assert_eq!(pipes.ask("\n  \n\u{fffd}").await["error"]["code"], -32700);
    assert_eq!(
        pipes.ask("[]").await,
        error(Value::Null, -32600, "batches are not served")
    );
    assert_eq!(pipes.ask(request(1, "x", json!({}))).await["error"]["code"], -32601);
    assert_eq!(pipes.ask(request(2, "ping", json!({}))).await["id"], 2);
}

#[tokio::test]
async fn m_13_a_line_without_end_is_not_kept() {
    let mut pipes = Pipes::new(options());
    let piece = "x".repeat(1 << 20);
    for _ in 0..=LONGEST_LINE >> 20 {
        pipes.input.write_all(piece.as_bytes()).await.unwrap();
    }
    let expected = error(Value::Null, -32700, "a line has more than 4194304 bytes");
    assert_eq!(pipes.ask("").await, expected);
    assert_eq!(pipes.ask(request(2, "ping", json!({}))).await["id"], 2);
}

#[tokio::test]
async fn too_many_requests_at_once_are_refused_and_cancels_still_heard() {
    let mut pipes = Pipes::new(options());
    for id in 0..256 {
        pipes.say(request(id, "tools/call", json!({"name": "wait"}))).await;
    }
    let expected = error(json!(256), -32000, "256 requests are under way");
    assert_eq!(pipes.ask(request(256, "ping", json!({}))).await, expected);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(pipes.ask(cancel).await["id"], 7);
}

#[tokio::test]
async fn the_end_of_the_input_lets_calls_end() {
    let mut pipes = Pipes::new(options());
    // The last line needs no end of its own.
    let last = request(1, "tools/call", json!({"name": "wait"})).to_string();
    pipes.input.write_all(last.as_bytes()).await.unwrap();
    pipes.input.shutdown().await.unwrap();
    pipes.tools.started(1).await;
    pipes.tools.go.add_permits(1);
    assert_eq!(pipes.hear().await, result(json!(1), "gone", false));
    assert!(pipes.server.await.unwrap().is_ok());
    assert_eq!(pipes.output.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn the_end_of_the_input_stops_calls_that_do_not_end() {
    let mut pipes = Pipes::with_grace(options(), Duration::from_millis(1));
    pipes.say(request(1, "tools/call", json!({"name": "wait"}))).await;
    pipes.tools.started(1).await;
    pipes.input.shutdown().await.unwrap();
    assert!(pipes.server.await.unwrap().is_ok());
    assert_eq!(pipes.drops.recv().await.unwrap().as_str(), "mcp-1");
}

#[tokio::test]
async fn an_output_that_nobody_reads_any_more_ends_the_server_and_its_calls() {
    let mut pipes = Pipes::new(options());
    pipes.say(request(1, "tools/call", json!({"name": "wait"}))).await;
    pipes.tools.started(1).await;
    drop(pipes.output);
    let ping = request(2, "ping", json!({})).to_string() + "\n";
    pipes.input.write_all(ping.as_bytes()).await.unwrap();
    let error = pipes.server.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    assert_eq!(pipes.drops.recv().await.unwrap().as_str(), "mcp-1");
}
