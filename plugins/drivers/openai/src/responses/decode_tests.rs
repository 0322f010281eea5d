use capsule_api::{ErrorKind, serde_json::json};

use super::*;

fn decoded(events: &[Value]) -> Result<Vec<StreamItem>, Error> {
    let (mut decoder, mut items) = (decoder(), Vec::new());
    for event in events {
        let frame = Frame {
            event: String::new(),
            data: event.to_string(),
        };
        decoder.frame(&frame, &mut items)?;
    }
    Ok(items)
}

fn delta(index: u32, delta: BlockDelta) -> StreamItem {
    StreamItem::Delta { index, delta }
}

#[test]
fn h_09_a_call_is_decoded_with_the_reasoning_before_it_as_the_item_it_was() {
    let stream = include_str!("../../tests/streams/responses-call.sse");
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    let item = events[3]["item"].to_string();
    let (id, name) = ("call_1".to_owned(), "demo__greet".to_owned());
    let input = |piece: &str| delta(1, BlockDelta::Input(piece.to_owned()));
    let whole = || delta(1, BlockDelta::WholeInput(json!("{\"name\":\"Ada\"}")));
    let counts = Usage {
        input: 20,
        output: 18,
        cache_read: 7,
        reasoning: 4,
        ..Usage::default()
    };
    assert_eq!(
        decoded(&events).unwrap(),
        [
            StreamItem::Started {
                index: 0,
                block: BlockStart::Thinking { redacted: None }
            },
            delta(0, BlockDelta::Text("Hm.".to_owned())),
            delta(0, BlockDelta::Signature(item)),
            StreamItem::Ended { index: 0 },
            StreamItem::Started {
                index: 1,
                block: BlockStart::Call { id, name }
            },
            input("{\"name\":"),
            input("\"Ada\"}"),
            whole(),
            whole(),
            StreamItem::Ended { index: 1 },
            StreamItem::Usage(counts),
            StreamItem::Continuation("resp_1".to_owned()),
            StreamItem::Stopped(StopReason::ToolCall),
        ]
    );
}

#[test]
fn h_10_an_incomplete_answer_says_why_and_an_unknown_reason_is_named() {
    let ended = |reason: &str| {
        let response = json!({"incomplete_details": {"reason": reason}});
        decoded(&[json!({"type": "response.incomplete", "response": response})])
    };
    let stopped = |stop| vec![StreamItem::Stopped(stop)];
    assert_eq!(ended("max_output_tokens").unwrap(), stopped(StopReason::MaxTokens));
    assert_eq!(ended("content_filter").unwrap(), stopped(StopReason::Refusal));
    let error = ended("brand_new").unwrap_err();
    assert_eq!(error.code, "openai-stop-unknown");
    assert!(error.message.contains("`brand_new`"));
}

#[test]
fn h_02_failures_have_their_class_wherever_they_stand() {
    let error = json!({"code": "rate_limit_exceeded", "message": "slow down"});
    for event in [
        json!({"type": "response.failed", "response": {"status": "failed", "error": error}}),
        json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": null}),
        json!({"type": "error", "error": error}),
        json!({"error": error}),
    ] {
        let failed = decoded(std::slice::from_ref(&event)).unwrap_err();
        assert_eq!(failed.kind, ErrorKind::RateLimited, "{event}");
    }
}

#[test]
fn an_answer_that_comes_in_its_last_event_alone_is_read() {
    let output = json!([
        {"id": "m", "type": "message", "content": [{"type": "output_text", "text": "Hi."}]},
        {"id": "f", "type": "function_call", "call_id": "c", "name": "t", "arguments": "{\"n\":1}"},
        {"id": "w", "type": "web_search_call"}
    ]);
    let items = decoded(&[json!({"type": "response.completed", "response": {"output": output}})]).unwrap();
    assert!(items.contains(&delta(0, BlockDelta::Text("Hi.".to_owned()))));
    assert!(items.contains(&delta(1, BlockDelta::WholeInput(json!("{\"n\":1}")))));
    assert_eq!(items.last(), Some(&StreamItem::Stopped(StopReason::ToolCall)));
}
