//! Calls and what comes back.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::peer::{Peer, error, options, read, result};

#[tokio::test]
async fn an_alias_reaches_its_tool_with_the_arguments_as_they_were_written() {
    let peer = Peer::new(options()).await;
    let arguments = json!({"z": [1, 2.5, null], "a": {"ü": "\u{1F600}"}, "big": 18_446_744_073_709_551_615_u64});
    let answer = peer.post(peer.call(json!("x"), "echo_", arguments.clone())).await;
    assert_eq!(answer, (200, result(json!("x"), &arguments.to_string(), false)));
    assert_eq!(peer.tools.seen(), [("mcp-1".into(), "echo.tool".into(), arguments)]);
}

#[tokio::test]
async fn t_05_no_arguments_are_an_empty_object() {
    let peer = Peer::new(options()).await;
    let params = [
        json!({"name": "echo_"}),
        json!({"name": "echo_", "arguments": null}),
        json!({"name": "echo_", "arguments": ""}),
        json!({"name": "echo_", "arguments": {}}),
    ];
    for params in params {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        assert_eq!(peer.post(call).await, (200, result(json!(1), "{}", false)), "{params}");
    }
}

#[tokio::test]
async fn m_11_the_model_is_shown_the_text_and_no_structure_in_its_place() {
    let peer = Peer::new(options()).await;
    let (_, answer) = peer.post(peer.call(json!(1), "echo_", json!({"a": 1}))).await;
    assert_eq!(answer, result(json!(1), r#"{"a":1}"#, false));
}

#[tokio::test]
async fn failures_are_results_in_their_own_words() {
    let peer = Peer::new(options()).await;
    let failed = peer.post(peer.call(json!(1), "fail", json!({}))).await;
    assert_eq!(failed, (200, result(json!(1), "tool 'fail' failed: no luck", true)));
    let unknown = peer.post(peer.call(json!(2), "nope", json!({}))).await;
    assert_eq!(
        unknown,
        (200, result(json!(2), "tool 'nope' failed: there is no such tool", true))
    );
}

#[tokio::test]
async fn a_call_without_a_name_is_invalid() {
    let peer = Peer::new(options()).await;
    for params in [json!({}), json!({"name": 7}), json!({"name": null, "arguments": {}})] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let expected = error(json!(1), -32602, "`params.name` is not a string");
        assert_eq!(peer.post(call).await, (200, expected));
    }
    assert_eq!(peer.tools.seen(), []);
}

#[tokio::test]
async fn a_callers_own_id_is_taken_over_and_a_repeated_call_told_apart() {
    let mut with = options();
    with.call_id_keys = ["vendor/useId", "callId"].map(String::from).into();
    with.call_id_prefix = "bridge-".into();
    let peer = Peer::new(with).await;
    let metas = [
        json!({"vendor/useId": "toolu_1", "callId": "other"}),
        json!({"callId": "call_2"}),
        json!({"vendor/useId": 7}),
        json!({"vendor/useId": "toolu_1"}),
        json!("nonsense"),
    ];
    for meta in metas {
        let params = json!({"name": "fail", "_meta": meta});
        peer.post(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
            .await;
    }
    let ids: Vec<_> = peer.tools.seen().into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, ["toolu_1", "call_2", "bridge-1", "toolu_1#2", "bridge-2"]);
}

#[tokio::test]
async fn a_trace_context_comes_from_the_meta_else_from_the_header() {
    let peer = Peer::new(options()).await;
    let context = |n: u8| format!("00-{}-00f067aa0ba902b7-0{n}", "4bf92f3577b34da6a3ce929d0e0e4736");
    for meta in [json!({"traceparent": context(1)}), json!({})] {
        let params = json!({"name": "fail", "_meta": meta});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = peer.request().header("traceparent", context(0));
        read(peer.send(request.body(Bytes::from(call.to_string())).unwrap()).await).await;
    }
    peer.post(peer.call(json!(1), "fail", Value::Null)).await;
    let seen = peer.tools.seen.lock().unwrap();
    let contexts: Vec<_> = seen.iter().map(|call| call.traceparent.clone()).collect();
    assert_eq!(contexts, [Some(context(1)), Some(context(0)), None]);
}

#[tokio::test]
async fn m_12_calls_overlap_up_to_the_limit_and_then_wait_their_turn() {
    let mut with = options();
    with.max_concurrent = 2;
    let peer = Peer::new(with).await;
    let wait = |id: i32| peer.post(peer.call(json!(id), "wait", json!({"n": id})));
    let letting_go = async {
        peer.tools.started(2).await;
        // The places are taken, so the call that is not counted yet cannot be among those seen.
        assert_eq!(peer.tools.seen().len(), 2);
        peer.tools.go.add_permits(1);
        peer.tools.started(1).await;
        peer.tools.go.add_permits(2);
    };
    let (one, two, three, ()) = tokio::join!(wait(1), wait(2), wait(3), letting_go);
    for (id, answer) in [(1, one), (2, two), (3, three)] {
        assert_eq!(answer, (200, result(json!(id), "gone", false)));
    }
}
