//! Whatever a client sends, it gets an answer.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use capsule_api::SystemClock;
use capsule_mcp::{McpService, serve_lines};
use capsule_net::Handler as _;
use http::Request;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{peer::options, tools::Tools};

/// Status of the answer to a body; the tools that wait are let go.
fn status(body: Vec<u8>) -> u16 {
    status_with(&[], body)
}

fn status_with(headers: &[(&str, &str)], body: Vec<u8>) -> u16 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (tools, _drops) = Tools::new();
        tools.go.add_permits(1);
        let service = McpService::new(tools, Arc::new(SystemClock), options());
        let request = Request::post("/mcp");
        let request = headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.body(Bytes::from(body)).unwrap();
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        service.handle(request, peer).await.status().as_u16()
    })
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z/\"\\\\]{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "2.0",
            "tools/call",
            "initialize",
            "notifications/cancelled",
            "wait",
            "echo_"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let key = prop::sample::select(vec![
            "jsonrpc",
            "id",
            "method",
            "params",
            "name",
            "arguments",
            "_meta",
            "requestId",
            "progressToken",
            "x",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bytes(body: Vec<u8>) {
        prop_assert_eq!(status(body), 400);
    }

    #[test]
    fn any_json(value in json_value()) {
        prop_assert!([200, 202, 400].contains(&status(value.to_string().into_bytes())));
    }

    #[test]
    fn any_parameters(
        method in prop::sample::select(vec!["initialize", "ping", "tools/list", "tools/call", "notifications/cancelled", "x"]),
        params in json_value(),
    ) {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        prop_assert_eq!(status(request.to_string().into_bytes()), 200);
        let notification = json!({"jsonrpc": "2.0", "method": method, "params": params});
        prop_assert_eq!(status(notification.to_string().into_bytes()), 202);
    }

    #[test]
    fn any_parameters_without_a_handshake(
        method in prop::sample::select(vec!["server/discover", "tools/list", "tools/call", "x"]),
        params in json_value(),
        meta in json_value(),
        name in prop::sample::select(vec!["echo_", "fail", "=?base64?ZmFpbA==?=", "=?base64?=?="]),
    ) {
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", name)];
        let mut request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        prop_assert!([200, 400].contains(&status_with(&headers, request.to_string().into_bytes())));
        let mut able = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        able["more"] = meta;
        request["params"] = json!({"_meta": able, "name": params, "arguments": params});
        prop_assert!([200, 400, 404].contains(&status_with(&headers, request.to_string().into_bytes())));
    }

    #[test]
    fn any_bytes_on_a_pipe(bytes: Vec<u8>, value in json_value()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let input = [&bytes[..], b"\n", value.to_string().as_bytes(), b"\n"].concat();
        runtime.block_on(async {
            let (tools, _drops) = Tools::new();
            tools.go.add_permits(1);
            let service = McpService::new(tools, Arc::new(SystemClock), options());
            let mut output = Vec::new();
            serve_lines(service, &input[..], &mut output, Duration::from_secs(3600)).await.unwrap();
            // Whatever was said, what comes back is one message a line.
            for line in output.split_inclusive(|byte| *byte == b'\n') {
                assert!(serde_json::from_slice::<Value>(line).unwrap().is_object());
            }
        });
    }

    #[test]
    fn a_call_cut_anywhere(cut in 0..74_usize) {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo_"}}).to_string();
        prop_assume!(cut < call.len());
        prop_assert_eq!(status(call.as_bytes()[..cut].to_vec()), 400);
    }
}
