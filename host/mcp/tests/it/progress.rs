//! Answers that begin before the result is there.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::peer::{Peer, options, result, whole};

fn call(name: &str, meta: Value) -> Value {
    let params = json!({"name": name, "arguments": {}, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

/// The messages of an event stream, and how many comments were between them.
fn events(stream: &str) -> (Vec<Value>, usize) {
    let frames: Vec<_> = stream.split_terminator("\n\n").collect();
    let messages = frames
        .iter()
        .filter_map(|frame| frame.strip_prefix("event: message\ndata: "));
    let messages: Vec<_> = messages.map(|data| serde_json::from_str(data).unwrap()).collect();
    let comments = frames.iter().filter(|frame| frame.starts_with(':')).count();
    assert_eq!(messages.len() + comments, frames.len(), "{stream}");
    (messages, comments)
}

async fn ask(peer: &Peer, call: Value) -> (String, String) {
    let response = peer
        .send(peer.request().body(Bytes::from(call.to_string())).unwrap())
        .await;
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    (kind, whole(response).await)
}

fn progress(progress: f64, more: Value) -> Value {
    let mut params = json!({"progressToken": "p", "progress": progress});
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
}

#[tokio::test]
async fn progress_is_told_in_order_and_before_the_result() {
    let peer = Peer::new(options()).await;
    let (kind, stream) = ask(&peer, call("steps", json!({"progressToken": "p"}))).await;
    // The figure grows every time, also where the tool starts at nothing.
    let expected = [
        progress(0.001, json!({"total": 100.0})),
        progress(50.0, json!({"total": 100.0, "message": "half"})),
        progress(100.0, json!({"total": 100.0})),
        result(json!(1), "done", false),
    ];
    assert_eq!(
        (kind.as_str(), events(&stream)),
        ("text/event-stream", (expected.into(), 0))
    );
}

#[tokio::test]
async fn without_a_token_or_without_events_the_answer_is_plain() {
    let peer = Peer::new(options()).await;
    let plain = (
        "application/json".to_owned(),
        result(json!(1), "done", false).to_string(),
    );
    assert_eq!(ask(&peer, call("steps", json!({}))).await, plain);
    let mut request = peer
        .request()
        .body(Bytes::from(call("steps", json!({"progressToken": 1})).to_string()))
        .unwrap();
    request
        .headers_mut()
        .insert("accept", "application/json".parse().unwrap());
    assert_eq!(whole(peer.send(request).await).await, plain.1);
}

#[tokio::test]
async fn a_long_call_gives_signs_of_life() {
    let mut with = options();
    with.progress_every = Duration::from_millis(1);
    let peer = Peer::new(with).await;
    for (meta, with_token) in [(json!({"progressToken": "p"}), true), (json!({}), false)] {
        let request = peer
            .request()
            .body(Bytes::from(call("wait", meta).to_string()))
            .unwrap();
        // The head comes while the tool still runs.
        let response = peer.send(request).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        peer.tools.go.add_permits(1);
        let (messages, comments) = events(&whole(response).await);
        let (last, signs) = messages.split_last().unwrap();
        assert_eq!(*last, result(json!(1), "gone", false));
        assert_eq!((signs.is_empty(), comments == 0), (!with_token, with_token));
        let figures: Vec<_> = signs
            .iter()
            .map(|sign| sign["params"]["progress"].as_f64().unwrap())
            .collect();
        assert!(figures.is_sorted_by(|a, b| a < b), "{figures:?}");
    }
}
