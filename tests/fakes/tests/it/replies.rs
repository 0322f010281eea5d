//! Replies that go well.

use capsule_fakes::{Block, Chunking, Outcome, Provider, Reply, Script, Usage};
use http::Method;
use serde_json::json;

use crate::client::{ask, hi, open, plain, post, read};

#[tokio::test]
async fn a_text_reply_is_a_whole_stream_of_events() {
    let usage = Usage {
        input_tokens: 20,
        output_tokens: 5,
        cache_creation_input_tokens: 3,
        cache_read_input_tokens: 4,
        ..Usage::default()
    };
    let script = Script::new().then(Reply::text(["Hel", "lo"]).usage(usage));
    let provider = Provider::start(script).await.unwrap();

    let got = post(&provider, &hi()).await;

    assert_eq!((got.status, got.complete), (200, true));
    assert_eq!(got.header("content-type"), "text/event-stream; charset=utf-8");
    assert_eq!(got.header("request-id"), "req_scripted_0001");
    let tokens = |output: u64| {
        json!({"input_tokens": 20, "cache_creation_input_tokens": 3,
               "cache_read_input_tokens": 4, "output_tokens": output})
    };
    let message = json!({
        "id": "msg_scripted_0001", "type": "message", "role": "assistant", "model": "claude-test",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": tokens(1),
    });
    let delta = |text: &str| {
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "text_delta", "text": text}})
    };
    let expected = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 0,
               "content_block": {"type": "text", "text": ""}}),
        delta("Hel"),
        delta("lo"),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "usage": tokens(5),
               "delta": {"stop_reason": "end_turn", "stop_sequence": null}}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(got.events(), expected);
    provider.assert_clean();
    provider.shutdown().await;
}

