//! The official SDK as a client of the scripted provider: what the provider streams is what the SDK understands.

use std::path::Path;

use capsule_fakes::{Provider, Reply, Script};
use serde_json::json;
use tokio::process::Command;

async fn client(python: &Path, provider: &Provider) -> std::process::Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/check_requests.py");
    // The environment may name proxies, keys and other endpoints.
    let mut command = Command::new(python);
    command
        .env_clear()
        .arg("-I")
        .arg(script)
        .arg("client")
        .arg(provider.url());
    command.kill_on_drop(true).output().await.unwrap()
}

#[tokio::test]
async fn the_sdk_understands_streams_with_thinking_text_and_parallel_calls() {
    let Some(python) = capsule_fakes::python() else { return };
    let first = Reply::new()
        .thinking("Whom to greet first?", "seal")
        .and_text(["Gree", "ting."])
        .call("toolu_1", "hello", json!({"name": "Ada"}))
        .call("toolu_2", "hello", json!({"name": "Zo\u{eb} \u{1f44b}"}));
    let script = Script::new().then(first).then(Reply::text(["All ", "greeted."]));
    let provider = Provider::start(script).await.unwrap();

    let output = client(&python, &provider).await;

    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "client: 2 requests, 0 violations\n"
    );
    provider.assert_clean();
}

#[tokio::test]
async fn the_sdk_does_not_take_a_cut_stream_for_an_answer() {
    let Some(python) = capsule_fakes::python() else { return };
    let cut =
        Reply::text(["half ", "an answer"]).cut(capsule_fakes::Position::Events(4), capsule_fakes::Close::EndOfBody);
    let provider = Provider::start(Script::new().then(cut)).await.unwrap();
    let output = client(&python, &provider).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
