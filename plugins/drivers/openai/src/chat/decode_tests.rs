use capsule_api::{ErrorKind, serde_json::json};

use super::*;

/// The items of these chunks; `[DONE]` is the end mark.
fn decoded<'a>(chunks: impl IntoIterator<Item = &'a str>) -> Result<Vec<StreamItem>, Error> {
    let (mut decoder, mut items) = (decoder(), Vec::new());
    for data in chunks {
        if data == "[DONE]" {
            decoder.done(&mut items)?;
            continue;
        }
        let data = data.to_owned();
        let event = String::new();
        decoder.frame(&Frame { event, data }, &mut items)?;
    }
    Ok(items)
}

fn delta(index: u32, delta: BlockDelta) -> StreamItem {
    StreamItem::Delta { index, delta }
}

fn text(index: u32, text: &str) -> StreamItem {
    delta(index, BlockDelta::Text(text.to_owned()))
}

fn chunk(delta: &Value, reason: Option<&str>) -> String {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}).to_string()
}

#[test]
fn an_answer_is_decoded_piece_by_piece_and_its_stop_comes_last() {
    let stream = include_str!("../../tests/streams/chat-call.sse");
    let chunks = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let counts = Usage {
        input: 20,
        output: 18,
        cache_read: 7,
        reasoning: 4,
        ..Usage::default()
    };
    let (id, name) = ("call_1".to_owned(), "demo__greet".to_owned());
    let input = |piece: &str| delta(2, BlockDelta::Input(piece.to_owned()));
    let started = |index, block| StreamItem::Started { index, block };
    assert_eq!(
        decoded(chunks).unwrap(),
        [
            started(0, BlockStart::Thinking { redacted: None }),
            text(0, "Hm."),
            StreamItem::Ended { index: 0 },
            started(1, BlockStart::Text),
            text(1, "I will "),
            text(1, "greet."),
            StreamItem::Ended { index: 1 },
            started(2, BlockStart::Call { id, name }),
            input("{\"name\":"),
            input("\"Ada\"}"),
            StreamItem::Usage(counts),
            StreamItem::Ended { index: 2 },
            StreamItem::Stopped(StopReason::ToolCall),
        ]
    );
}

#[test]
fn h_10_every_reason_has_its_meaning_and_an_unknown_one_is_an_error_that_names_it() {
    for (reason, meaning) in [
        ("stop", StopReason::EndTurn),
        ("tool_calls", StopReason::ToolCall),
        ("function_call", StopReason::ToolCall),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Refusal),
    ] {
        let items = decoded([chunk(&json!({}), Some(reason)).as_str(), "[DONE]"]).unwrap();
        assert_eq!(items, [StreamItem::Stopped(meaning)], "{reason}");
    }
    let refusal = chunk(&json!({"refusal": "No."}), Some("stop"));
    let items = decoded([refusal.as_str(), "[DONE]"]).unwrap();
    assert_eq!(items.last(), Some(&StreamItem::Stopped(StopReason::Refusal)));
    let error = decoded([chunk(&json!({}), Some("eos_new")).as_str()]).unwrap_err();
    assert_eq!(error.code, "openai-stop-unknown");
    assert!(error.message.contains("`eos_new`"));
}

#[test]
fn h_06_the_end_mark_ends_an_answer_without_a_reason_but_not_one_without_content() {
    let said = chunk(&json!({"content": "Hi."}), None);
    let items = decoded([said.as_str(), "[DONE]"]).unwrap();
    assert_eq!(items.last(), Some(&StreamItem::Stopped(StopReason::EndTurn)));
    assert_eq!(decoded(["[DONE]"]).unwrap(), []);
    // The end of the stream alone is a cut.
    let (mut decoder, mut items) = (decoder(), Vec::new());
    let frame = Frame {
        event: String::new(),
        data: said,
    };
    decoder.frame(&frame, &mut items).unwrap();
    decoder.finish(&mut items).unwrap();
    assert!(!items.iter().any(|item| matches!(item, StreamItem::Stopped(_))));
}

#[test]
fn h_02_an_error_in_place_of_a_chunk_is_a_failure_of_its_class() {
    for (data, kind) in [
        (
            json!({"error": {"message": "x", "type": "server_error"}}),
            ErrorKind::Overloaded,
        ),
        (
            json!({"error": {"code": 429, "message": "x"}, "choices": []}),
            ErrorKind::RateLimited,
        ),
        (
            json!({"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "x"}}]}),
            ErrorKind::Overloaded,
        ),
    ] {
        assert_eq!(decoded([data.to_string().as_str()]).unwrap_err().kind, kind, "{data}");
    }
    assert_eq!(decoded(["<html>"]).unwrap_err().code, "openai-protocol");
}

#[test]
fn text_in_parts_whole_messages_and_arguments_as_an_object_are_read() {
    let message = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {
        "content": [{"type": "text", "text": "Hi."}],
        "tool_calls": [{"id": "a", "function": {"name": "t", "arguments": {"n": 1}}}]
    }}]});
    let items = decoded([message.to_string().as_str(), "[DONE]"]).unwrap();
    assert!(items.contains(&text(0, "Hi.")));
    assert!(items.contains(&delta(1, BlockDelta::Input("{\"n\":1}".to_owned()))));
    assert_eq!(items.last(), Some(&StreamItem::Stopped(StopReason::ToolCall)));
}

#[test]
fn h_09_sealed_reasoning_is_shown_as_it_comes_and_kept_whole() {
    let piece = |text: &str, details: Value| chunk(&json!({"reasoning": text, "reasoning_details": [details]}), None);
    let items = decoded([
        piece("Let", json!({"type": "reasoning.text", "text": "Let", "index": 0})).as_str(),
        piece(" me.", json!({"type": "reasoning.text", "text": " me.", "index": 0})).as_str(),
        chunk(&json!({"content": "Hi."}), None).as_str(),
        chunk(
            &json!({"reasoning_details": [{"type": "reasoning.text", "signature": "seal", "index": 0}]}),
            Some("stop"),
        )
        .as_str(),
        "[DONE]",
    ]);
    let whole = json!([{"type": "reasoning.text", "text": "Let me.", "index": 0, "signature": "seal"}]);
    let redacted = Some(whole.to_string());
    let started = |index, block| StreamItem::Started { index, block };
    assert_eq!(
        items.unwrap(),
        [
            started(0, BlockStart::Thinking { redacted: None }),
            text(0, "Let"),
            text(0, " me."),
            StreamItem::Ended { index: 0 },
            started(1, BlockStart::Text),
            text(1, "Hi."),
            StreamItem::Ended { index: 1 },
            started(2, BlockStart::Thinking { redacted }),
            StreamItem::Ended { index: 2 },
            StreamItem::Stopped(StopReason::EndTurn),
        ]
    );
}
