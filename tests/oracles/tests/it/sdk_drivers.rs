//! The official SDKs and each driver's wire format: they understand what the scripted provider streams, and their types accept what our
//! drivers send.

use std::{path::Path, process::Output};

use capsule_api::{
    BuiltDriver, ContentBlock, DriverDescriptor, Message, Registry, Request, Settings, SystemClock, ToolDefinition,
};
use capsule_fakes::{Close, Position, Provider, Reply, Script};
use capsule_transport_kit::services;
use serde_json::{Map, Value, json};
use tokio::process::Command;

use capsule_driver_anthropic as _;
use capsule_driver_ollama as _;
use capsule_driver_openai as _;

const APIS: [&str; 4] = ["anthropic", "openai", "openai-responses", "ollama"];

async fn check(python: &Path, api: &str, mode: &str, what: &str) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/check_requests.py");
    // The environment may name proxies, keys and other endpoints. Nothing is written beside the scripts.
    let mut command = Command::new(python);
    command.env_clear().args(["-I", "-B"]).arg(script);
    command.args(["--api", api, mode, what]);
    command.kill_on_drop(true).output().await.unwrap()
}

#[tokio::test]
async fn each_sdk_understands_thinking_text_and_parallel_calls() {
    let Some(python) = capsule_fakes::python() else { return };
    for api in APIS {
        let first = Reply::new()
            .thinking("Whom to greet first?", "seal")
            .and_text(["Gree", "ting."])
            .call("c1", "hello", json!({"name": "Ada"}))
            .call("c2", "hello", json!({"name": "Zo\u{eb} \u{1f44b}"}));
        let script = Script::new().then(first).then(Reply::text(["All ", "greeted."]));
        let provider = Provider::start(script).await.unwrap();

        let output = check(&python, api, "client", &provider.url()).await;

        assert!(output.status.success(), "{api}: {output:?}");
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!(told, "client: 2 requests, 0 violations\n", "{api}");
        provider.assert_clean();
    }
}

#[tokio::test]
async fn h_02_no_sdk_takes_a_stream_without_its_end_for_an_answer() {
    let Some(python) = capsule_fakes::python() else { return };
    for api in APIS {
        let cut = Reply::text(["half ", "an answer"]).cut(Position::Content, Close::EndOfBody);
        let provider = Provider::start(Script::new().then(cut)).await.unwrap();
        let output = check(&python, api, "client", &provider.url()).await;
        assert_eq!(output.status.code(), Some(1), "{api}: {output:?}");
    }
}

#[tokio::test]
async fn the_types_of_each_sdk_accept_what_our_driver_sends() {
    let Some(python) = capsule_fakes::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    for api in APIS {
        let file = folder.path().join(format!("{api}.json"));
        let parameter = match api {
            "anthropic" => ("stop_sequences".to_owned(), json!(["END"])),
            _ => ("temperature".to_owned(), json!(0.5)),
        };
        let bodies = [body(api, &Map::new()), body(api, &Map::from_iter([parameter]))];
        std::fs::write(&file, Value::from(bodies.to_vec()).to_string()).unwrap();
        let output = check(&python, api, "bodies", file.to_str().unwrap()).await;
        assert!(output.status.success(), "{api}: {output:?}");
    }
}

#[tokio::test]
async fn a_key_that_an_sdk_does_not_know_is_found() {
    let Some(python) = capsule_fakes::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    for api in APIS {
        let file = folder.path().join(format!("{api}.json"));
        let mut body = body(api, &Map::new());
        body["no_such_key"] = json!(1);
        std::fs::write(&file, body.to_string()).unwrap();
        let output = check(&python, api, "bodies", file.to_str().unwrap()).await;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(1) && told.contains("no_such_key"),
            "{api}: {output:?}"
        );
    }
}

/// The body that a driver makes of a conversation with everything in it.
fn body(driver: &str, params: &Map<String, Value>) -> Value {
    let descriptor = Registry::<DriverDescriptor>::linked().unwrap().get(driver).unwrap();
    let mut values = Map::new();
    if driver != "ollama" {
        values.insert("api_key".to_owned(), json!("sk-dummy"));
    }
    let settings = Settings::new(values, &(descriptor.settings_schema)(), ".");
    let BuiltDriver::Wire(wire) = (descriptor.build)(settings, &services(SystemClock)).unwrap() else {
        panic!("{driver} has a wire");
    };
    let request = wire.encode(&conversation(params.clone(), driver)).unwrap();
    serde_json::from_slice(request.body()).unwrap()
}

fn conversation(params: Map<String, Value>, driver: &str) -> Request {
    let text = |text: &str| vec![ContentBlock::text(text)];
    let call = |id: &str| ContentBlock::ToolCall {
        id: id.to_owned(),
        name: "demo__greet".to_owned(),
        input: json!({"name": "Ada", "deep": {"list": [1, null]}}),
    };
    let result = |id: &str, is_error| Message::Tool {
        tool_call_id: id.to_owned(),
        is_error,
        content: text("Hello, Ada!"),
    };
    // The seal of reasoning is the item itself where the provider takes items back.
    let item = json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "seal"});
    let signature = if driver == "openai-responses" {
        item.to_string()
    } else {
        "seal".to_owned()
    };
    // Text in the open is known to compatible endpoints of Chat Completions, not to OpenAI's SDK.
    let thinking = (driver != "openai").then(|| ContentBlock::Thinking {
        text: "Let me see.".to_owned(),
        signature: Some(signature),
        redacted: None,
    });
    let said = [ContentBlock::text("I will."), call("a"), call("b")];
    Request {
        model: "a-model".to_owned(),
        max_tokens: 100,
        system: Some("Be brief.".to_owned()),
        messages: vec![
            Message::User {
                content: text("Greet Ada, twice."),
            },
            Message::Assistant {
                content: thinking.into_iter().chain(said).collect(),
            },
            result("a", false),
            result("b", true),
            Message::User { content: text("And?") },
        ],
        tools: vec![ToolDefinition {
            name: "demo__greet".to_owned(),
            description: Some("Greets.".to_owned()),
            parameters: json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}),
        }],
        params,
        continuation_id: None,
    }
}
