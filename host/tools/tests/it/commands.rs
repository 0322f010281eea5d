//! Commands of `wasi:cli`, as other hosts run them.

use capsule_api::ToolStatus;
use capsule_tools::CommandInput;
use serde_json::json;

use crate::{
    guests,
    support::{Capsule, said},
};

const WELL: &str = "(i32.const 0)";
const BADLY: &str = "(i32.const 1)";
const BY_EXIT: &str = "(call $exit (i32.const 1)) unreachable";

#[tokio::test]
async fn a_command_gets_json_on_standard_input_and_what_it_prints_is_the_result() {
    let turn = Capsule::with("cat", guests::prints("stdin", WELL)).turn();
    let reply = turn.call("cat", json!({"city": "Bonn"})).await;
    assert_eq!(
        (reply.status, reply.joined_text()),
        said(ToolStatus::Passed, r#"{"city":"Bonn"}"#)
    );
}

#[tokio::test]
async fn a_command_gets_options_where_the_manifest_says_so() {
    let mut capsule = Capsule::with("args", guests::prints("arguments", WELL));
    capsule.sources[0].input = CommandInput::Argv;
    let reply = capsule.turn().call("args", json!({"city": "Bonn", "v": true})).await;
    assert_eq!(
        (reply.status, reply.joined_text()),
        said(ToolStatus::Passed, "args\n--city\nBonn\n-v\n")
    );
}

#[tokio::test]
async fn a_command_that_ends_badly_has_failed_and_its_standard_error_says_why() {
    let capsule = Capsule::new()
        .tool("returns", guests::prints("arguments", BADLY))
        .tool("exits", guests::prints("arguments", BY_EXIT));
    let turn = capsule.turn();
    for name in ["returns", "exits"] {
        let text = format!(
            "tool '{name}' failed: it exited with code 1\nend of its standard error:\nno such city\n\
             end of its standard output:\n{name}"
        );
        assert_eq!(turn.ask(name).await, said(ToolStatus::Failed, &text));
    }
}

#[tokio::test]
async fn a_command_that_exits_with_success_has_passed() {
    let turn = Capsule::with(
        "exits",
        guests::prints("arguments", "(call $exit (i32.const 0)) unreachable"),
    )
    .turn();
    assert_eq!(turn.ask("exits").await, said(ToolStatus::Passed, "exits\n"));
}
