//! The generation without a handshake.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use capsule_mcp::{Client, Listed};
use serde_json::{Value, json};

use crate::peer::{Peer, complete, error, options, result, with_meta};

const SUPPORTED: [&str; 5] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

fn refused(code: i64, message: &str) -> (u16, Value) {
    (400, error(json!(1), code, message))
}

#[tokio::test]
async fn m_10_a_probe_finds_both_generations() {
    let mut with = options();
    with.instructions = Some("Use the tools.".into());
    let peer = Peer::new(with).await;
    let expected = json!({"jsonrpc": "2.0", "id": 1, "result": {
        "supportedVersions": SUPPORTED, "capabilities": {"tools": {}}, "instructions": "Use the tools.",
        "ttlMs": 0, "cacheScope": "private"}});
    assert_eq!(
        peer.modern("server/discover", json!({})).await,
        (200, complete(expected))
    );
    // And the other one goes on beside it.
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(
        peer.post(ping).await,
        (200, json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
    );
}

#[tokio::test]
async fn the_list_must_not_be_kept_and_is_remembered_with_who_asked() {
    let peer = Peer::new(options()).await;
    let legacy = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let (_, mut expected) = peer.post(legacy).await;
    let listed = peer.service.listed();
    expected["result"]["ttlMs"] = json!(0);
    expected["result"]["cacheScope"] = json!("private");
    assert_eq!(peer.modern("tools/list", json!({})).await, (200, complete(expected)));
    let expected = Listed {
        client: Client {
            name: "a-cli".into(),
            version: "9.8".into(),
        },
        tools: ["wait", "echo_", "steps", "fail"].map(String::from).into(),
    };
    assert_eq!(*listed.borrow(), Some(expected));
}

#[tokio::test]
async fn a_call_runs_like_any_other() {
    let peer = Peer::new(options()).await;
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let echoed = peer.modern("tools/call", call("echo_", json!({"a": 1}))).await;
    assert_eq!(echoed, (200, complete(result(json!(1), r#"{"a":1}"#, false))));
    let failed = peer.modern("tools/call", call("fail", json!({}))).await;
    assert_eq!(
        failed,
        (200, complete(result(json!(1), "tool 'fail' failed: no luck", true)))
    );
    let unknown = peer.modern("tools/call", call("nope", json!({}))).await;
    let words = "tool 'nope' failed: there is no such tool";
    assert_eq!(unknown, (200, complete(result(json!(1), words, true))));
}

#[tokio::test]
async fn m_10_a_header_that_differs_from_the_body_is_refused_before_the_tool_runs() {
    let peer = Peer::new(options()).await;
    let call = json!({"name": "fail", "arguments": {}});
    let other = "does not say what the body says";
    let cases = [
        ("mcp-protocol-version", "2025-11-25", other),
        ("mcp-protocol-version", "", "is missing"),
        ("mcp-method", "tools/list", other),
        ("mcp-method", "TOOLS/CALL", other),
        ("mcp-method", "", "is missing"),
        ("mcp-name", "echo_", other),
        ("mcp-name", "", "is missing"),
        ("mcp-name", "=?base64?!?=", "cannot be read"),
    ];
    for (name, value, what) in cases {
        let answer = peer.modern_with("tools/call", call.clone(), &[(name, value)]).await;
        assert_eq!(
            answer,
            refused(-32020, &format!("the header `{name}` {what}")),
            "{name}: {value}"
        );
    }
    let twice = [("mcp-name", "fail"), ("mcp-name", "echo_")];
    let answer = peer.modern_with("tools/call", call.clone(), &twice).await;
    assert_eq!(answer, refused(-32020, "the header `mcp-name` is there more than once"));
    assert_eq!(peer.tools.seen(), []);
    // Names may be wrapped, and are compared as what they mean.
    let wrapped = [("mcp-name", "=?base64?ZmFpbA==?=")];
    assert_eq!(peer.modern_with("tools/call", call, &wrapped).await.0, 200);
}

#[tokio::test]
async fn m_10_a_version_that_is_not_served_is_answered_with_those_that_are() {
    let peer = Peer::new(options()).await;
    for version in ["2027-01-01", "v999.0.0", "2025-11-25"] {
        let params = with_meta(json!({}), version);
        let answer = peer
            .modern_with("server/discover", params, &[("mcp-protocol-version", version)])
            .await;
        let mut expected = error(json!(1), -32022, &format!("version `{version}` is not served"));
        expected["error"]["data"] = json!({"supported": SUPPORTED, "requested": version});
        assert_eq!(answer, (400, expected));
    }
}

#[tokio::test]
async fn m_10_what_a_request_must_say_of_itself_is_named_where_it_is_missing() {
    let peer = Peer::new(options()).await;
    let (version, able) = (
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
    );
    let cases = [
        (json!(null), "_meta".to_owned()),
        (json!([]), "_meta".to_owned()),
        (json!({ able: {} }), format!("_meta[\"{version}\"]")),
        (json!({ version: 7, able: {} }), format!("_meta[\"{version}\"]")),
        (json!({ version: "2026-07-28" }), format!("_meta[\"{able}\"]")),
        (json!({ version: "2026-07-28", able: [] }), format!("_meta[\"{able}\"]")),
    ];
    for (meta, missing) in cases {
        let answer = peer.modern("server/discover", json!({"_meta": meta})).await;
        assert_eq!(
            answer,
            refused(-32602, &format!("`params.{missing}` is missing")),
            "{meta}"
        );
    }
    // Who the client is need not be said.
    let anonymous = json!({"_meta": {version: "2026-07-28", able: {}}});
    assert_eq!(peer.modern("tools/list", anonymous).await.0, 200);
    assert_eq!(
        peer.service.listed().borrow().as_ref().unwrap().client,
        Client::default()
    );
}

#[tokio::test]
async fn m_10_what_there_is_not_is_404_also_what_the_other_generation_has() {
    let peer = Peer::new(options()).await;
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/list",
        "subscriptions/listen",
        "x",
    ] {
        let expected = error(json!(1), -32601, &format!("there is no method `{method}`"));
        assert_eq!(peer.modern(method, json!({})).await, (404, expected));
    }
}

#[tokio::test]
async fn m_10_an_ability_that_a_tool_needs_is_asked_for_before_it_runs() {
    let mut with = options();
    with.tool_needs = Some(Arc::new(|tool| {
        if tool.name == "fail" {
            &["sampling", "roots"]
        } else {
            &[]
        }
    }));
    let peer = Peer::new(with).await;
    let mut params = with_meta(json!({"name": "fail"}), "2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"roots": {}});
    let message = "the tool `fail` needs abilities that the client did not declare";
    let mut expected = error(json!(1), -32021, message);
    expected["error"]["data"] = json!({"requiredCapabilities": {"sampling": {}}});
    assert_eq!(peer.modern("tools/call", params.clone()).await, (400, expected));
    assert_eq!(peer.tools.seen(), []);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"roots": {}, "sampling": {}});
    assert_eq!(peer.modern("tools/call", params).await.0, 200);
}

#[tokio::test]
async fn answers_to_what_was_never_asked_are_refused_before_the_tool_runs() {
    let peer = Peer::new(options()).await;
    for (key, value) in [
        ("inputResponses", json!({})),
        ("inputResponses", json!(null)),
        ("requestState", json!("x")),
    ] {
        let answer = peer.modern("tools/call", json!({"name": "fail", key: value})).await;
        assert_eq!(
            answer,
            refused(-32602, &format!("`params.{key}` answers nothing that was asked"))
        );
    }
    assert_eq!(peer.tools.seen(), []);
}

#[tokio::test]
async fn a_trace_context_is_passed_on_here_too() {
    let peer = Peer::new(options()).await;
    let context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut params = with_meta(json!({"name": "fail"}), "2026-07-28");
    params["_meta"]["traceparent"] = json!(context);
    peer.modern("tools/call", params).await;
    let seen = peer.tools.seen.lock().unwrap()[0].traceparent.clone();
    assert_eq!(seen.as_deref(), Some(context));
}

#[tokio::test]
async fn m_09_closing_the_response_stream_stops_the_call() {
    let mut with = options();
    with.progress_every = Duration::from_millis(1);
    let mut peer = Peer::new(with).await;
    let params = with_meta(json!({"name": "wait", "arguments": {}}), "2026-07-28");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = peer
        .request()
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "wait");
    let response = peer.send(request.body(Bytes::from(body.to_string())).unwrap()).await;
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(
        (header("content-type"), header("x-accel-buffering")),
        ("text/event-stream".into(), "no".into())
    );
    drop(response);
    assert_eq!(peer.drops.recv().await.unwrap().as_str(), "mcp-1");
}
