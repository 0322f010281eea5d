use capsule_api::ErrorKind;

use super::*;

/// The frames of a stream whose lines end in LF, without comments between fields.
fn frames(stream: &str) -> Vec<Frame> {
    let events = stream.split("\n\n").filter_map(|event| {
        let field = |name: &str| {
            event
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::to_owned)
        };
        Some(Frame {
            event: field("event: ").unwrap_or_default(),
            data: field("data: ")?,
        })
    });
    events.collect()
}

fn decoded(frames: &[Frame]) -> Result<Vec<StreamItem>, Error> {
    let mut decoder = decoder();
    let mut items = Vec::new();
    for frame in frames {
        decoder.frame(frame, &mut items)?;
    }
    Ok(items)
}

fn data(json: &str) -> Frame {
    Frame {
        event: String::new(),
        data: json.to_owned(),
    }
}

fn usage(input: u64, output: u64) -> StreamItem {
    StreamItem::Usage(Usage {
        input,
        output,
        ..Usage::default()
    })
}

fn delta(index: u32, delta: BlockDelta) -> StreamItem {
    StreamItem::Delta { index, delta }
}

fn started(index: u32, block: BlockStart) -> StreamItem {
    StreamItem::Started { index, block }
}

#[test]
fn a_call_is_decoded_piece_by_piece() {
    let items = decoded(&frames(include_str!("../tests/streams/call.sse"))).unwrap();
    let input = |piece: &str| delta(1, BlockDelta::Input(piece.to_owned()));
    let call = BlockStart::Call {
        id: "toolu_01".to_owned(),
        name: "demo__greet".to_owned(),
    };
    assert_eq!(
        items,
        [
            usage(20, 1),
            started(0, BlockStart::Text),
            delta(0, BlockDelta::Text("I will ".to_owned())),
            delta(0, BlockDelta::Text("greet.".to_owned())),
            StreamItem::Ended { index: 0 },
            started(1, call),
            input(""),
            input("{\"na"),
            input("me\": \"Ada\"}"),
            StreamItem::Ended { index: 1 },
            usage(20, 18),
            StreamItem::Stopped(StopReason::ToolCall),
        ]
    );
}

#[test]
fn h_09_reasoning_its_seal_and_its_encrypted_form_are_kept_and_unknown_blocks_and_events_passed_over() {
    let items = decoded(&frames(include_str!("../tests/streams/thinking.sse"))).unwrap();
    let counts = |output| {
        StreamItem::Usage(Usage {
            input: 40,
            output,
            cache_read: 7,
            cache_write: 5,
            ..Usage::default()
        })
    };
    let redacted = Some("b3BhcXVl".to_owned());
    assert_eq!(
        items,
        [
            counts(2),
            started(0, BlockStart::Thinking { redacted: None }),
            delta(0, BlockDelta::Text("Let me see.".to_owned())),
            delta(0, BlockDelta::Signature("c2VhbA==".to_owned())),
            StreamItem::Ended { index: 0 },
            started(1, BlockStart::Thinking { redacted }),
            StreamItem::Ended { index: 1 },
            started(3, BlockStart::Text),
            delta(3, BlockDelta::Text("Seen.".to_owned())),
            StreamItem::Ended { index: 3 },
            counts(44),
            StreamItem::Stopped(StopReason::EndTurn),
        ]
    );
}

#[test]
fn an_input_that_comes_whole_at_the_start_of_its_block_counts() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"t","input":{"n":1}}}"#;
    let items = decoded(&[data(start)]).unwrap();
    assert_eq!(items[1], delta(0, BlockDelta::WholeInput(serde_json::json!({"n": 1}))));
}

#[test]
fn h_10_every_stop_reason_has_its_meaning_and_an_unknown_one_is_an_error_that_names_it() {
    let stop = |reason: &str| {
        let delta = data(&format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{}}}}"#
        ));
        decoded(&[delta, data(r#"{"type":"message_stop"}"#)])
    };
    for (reason, meaning) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("tool_use", StopReason::ToolCall),
        ("max_tokens", StopReason::MaxTokens),
        ("refusal", StopReason::Refusal),
        ("pause_turn", StopReason::Pause),
    ] {
        assert_eq!(stop(reason).unwrap(), [StreamItem::Stopped(meaning)], "{reason}");
    }
    assert_eq!(
        stop("model_context_window_exceeded").unwrap_err().kind,
        ErrorKind::ContextOverflow
    );
    let error = stop("unknown_new").unwrap_err();
    assert_eq!(
        error.message,
        "the model stopped for a reason that is not known here: `unknown_new`"
    );
}

#[test]
fn h_02_an_error_event_is_a_failure_of_its_class() {
    let failed = |kind: &str| {
        let event = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"no"}}}}"#);
        decoded(&[data(&event)]).unwrap_err()
    };
    assert_eq!(failed("overloaded_error").kind, ErrorKind::Overloaded);
    assert_eq!(failed("rate_limit_error").kind, ErrorKind::RateLimited);
    assert_eq!(failed("api_error").code, "anthropic-server");
    assert_eq!(failed("invalid_request_error").kind, ErrorKind::BadRequest);
    let error = failed("brand_new_error");
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            "anthropic-protocol",
            "Anthropic answered in its stream: brand_new_error: no"
        )
    );
}

#[test]
fn an_event_that_is_not_json_or_has_no_index_is_an_error() {
    for event in [
        "<html>",
        "{\"type\":\"content_block_stop\"}",
        "{\"type\":\"content_block_delta\",\"index\":-1}",
    ] {
        assert_eq!(
            decoded(&[data(event)]).unwrap_err().code,
            "anthropic-protocol",
            "{event}"
        );
    }
}
