use capsule_api::serde_json::json;

use super::*;

fn call(index: u32, id: &str) -> StreamItem {
    StreamItem::Started {
        index,
        block: BlockStart::Call {
            id: id.to_owned(),
            name: "greet".to_owned(),
        },
    }
}

fn input(index: u32, piece: &str) -> StreamItem {
    StreamItem::Delta {
        index,
        delta: BlockDelta::Input(piece.to_owned()),
    }
}

fn whole(index: u32, value: Value) -> StreamItem {
    StreamItem::Delta {
        index,
        delta: BlockDelta::WholeInput(value),
    }
}

fn assembled(items: impl IntoIterator<Item = StreamItem>, stop: StopReason) -> Result<Response, Error> {
    let mut assembler = Assembler::default();
    for item in items.into_iter().chain([StreamItem::Stopped(stop)]) {
        assembler.item(&item)?;
    }
    assembler.finish()
}

fn inputs(items: impl IntoIterator<Item = StreamItem>) -> Vec<Value> {
    let response = assembled(items, StopReason::ToolCall).unwrap();
    let inputs = response.content.into_iter().filter_map(|block| match block {
        ContentBlock::ToolCall { input, .. } => Some(input),
        _ => None,
    });
    inputs.collect()
}

#[test]
fn t_05_nothing_null_and_empty_are_no_arguments() {
    let items = [
        call(0, "a"),
        call(1, "b"),
        input(1, ""),
        call(2, "c"),
        input(2, "null"),
        call(3, "d"),
        whole(3, Value::Null),
        call(4, "e"),
        whole(4, json!("")),
    ];
    assert_eq!(inputs(items), vec![json!({}); 5]);
}

#[test]
fn h_12_whole_arguments_after_pieces_do_not_double_them() {
    let items = [call(0, "a"), input(0, "{\"n\": 1}"), whole(0, json!({"n": 1}))];
    assert_eq!(inputs(items), [json!({"n": 1})]);
    // Some providers give them as JSON in a string.
    assert_eq!(inputs([call(0, "a"), whole(0, json!("{\"n\": 2}"))]), [json!({"n": 2})]);
}

#[test]
fn h_03_arguments_that_are_not_a_whole_object_are_an_error() {
    for piece in ["{\"path\":\"/a", "[1]", "7", "{} {}", "{\"a\": 1}}"] {
        let error = assembled([call(0, "a"), input(0, piece)], StopReason::ToolCall).unwrap_err();
        assert_eq!(error.code, "http-call-incomplete", "{piece}");
    }
}

#[test]
fn h_03_calls_of_an_answer_that_the_limit_cut_are_left_out() {
    let items = [call(0, "a"), input(0, "{}"), call(1, "b"), input(1, "{\"half")];
    let response = assembled(items, StopReason::MaxTokens).unwrap();
    assert_eq!(response.content, []);
}

#[test]
fn blocks_come_in_the_order_of_their_indexes_however_they_are_interleaved() {
    let text = |index, text: &str| StreamItem::Delta {
        index,
        delta: BlockDelta::Text(text.to_owned()),
    };
    let started = |index, block| StreamItem::Started { index, block };
    let items = [
        started(7, BlockStart::Text),
        started(2, BlockStart::Thinking { redacted: None }),
        text(7, "an"),
        text(2, "hm"),
        text(7, "swer"),
        StreamItem::Delta {
            index: 2,
            delta: BlockDelta::Signature("seal".to_owned()),
        },
    ];
    let response = assembled(items, StopReason::EndTurn).unwrap();
    let thinking = ContentBlock::Thinking {
        text: "hm".to_owned(),
        signature: Some("seal".to_owned()),
        redacted: None,
    };
    assert_eq!(response.content, [thinking, ContentBlock::text("answer")]);
}

#[test]
fn h_02_an_answer_without_a_stop_is_cut() {
    let mut assembler = Assembler::default();
    assembler.item(&call(0, "a")).unwrap();
    let error = assembler.finish().unwrap_err();
    assert_eq!((error.code, error.retry), ("http-stream-cut", Retry::Later));
}

#[test]
fn items_that_contradict_each_other_are_the_drivers_fault() {
    for items in [
        vec![input(0, "{}")],
        vec![call(0, "a"), call(0, "b")],
        vec![
            StreamItem::Started {
                index: 0,
                block: BlockStart::Text,
            },
            input(0, "{}"),
        ],
    ] {
        assert_eq!(
            assembled(items, StopReason::EndTurn).unwrap_err().code,
            "http-bad-items"
        );
    }
}

#[test]
fn h_11_counts_replace_the_ones_before() {
    let counts = |output| {
        StreamItem::Usage(Usage {
            input: 10,
            output,
            ..Usage::default()
        })
    };
    let response = assembled([counts(1), counts(12)], StopReason::EndTurn).unwrap();
    assert_eq!((response.usage.input, response.usage.output), (10, 12));
}

#[test]
fn blocks_count_beside_their_text_so_that_empty_ones_end_too() {
    for block in [BlockStart::Text, BlockStart::Thinking { redacted: None }] {
        let mut assembler = Assembler::default();
        let mut begin = |index| {
            assembler.item(&StreamItem::Started {
                index,
                block: block.clone(),
            })
        };
        let most = u32::try_from(MAX_ANSWER / BLOCK).unwrap();
        for index in 0..most {
            begin(index).unwrap();
        }
        assert_eq!(begin(most).unwrap_err().code, "http-answer-too-long");
    }
}

#[test]
fn everything_that_is_kept_counts() {
    let large = "x".repeat(MAX_ANSWER);
    let redacted = Some(large.clone());
    let begin = |block| StreamItem::Started { index: 0, block };
    for items in [
        vec![begin(BlockStart::Thinking { redacted })],
        vec![call(0, &large)],
        vec![call(0, "a"), input(0, &large)],
        vec![call(0, "a"), whole(0, json!({ "text": large }))],
    ] {
        let error = assembled(items, StopReason::EndTurn).unwrap_err();
        assert_eq!((error.code, error.retry), ("http-answer-too-long", Retry::Never));
    }
}

#[test]
fn an_answer_has_a_bounded_number_of_calls() {
    let calls = |n| (0..n).map(|index| call(index, "a"));
    assert_eq!(inputs(calls(256)).len(), MAX_CALLS);
    let error = assembled(calls(257), StopReason::ToolCall).unwrap_err();
    assert_eq!((error.code, error.retry), ("http-too-many-calls", Retry::Never));
}
