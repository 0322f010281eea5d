use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::{StopReason, ToolDefinition, Usage};

fn problem(text: &str) -> String {
    match Tape::parse(text.as_bytes()).unwrap_err() {
        NotATape::Malformed(problem) => problem,
        NotATape::Version(version) => format!("version {version}"),
    }
}

#[test]
fn a_tape_has_streams_and_whole_answers_and_what_is_written_reads_back_as_the_same() {
    let text = r#"{"version": 1, "capsule": "demo", "entries": [
        {"request": {"roles": ["user"], "tools": ["t"], "last": ["hi"]}, "wire": "w", "status": 200, "chunks": [[0, "a"], [12, "b"]]},
        {"request": {"roles": ["user"]}, "response": {"stop_reason": "end_turn", "content": [{"type": "text", "text": "so"}]}}
    ]}"#;
    let tape = Tape::parse(text.as_bytes()).unwrap();
    let TapeEntry::Stream(stream) = &tape.entries[0] else {
        panic!("the first entry is a stream")
    };
    assert_eq!(stream.chunks, [(0, "a".to_owned()), (12, "b".to_owned())]);
    let TapeEntry::Response(answer) = &tape.entries[1] else {
        panic!("the second entry is an answer")
    };
    assert_eq!(answer.response.stop_reason, StopReason::EndTurn);
    let expected = r#"{
  "version": 1,
  "capsule": "demo",
  "entries": [
    {
      "request": {"roles":["user"],"tools":["t"],"last":["hi"]},
      "wire": "w",
      "status": 200,
      "chunks": [
        [0, "a"],
        [12, "b"]
      ]
    },
    {
      "request": {"roles":["user"],"tools":[],"last":[]},
      "response": {"stop_reason":"end_turn","content":[{"type":"text","text":"so"}]}
    }
  ]
}
"#;
    assert_eq!(tape.to_text(), expected);
    assert_eq!(Tape::parse(expected.as_bytes()).unwrap(), tape);
}

#[test]
fn fields_of_a_later_program_are_passed_over_and_another_version_is_told_before_anything_else() {
    let text = r#"{"version": 1, "made_by": "later", "entries": [
        {"request": {"roles": ["user"], "hash": "x"}, "wire": "w", "status": 200, "chunks": [], "headers": {}}]}"#;
    let tape = Tape::parse(text.as_bytes()).unwrap();
    assert_eq!(tape.entries[0].shape().roles, ["user"]);
    assert_eq!(problem(r#"{"version": 2, "whatever": true}"#), "version 2");
}

#[test]
fn what_is_no_tape_is_told_with_the_place() {
    assert_eq!(problem("{}"), "it has no `version`");
    assert!(problem("not json").starts_with("expected ident"));
    let cut = r#"{"version": 1, "entries": [{"request": {"roles": []}, "wire": "w", "status": 200}]}"#;
    assert_eq!(problem(cut), "entry 1: missing field `chunks`");
    let misspelt = r#"{"version": 1, "entries": [{"request": {"rolls": []}, "response": {}}]}"#;
    assert_eq!(problem(misspelt), "entry 1: missing field `roles`");
}

#[test]
fn a_shape_is_roles_tools_and_what_is_new() {
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: None,
        parameters: json!({"type": "object"}),
    };
    let content = |text: &str| vec![ContentBlock::text(text)];
    let result = |text: &str| Message::Tool {
        tool_call_id: "a".to_owned(),
        is_error: false,
        content: content(text),
    };
    let user = Message::User { content: content("go") };
    let assistant = Message::Assistant { content: Vec::new() };
    let request = Request {
        model: "m".to_owned(),
        max_tokens: 1,
        system: Some("/a/path/that/no/tape/holds".to_owned()),
        messages: vec![user.clone(), assistant, result("A"), result("B")],
        tools: vec![tool("write"), tool("read")],
        params: Map::new(),
        continuation_id: None,
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let expected = RequestShape {
        roles: words(&["user", "assistant", "tool", "tool"]),
        tools: words(&["read", "write"]),
        last: words(&["A", "B"]),
    };
    assert_eq!(RequestShape::of(&request), expected);
    let first = Request {
        messages: vec![user],
        ..request
    };
    assert_eq!(RequestShape::of(&first).last, ["go"]);
}

proptest! {
    #[test]
    fn any_tape_reads_back_as_it_was_written(
        capsule in ".*",
        wire in ".*",
        status: u16,
        last in proptest::collection::vec(".*", 0..3),
        chunks in proptest::collection::vec((any::<u64>(), ".*"), 0..5),
        answer in ".*",
    ) {
        let request = RequestShape { roles: vec!["user".to_owned()], tools: Vec::new(), last };
        let response = Response {
            stop_reason: StopReason::EndTurn,
            content: vec![ContentBlock::text(answer)],
            continuation_id: None,
            usage: Usage::default(),
        };
        let tape = Tape::new(capsule, vec![
            TapeEntry::Stream(TapedStream { request: request.clone(), wire, status, chunks }),
            TapeEntry::Response(TapedResponse { request, response }),
        ]);
        prop_assert_eq!(Tape::parse(tape.to_text().as_bytes()).unwrap(), tape);
    }

    #[test]
    fn any_bytes_are_a_tape_or_are_refused(bytes: Vec<u8>) {
        let _ = Tape::parse(&bytes);
    }
}
