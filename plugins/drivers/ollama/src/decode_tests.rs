use capsule_api::serde_json::json;

use super::*;

fn decoded<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Vec<StreamItem>, Error> {
    let (mut decoder, mut items) = (decoder(), Vec::new());
    for data in lines {
        let (event, data) = (String::new(), data.to_owned());
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

#[test]
fn h_01_calls_come_whole_and_are_told_apart_whatever_their_index() {
    let started = |index, block| StreamItem::Started { index, block };
    let call = |index| {
        let (id, name) = (String::new(), "demo__greet".to_owned());
        started(index, BlockStart::Call { id, name })
    };
    let whole = |index, name: &str| delta(index, BlockDelta::WholeInput(json!({"name": name})));
    let counts = Usage {
        input: 20,
        output: 18,
        ..Usage::default()
    };
    assert_eq!(
        decoded(include_str!("../tests/streams/call.jsonl").lines()).unwrap(),
        [
            started(0, BlockStart::Thinking { redacted: None }),
            text(0, "Hm."),
            StreamItem::Ended { index: 0 },
            started(1, BlockStart::Text),
            text(1, "I will "),
            text(1, "greet."),
            StreamItem::Ended { index: 1 },
            call(2),
            whole(2, "Ada"),
            StreamItem::Ended { index: 2 },
            call(3),
            whole(3, "Bo"),
            StreamItem::Ended { index: 3 },
            StreamItem::Usage(counts),
            StreamItem::Stopped(StopReason::ToolCall),
        ]
    );
}

#[test]
fn h_10_every_reason_has_its_meaning_and_an_unknown_one_is_an_error_that_names_it() {
    let stop = |reason: &str| decoded([json!({"done": true, "done_reason": reason}).to_string().as_str()]);
    assert_eq!(stop("stop").unwrap(), [StreamItem::Stopped(StopReason::EndTurn)]);
    assert_eq!(stop("length").unwrap(), [StreamItem::Stopped(StopReason::MaxTokens)]);
    assert_eq!(
        decoded([r#"{"done":true}"#]).unwrap(),
        [StreamItem::Stopped(StopReason::EndTurn)]
    );
    let error = stop("unload").unwrap_err();
    assert_eq!(error.code, "ollama-stop-unknown");
    assert!(error.message.contains("`unload`"));
}

#[test]
fn h_02_an_error_line_and_a_line_that_is_not_json_are_failures() {
    assert_eq!(
        decoded([r#"{"error":"unexpected EOF"}"#]).unwrap_err().code,
        "ollama-server"
    );
    assert_eq!(decoded(["<html>"]).unwrap_err().code, "ollama-protocol");
}
