use capsule_api::StopReason;

use super::*;

fn error(text: &str) -> (&'static str, String) {
    let error = parse(text.as_bytes()).unwrap_err();
    (error.code, error.message.clone())
}

#[test]
fn a_tape_has_streams_and_whole_answers() {
    let text = r#"{"version": 1, "capsule": "demo", "entries": [
        {"request": {"roles": ["user"], "tools": ["t"], "last": ["hi"]}, "wire": "w", "status": 200, "chunks": [[0, "a"], [12, "b"]]},
        {"request": {"roles": ["user"]}, "response": {"stop_reason": "end_turn", "content": [{"type": "text", "text": "so"}]}}
    ]}"#;
    let tape = parse(text.as_bytes()).unwrap();
    let Entry::Stream(stream) = &tape.entries[0] else {
        panic!("the first entry is a stream")
    };
    assert_eq!(stream.chunks, [(0, "a".to_owned()), (12, "b".to_owned())]);
    let Entry::Response(answer) = &tape.entries[1] else {
        panic!("the second entry is an answer")
    };
    assert_eq!(answer.response.stop_reason, StopReason::EndTurn);
    // What is written reads back as the same.
    let written = serde_json::to_string(&tape).unwrap();
    assert_eq!(parse(written.as_bytes()).unwrap(), tape);
}

#[test]
fn another_version_is_told_before_anything_else_is_judged() {
    let (code, message) = error(r#"{"version": 2, "whatever": true}"#);
    assert_eq!(
        (code, message.as_str()),
        ("cassette-version", "it has version 2; this program reads 1")
    );
}

#[test]
fn what_is_no_tape_is_told_with_the_place() {
    assert_eq!(error("{}").1, "it has no `version`");
    assert_eq!(error("not json").0, "cassette-malformed");
    let (code, message) =
        error(r#"{"version": 1, "entries": [{"request": {"roles": []}, "wire": "w", "status": 200}]}"#);
    assert_eq!(
        (code, message.as_str()),
        ("cassette-malformed", "entry 1: missing field `chunks`")
    );
    let (_, message) = error(r#"{"version": 1, "entries": [{"request": {"rolls": []}, "response": {}}]}"#);
    assert!(message.starts_with("entry 1: unknown field `rolls`"), "{message}");
}

#[test]
fn a_file_that_is_too_large_is_not_read_into_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tape.json");
    File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
    assert_eq!(load(&path).unwrap_err().code, "cassette-too-large");
}
