//! From the first probe to the list of tools.

use std::sync::Arc;

use bytes::Bytes;
use capsule_mcp::{Client, Generations, Listed};
use http::Method;
use serde_json::{Value, json};

use crate::peer::{Peer, error, options, read};

fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "a-cli", "version": "9.8"}}})
}

#[tokio::test]
async fn m_10_a_client_that_probes_the_other_generation_falls_back() {
    let mut with = options();
    with.generations = Generations::Legacy;
    let peer = Peer::new(with).await;
    let probe = json!({"jsonrpc": "2.0", "id": "server-discover-probe-1", "method": "server/discover", "params": {}});
    let request = peer
        .request()
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "server/discover")
        .body(Bytes::from(probe.to_string()))
        .unwrap();
    let answer = read(peer.send(request).await).await;
    let none = error(
        json!("server-discover-probe-1"),
        -32601,
        "there is no method `server/discover`",
    );
    assert_eq!(answer, (200, none));

    let (status, answer) = peer.post(initialize("2025-11-25")).await;
    let expected = json!({"jsonrpc": "2.0", "id": 0, "result": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "capsule", "version": "1.2.3"}}});
    assert_eq!((status, answer), (200, expected));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(peer.post(initialized).await, (202, Value::Null));
    let mut get = peer.request().body(Bytes::new()).unwrap();
    *get.method_mut() = Method::GET;
    let response = peer.send(get).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["allow"]),
        (405, &"POST".parse().unwrap())
    );
}

#[tokio::test]
async fn a_known_version_is_echoed_and_a_stranger_gets_the_newest() {
    let mut with = options();
    with.instructions = Some("Use the tools.".into());
    let peer = Peer::new(with).await;
    for (asked, answered) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("1900-01-01", "2025-11-25"),
    ] {
        let request = peer.request().body(Bytes::from(initialize(asked).to_string())).unwrap();
        let response = peer.send(request).await;
        assert!(!response.headers().contains_key("mcp-session-id"));
        let (_, answer) = read(response).await;
        assert_eq!(answer["result"]["protocolVersion"], answered, "{asked}");
        assert_eq!(answer["result"]["instructions"], "Use the tools.");
    }
}

#[tokio::test]
async fn unknown_methods_keep_the_type_of_the_id() {
    let peer = Peer::new(options()).await;
    for id in [json!("7"), json!(7), json!(-1), json!(1.5), json!("")] {
        for method in ["resources/list", "tools/calls", "logging/setLevel"] {
            let answer = peer.post(json!({"jsonrpc": "2.0", "id": id, "method": method})).await;
            let expected = error(id.clone(), -32601, &format!("there is no method `{method}`"));
            assert_eq!(answer, (200, expected));
        }
    }
    let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
    assert_eq!(
        peer.post(ping).await,
        (200, json!({"jsonrpc": "2.0", "id": "p", "result": {}}))
    );
}

#[tokio::test]
async fn m_12_the_list_is_the_catalogue_with_its_hints_and_is_remembered() {
    let mut with = options();
    with.tool_meta = Some(Arc::new(|tool| {
        (tool.name == "wait").then(|| json!({"vendor/limit": 500_000}))
    }));
    let peer = Peer::new(with).await;
    let listed = peer.service.listed();
    assert_eq!(*listed.borrow(), None);
    peer.post(initialize("2025-06-18")).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"progressToken": 0}}});
    let (status, answer) = peer.post(list).await;
    let tool = |alias: &str, name: &str, read_only: bool| {
        json!({"name": alias, "description": format!("the tool {name}"), "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": read_only}})
    };
    let mut wait = tool("wait", "wait", false);
    wait["_meta"] = json!({"vendor/limit": 500_000});
    let tools = [
        wait,
        tool("echo_", "echo.tool", true),
        tool("steps", "steps", true),
        tool("fail", "fail", false),
    ];
    assert_eq!(
        (status, answer),
        (200, json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}))
    );
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
async fn the_version_header_may_be_missing_but_not_unknown() {
    let peer = Peer::new(options()).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for (version, status) in [
        ("2025-06-18", 200),
        ("2024-11-05", 200),
        ("2026-07-28", 400),
        ("nonsense", 400),
    ] {
        let request = peer.request().header("mcp-protocol-version", version);
        let answer = read(peer.send(request.body(Bytes::from(ping.to_string())).unwrap()).await).await;
        assert_eq!(answer.0, status, "{version}: {}", answer.1);
    }
    assert_eq!(peer.post(ping).await.0, 200);
}

#[tokio::test]
async fn what_is_no_message_is_refused_with_its_code() {
    let peer = Peer::new(options()).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let cases = [
        (json!([ping, ping]).to_string(), Value::Null, -32600),
        ("[]".into(), Value::Null, -32600),
        ("{oops".into(), Value::Null, -32700),
        (String::new(), Value::Null, -32700),
        ("[".repeat(100_000), Value::Null, -32700),
        ("7".into(), Value::Null, -32600),
        (json!({"jsonrpc": "2.0", "id": 3}).to_string(), json!(3), -32600),
        (
            json!({"jsonrpc": "1.0", "id": 3, "method": "ping"}).to_string(),
            json!(3),
            -32600,
        ),
        (
            json!({"jsonrpc": "2.0", "id": 3, "method": 4}).to_string(),
            json!(3),
            -32600,
        ),
        (
            json!({"jsonrpc": "2.0", "id": null, "method": "ping"}).to_string(),
            Value::Null,
            -32600,
        ),
        (
            json!({"jsonrpc": "2.0", "id": [1], "method": "ping"}).to_string(),
            Value::Null,
            -32600,
        ),
    ];
    for (body, id, code) in cases {
        let (status, answer) = peer.post(&body).await;
        let shown: String = body.chars().take(60).collect();
        assert_eq!(
            (status, &answer["id"], &answer["error"]["code"]),
            (400, &id, &json!(code)),
            "{shown}"
        );
    }
    let listed = json!({"jsonrpc": "2.0", "id": 3, "method": "ping", "params": [1]});
    assert_eq!(
        peer.post(listed).await,
        (200, error(json!(3), -32602, "`params` is not an object"))
    );
    let response = json!({"jsonrpc": "2.0", "id": 3, "result": {}});
    assert_eq!(peer.post(response).await, (202, Value::Null));
}

#[tokio::test]
async fn nobody_gets_in_without_the_token() {
    let peer = Peer::new(options()).await;
    let mut request = peer
        .request()
        .body(Bytes::from(initialize("2025-11-25").to_string()))
        .unwrap();
    request.headers_mut().remove("authorization");
    let response = peer.send(request).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["www-authenticate"]),
        (401, &"Bearer".parse().unwrap())
    );
}