#[tokio::test]
async fn a_call_names_the_tool_as_it_is_offered() {
    let reply = || Reply::new().call("c1", "hello", json!({"name": "Ada"}));
    let script = Script::new().then(reply()).then(reply());
    let provider = Provider::start(script).await.unwrap();
    let mut prefixed = hi();
    prefixed["tools"][0]["name"] = json!("mcp__capsule__hello");

    let bare = post(&provider, &hi()).await;
    let mcp = post(&provider, &prefixed).await;

    let start = |name: &str| {
        json!({"type": "content_block_start", "index": 0,
               "content_block": {"type": "tool_use", "id": "c1", "name": name, "input": {}}})
    };
    assert_eq!(bare.events()[2], start("hello"));
    assert_eq!(mcp.events()[2], start("mcp__capsule__hello"));
    assert_eq!(bare.joined("partial_json"), r#"{"name":"Ada"}"#);
    assert_eq!(bare.joined("stop_reason"), "tool_use");
    provider.assert_clean();
    provider.shutdown().await;
}

#[tokio::test]
async fn a_tool_that_is_not_offered_is_the_scripts_mistake() {
    let script = Script::new().then(Reply::new().call("c1", "bye", json!({})));
    let provider = Provider::start(script).await.unwrap();

    let got = post(&provider, &hi()).await;

    let message = "the script calls the tool `bye`, but the request offers only: hello";
    assert_eq!((got.status, &got.json()["error"]["message"]), (500, &json!(message)));
    assert_eq!(provider.violations(), [message]);
    provider.shutdown().await;
}

#[tokio::test]
async fn a_raw_name_is_sent_unseen() {
    let script = Script::new().then(Reply::new().call_raw_name("c1", "bye", json!({})));
    let provider = Provider::start(script).await.unwrap();

    let got = post(&provider, &hi()).await;

    assert_eq!(got.events()[2]["content_block"]["name"], "bye");
    provider.assert_clean();
    provider.shutdown().await;
}

#[tokio::test]
async fn thinking_comes_with_its_signature() {
    let reply = Reply::new().thinking("hmm", "sig").redacted_thinking("opaque");
    let provider = Provider::start(Script::new().then(reply)).await.unwrap();

    let got = post(&provider, &hi()).await;

    let events = got.events();
    assert_eq!(got.joined("thinking"), "hmm");
    assert_eq!(
        events[5]["delta"],
        json!({"type": "signature_delta", "signature": "sig"})
    );
    assert_eq!(
        events[7]["content_block"],
        json!({"type": "redacted_thinking", "data": "opaque"})
    );
    provider.shutdown().await;
}

#[tokio::test]
async fn cut_arguments_end_with_the_token_limit() {
    let reply = Reply::new()
        .call_pieces("c1", "hello", &[r#"{"name": "#, r#""A"#])
        .stop("max_tokens");
    let provider = Provider::start(Script::new().then(reply)).await.unwrap();

    let got = post(&provider, &hi()).await;

    assert_eq!(got.joined("partial_json"), r#"{"name": "A"#);
    assert_eq!(got.joined("stop_reason"), "max_tokens");
    provider.shutdown().await;
}

#[tokio::test]
async fn unknown_blocks_and_events_pass_through() {
    let other = Block::Other {
        start: json!({"type": "from_the_future"}),
        deltas: vec![json!({"type": "future_delta", "x": 1})],
    };
    let reply = Reply::new()
        .event("unheard_of", &json!({"type": "unheard_of"}))
        .block(other)
        .and_text("ok");
    let provider = Provider::start(Script::new().then(reply)).await.unwrap();

    let got = post(&provider, &hi()).await;

    let events = got.events();
    assert_eq!(events[2], json!({"type": "unheard_of"}));
    assert_eq!(events[3]["content_block"], json!({"type": "from_the_future"}));
    assert_eq!(events[4]["delta"], json!({"type": "future_delta", "x": 1}));
    assert_eq!(events[6]["index"], 1, "events without a block take no index");
    provider.shutdown().await;
}

#[tokio::test]
async fn the_bytes_are_the_same_in_any_chunks() {
    let reply = |chunking| Reply::text("grüße, 世界").chunking(chunking);
    for chunking in [Chunking::Whole, Chunking::Bytes(1), Chunking::Bytes(7)] {
        let plain = Provider::start(Script::new().then(reply(Chunking::PerEvent)));
        let chunked = Provider::start(Script::new().then(reply(chunking)));
        let (plain, chunked) = (plain.await.unwrap(), chunked.await.unwrap());

        let expected = post(&plain, &hi()).await.text;

        assert_eq!(post(&chunked, &hi()).await.text, expected, "{chunking:?}");
        plain.shutdown().await;
        chunked.shutdown().await;
    }
}

#[tokio::test]
async fn a_non_streaming_client_gets_one_message_where_allowed() {
    let reply = Reply::text("Hi").call("c1", "hello", json!({"name": "Ada"}));
    let script = Script::new().then(reply).allow_non_streaming();
    let provider = Provider::start(script).await.unwrap();
    let mut body = hi();
    body["stream"] = json!(false);

    let got = post(&provider, &body).await;

    let message = got.json();
    let content = json!([
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "c1", "name": "hello", "input": {"name": "Ada"}},
    ]);
    assert_eq!(got.header("content-type"), "application/json");
    assert_eq!(
        (&message["content"], &message["stop_reason"]),
        (&content, &json!("tool_use"))
    );
    provider.assert_clean();
    provider.shutdown().await;
}

#[tokio::test]
async fn requests_are_recorded_with_their_key_but_never_shown_with_it() {
    let provider = Provider::start(Script::new().then(Reply::text("hi"))).await.unwrap();

    post(&provider, &hi()).await;

    provider.wait_for_requests(1).await;
    let requests = provider.requests();
    let request = &requests[0];
    assert_eq!(request.method, Method::POST);
    assert_eq!(request.path, "/v1/messages?beta=true");
    assert_eq!(request.key(), Some("sk-test"));
    assert_eq!(request.tools(), ["hello"]);
    assert_eq!(request.body, hi());
    assert_eq!(request.outcome, Outcome::Answered);
    assert!(!format!("{request:?}").contains("sk-test"));
    provider.shutdown().await;
}

#[tokio::test]
async fn other_requests_are_answered_and_recorded_apart() {
    let provider = Provider::start(Script::new()).await.unwrap();

    let probe = plain(&provider, Method::HEAD, "/api/hello").await;
    let count = plain(&provider, Method::POST, "/v1/messages/count_tokens?beta=true").await;
    let lost = plain(&provider, Method::GET, "/v1/models").await;

    assert_eq!((probe.status, probe.text.as_str()), (200, ""));
    assert_eq!((count.status, count.json()), (200, json!({"input_tokens": 1})));
    assert_eq!(
        (lost.status, &lost.json()["error"]["type"]),
        (404, &json!("not_found_error"))
    );
    let paths: Vec<_> = provider.other_requests().into_iter().map(|r| r.path).collect();
    assert_eq!(
        paths,
        ["/api/hello", "/v1/messages/count_tokens?beta=true", "/v1/models"]
    );
    assert!(provider.requests().is_empty());
    provider.shutdown().await;
}

#[tokio::test]
async fn steps_follow_the_order_of_the_requests_and_then_run_out() {
    let script = Script::new().then(Reply::text("one")).then(Reply::text("two"));
    let provider = Provider::start(script).await.unwrap();

    let texts = [
        post(&provider, &hi()).await.joined("text"),
        post(&provider, &hi()).await.joined("text"),
    ];
    let third = post(&provider, &hi()).await;

    assert_eq!(texts, ["one", "two"]);
    let expected = json!({
        "type": "error", "request_id": "req_scripted_0003",
        "error": {"type": "api_error", "message": "script exhausted after 2 requests"},
    });
    assert_eq!((third.status, third.json()), (500, expected));
    assert_eq!(provider.overrun(), 1);
    provider.shutdown().await;
}

#[tokio::test]
async fn a_script_can_repeat_its_last_step_or_start_over() {
    let steps = || Script::new().then(Reply::text("one")).then(Reply::text("two"));
    let last = Provider::start(steps().repeat_last()).await.unwrap();
    let over = Provider::start(steps().forever()).await.unwrap();

    let mut texts = Vec::new();
    for provider in [&last, &over] {
        for _ in 0..3 {
            texts.push(post(provider, &hi()).await.joined("text"));
        }
    }

    assert_eq!(texts, ["one", "two", "two", "one", "two", "one"]);
    last.shutdown().await;
    over.shutdown().await;
}

#[tokio::test]
async fn concurrent_conversations_each_get_a_step() {
    let provider = Provider::start(Script::new().then(Reply::text("hi").hang()).repeat_last());
    let provider = provider.await.unwrap();
    let release = async {
        provider.gate().reached(3).await;
        provider.gate().open();
    };
    let one = async || {
        read(
            open(&provider, &ask(json!([{"role": "user", "content": "x"}])))
                .await
                .expect("an answer"),
        )
        .await
        .joined("text")
    };

    let (a, b, c, ()) = tokio::join!(one(), one(), one(), release);

    assert_eq!([a, b, c], ["hi", "hi", "hi"]);
    provider.shutdown().await;
}
