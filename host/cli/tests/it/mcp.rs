//! `capsule mcp`: the tools of a capsule for any client of MCP.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Child,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Ran, Sandbox, lines, mode};

fn request(id: i32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: i32, name: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": name, "arguments": arguments}))
}

/// The answers to these messages on a pipe, by the ids of their requests.
fn told(sandbox: &Sandbox, messages: &[Value]) -> Vec<Value> {
    let input: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let mut answers = lines(&sandbox.pipe(&["mcp", "hello"], &input).code(0).out);
    answers.sort_by_key(|answer| answer["id"].as_i64());
    answers
}

fn text(answer: &Value) -> (&str, bool) {
    let result = &answer["result"];
    (
        result["content"][0]["text"].as_str().unwrap_or_default(),
        result["isError"].as_bool().unwrap(),
    )
}

#[test]
fn a_client_on_a_pipe_gets_the_catalogue_and_the_sandbox() {
    let sandbox = Sandbox::new().with_hello();
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let answers = told(
        &sandbox,
        &[
            request(1, "initialize", hello),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            request(2, "tools/list", json!({})),
            call(3, "hello", json!({"name": "Ada"})),
            call(4, "read-file", json!({"path": "/etc/passwd"})),
            call(5, "hello", json!({"nobody": 1})),
        ],
    );
    let info = json!({"name": "hello", "version": "0.1.0"});
    let begun = &answers[0]["result"];
    assert_eq!(
        (&begun["protocolVersion"], &begun["serverInfo"]),
        (&json!("2025-06-18"), &info)
    );
    let tools = answers[1]["result"]["tools"].as_array().unwrap().iter();
    let names: Vec<_> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hello", "read-file"]);
    assert_eq!(text(&answers[2]), ("Hello, Ada!", false));
    let (words, is_error) = text(&answers[3]);
    assert!(is_error && words.contains("no grant covers '/etc/passwd'"), "{words}");
    let (words, is_error) = text(&answers[4]);
    assert!(is_error && words.contains("name"), "{words}");
}

#[test]
fn a_capsule_that_is_not_there_is_told_before_anything_is_served() {
    let ran = Sandbox::new().pipe(&["mcp", "nowhere"], "").code(2);
    assert_eq!(ran.out, "");
    Sandbox::new()
        .run(&["mcp", ".", "--port", "1"])
        .code(2)
        .says(&["--http"]);
}

/// A server on HTTP.
pub(crate) struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    pub(crate) fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut child = sandbox.spawn(arguments);
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut url)
            .unwrap();
        let address = url
            .trim()
            .trim_start_matches("http://")
            .trim_end_matches("/mcp")
            .to_owned();
        assert!(address.starts_with("127.0.0.1:"), "{url}");
        Self { child, address }
    }

    pub(crate) fn port(&self) -> &str {
        self.address.trim_start_matches("127.0.0.1:")
    }

    fn post(&self, token: &str, message: &Value) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = message.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // Without the token it is refused by its head, and may be gone by now.
        let _ = stream.write_all(body.as_bytes());
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    pub(crate) fn end(mut self, signal: Signal) -> Ran {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let code = self.child.wait().unwrap().code().unwrap();
        Ran { code, out, err }
    }
}

#[test]
fn clients_on_http_need_the_token_which_is_in_its_file_alone() {
    let sandbox = Sandbox::new().with_hello();
    let serving = Serving::start(&sandbox, &["mcp", "hello", "--http"]);
    let file = sandbox.path("state/capsule/hello/mcp-token");
    let token = fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!((token.len(), mode(&file)), (64, 0o600));
    let (status, body) = serving.post(&token, &call(1, "hello", json!({"name": "Ada"})));
    assert_eq!(status, 200);
    assert_eq!(text(&serde_json::from_str(&body).unwrap()), ("Hello, Ada!", false));
    assert_eq!(serving.post("wrong", &call(1, "hello", json!({}))).0, 401);
    let ran = serving
        .end(Signal::INT)
        .code(130)
        .says(&["mcp-token", "Ctrl-C ends the server"]);
    assert!(!ran.err.contains(&token), "{}", ran.err);
    // The next server has the same token, so that clients go on.
    let again = Serving::start(&sandbox, &["mcp", "hello", "--http"]);
    assert_eq!(again.post(&token, &request(1, "ping", json!({}))).0, 200);
    again.end(Signal::TERM).code(143);
}

#[test]
fn a_token_file_of_ones_own_must_be_private() {
    let sandbox = Sandbox::new().with_hello();
    let file = sandbox.write("token", "my-own-token-0123456789abcdef");
    let arguments = ["mcp", "hello", "--http", "--token-file", "token"];
    sandbox
        .run(&arguments)
        .code(2)
        .says(&["can be read by others", "chmod 600"]);
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let serving = Serving::start(&sandbox, &arguments);
    assert_eq!(
        serving
            .post("my-own-token-0123456789abcdef", &request(1, "ping", json!({})))
            .0,
        200
    );
    serving.end(Signal::TERM).code(143);
}
