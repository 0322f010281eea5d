//! The real `claude` CLI with a server of both generations, and with one of the older alone: the model must be offered the same.

use std::{
    net::SocketAddr,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
};

use capsule_api::{Bytes, Secret, SystemClock, async_trait, http};
use capsule_fakes::{Provider, Reply, Script, claude};
use capsule_mcp::{Generations, McpService, Options};
use capsule_net::{Body, Guard, Handler, Limits};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::mcp_fixture::Fixture;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A service that remembers what it was asked, as version and method.
struct Overheard {
    service: McpService,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

#[async_trait]
impl Handler for Overheard {
    async fn handle(&self, request: http::Request<Bytes>, peer: SocketAddr) -> http::Response<Body> {
        let version = request.headers().get("mcp-protocol-version");
        let version = version.map_or("", |version| version.to_str().unwrap()).to_owned();
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        let method = body["method"].as_str().unwrap_or_default().to_owned();
        self.asked.lock().unwrap().push((version, method));
        self.service.handle(request, peer).await
    }
}

/// What the model was offered and told, and what the server was asked.
struct Seen {
    offered: Value,
    results: Value,
    asked: Vec<(String, String)>,
}

async fn run(cli: &Path, generations: Generations) -> Seen {
    let script = Script::new()
        .then(
            Reply::text("Let me see.")
                .call("call-1", "echo", json!({"a": 41, "text": "Zoë"}))
                .call("call-2", "test_error_handling", json!({})),
        )
        .then(Reply::text("Done."));
    let provider = Provider::start(script).await.unwrap();
    let clock = Arc::new(SystemClock);
    let mut options = Options::new("capsule", "1.2.3");
    options.generations = generations;
    let asked = Arc::new(Mutex::default());
    let handler = Overheard {
        service: McpService::new(Arc::new(Fixture::new()), clock.clone(), options),
        asked: Arc::clone(&asked),
    };
    let guard = Guard::json_post(capsule_mcp::PATH, Secret::new(TOKEN));
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let limits = Limits::default();
    let server = capsule_net::Server::bind(address, guard, limits, clock, Arc::new(handler))
        .await
        .unwrap();
    talk(cli, &server.url(capsule_mcp::PATH), provider.url()).await;
    let requests = provider.requests();
    let last = requests[1].body["messages"].as_array().unwrap().last().unwrap().clone();
    Seen {
        offered: requests[0].body["tools"].clone(),
        results: last["content"].clone(),
        asked: std::mem::take(&mut asked.lock().unwrap()),
    }
}

/// One prompt, to the CLI's end.
async fn talk(cli: &Path, url: &str, endpoint: impl AsRef<str>) {
    let home = tempfile::tempdir().unwrap();
    let server = json!({"type": "http", "url": url, "headers": {"Authorization": format!("Bearer {TOKEN}")}});
    let config = home.path().join("mcp.json");
    std::fs::write(&config, json!({"mcpServers": {"capsule": server}}).to_string()).unwrap();
    let mut command = Command::new(cli);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.path())
        .current_dir(home.path());
    command
        .env("ANTHROPIC_API_KEY", "sk-ant-dummy-0123456789")
        .env("ANTHROPIC_BASE_URL", endpoint.as_ref());
    command
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1");
    command.args([
        "-p",
        "--model",
        "claude-sonnet-4-5",
        "--setting-sources",
        "",
        "--strict-mcp-config",
        "--tools",
        "",
    ]);
    command.args([
        "--allowedTools",
        "mcp__capsule",
        "--permission-mode",
        "dontAsk",
        "--no-session-persistence",
    ]);
    command
        .arg("--mcp-config")
        .arg(config)
        .stdin(Stdio::piped())
        .kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut prompt = child.stdin.take().unwrap();
    prompt.write_all(b"Go.").await.unwrap();
    drop(prompt);
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "Done.");
}

#[tokio::test]
async fn m_10_the_cli_offers_the_same_tools_with_both_generations_as_with_one() {
    let Some(cli) = claude() else { return };
    let (auto, legacy) = (run(&cli, Generations::Auto).await, run(&cli, Generations::Legacy).await);
    assert_eq!(auto.offered.as_array().unwrap().len(), 13, "{}", auto.offered);
    assert_eq!((&auto.offered, &auto.results), (&legacy.offered, &legacy.results));
    let asks = |seen: &Seen, version: &str| {
        let calls = seen
            .asked
            .iter()
            .filter(|(_, method)| method == "tools/call" || method == "tools/list");
        calls.clone().count() > 2 && calls.clone().all(|(said, _)| said == version)
    };
    assert!(asks(&auto, "2026-07-28"), "{:?}", auto.asked);
    assert!(asks(&legacy, "2025-11-25"), "{:?}", legacy.asked);
}
