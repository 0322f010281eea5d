//! Calls that are no longer wanted.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::peer::{Peer, options, result};

fn cancelled(id: Value) -> Value {
    let params = json!({"requestId": id, "reason": "the user pressed escape"});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
}

#[tokio::test]
async fn m_09_a_cancelled_call_is_stopped_and_its_connection_freed() {
    let mut peer = Peer::new(options()).await;
    let call = peer.call(json!(5), "wait", json!({}));
    let cancel = async {
        peer.tools.started(1).await;
        peer.post(cancelled(json!(5))).await
    };
    let (answer, notified) = tokio::join!(peer.post(call), cancel);
    assert_eq!(notified, (202, Value::Null));
    assert_eq!(
        answer,
        (
            200,
            result(json!(5), "tool 'wait' failed: the call was cancelled", true)
        )
    );
    assert_eq!(peer.drops.recv().await.unwrap().as_str(), "mcp-1");
}

#[tokio::test]
async fn m_09_a_cancel_of_an_unknown_id_changes_nothing() {
    let peer = Peer::new(options()).await;
    let call = peer.call(json!(5), "wait", json!({}));
    let cancel = async {
        peer.tools.started(1).await;
        // `"5"` is another id than `5`.
        for params in [
            cancelled(json!(6)),
            cancelled(json!("5")),
            cancelled(json!(null)),
            cancelled(json!({"a": 1})),
        ] {
            assert_eq!(peer.post(params).await, (202, Value::Null));
        }
        let without = json!({"jsonrpc": "2.0", "method": "notifications/cancelled"});
        assert_eq!(peer.post(without).await, (202, Value::Null));
        peer.tools.go.add_permits(1);
    };
    let (answer, ()) = tokio::join!(peer.post(call), cancel);
    assert_eq!(answer, (200, result(json!(5), "gone", false)));
    // Nor does one that comes too late.
    assert_eq!(peer.post(cancelled(json!(5))).await, (202, Value::Null));
}

#[tokio::test]
async fn m_09_a_call_that_waits_its_turn_can_be_cancelled_too() {
    let mut with = options();
    with.max_concurrent = 1;
    let peer = Peer::new(with).await;
    let first = peer.post(peer.call(json!(1), "wait", json!({})));
    let second = async {
        peer.tools.started(1).await;
        let mut answer = std::pin::pin!(peer.post(peer.call(json!(2), "wait", json!({}))));
        // It cannot be seen to wait, so it is cancelled until the cancel has met it.
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break answer,
                _ = peer.post(cancelled(json!(2))) => {}
            }
        };
        peer.tools.go.add_permits(1);
        answer
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first, (200, result(json!(1), "gone", false)));
    assert_eq!(
        second,
        (
            200,
            result(json!(2), "tool 'wait' failed: the call was cancelled", true)
        )
    );
    assert_eq!(peer.tools.seen().len(), 1);
}

#[tokio::test]
async fn a_closed_connection_stops_the_call() {
    let mut peer = Peer::new(options()).await;
    let call = peer.call(json!(1), "wait", json!({}));
    tokio::select! {
        answer = peer.post(call) => panic!("answered: {answer:?}"),
        () = peer.tools.started(1) => {}
    }
    assert_eq!(peer.drops.recv().await.unwrap().as_str(), "mcp-1");
    // Its place is free, and its request id is no longer known.
    assert_eq!(peer.post(cancelled(json!(1))).await, (202, Value::Null));
}

#[tokio::test]
async fn a_closed_event_stream_stops_the_call() {
    let mut with = options();
    with.progress_every = Duration::from_millis(1);
    let mut peer = Peer::new(with).await;
    let call = peer.call(json!(1), "wait", json!({}));
    let response = peer
        .send(peer.request().body(Bytes::from(call.to_string())).unwrap())
        .await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    drop(response);
    assert_eq!(peer.drops.recv().await.unwrap().as_str(), "mcp-1");
}

#[tokio::test]
async fn the_end_of_the_server_stops_every_call_and_waits_for_it() {
    let peer = Peer::new(options()).await;
    let Peer {
        tools,
        mut drops,
        server,
        service,
        ..
    } = peer;
    let url = server.url();
    let asking = tokio::spawn(async move {
        let client = capsule_net::NetClient::new(std::sync::Arc::new(capsule_api::SystemClock));
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait"}});
        let request = http::Request::post(url)
            .header("authorization", format!("Bearer {}", crate::peer::TOKEN))
            .header("content-type", "application/json")
            .body(Bytes::from(call.to_string()))
            .unwrap();
        capsule_api::HttpClient::send(&client, request).await.map(|_| ())
    });
    tools.started(1).await;
    assert_eq!(server.close(Duration::ZERO).await, 1);
    assert_eq!(drops.try_recv().unwrap().as_str(), "mcp-1");
    assert_eq!(asking.await.unwrap().unwrap_err().code, "net-exchange");
    drop(service);
}

#[tokio::test]
async fn a_request_id_may_be_used_again_once_its_call_has_ended() {
    let peer = Peer::new(options()).await;
    for _ in 0..3 {
        let answer = peer.post(peer.call(json!(1), "fail", json!({}))).await;
        assert_eq!(answer, (200, result(json!(1), "tool 'fail' failed: no luck", true)));
    }
}
