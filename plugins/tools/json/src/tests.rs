use std::fs;

use capsule_guest::{Error, Json, Output, StateEffect, Tool, json};
use proptest::prelude::*;

use crate::JsonTool;

fn on(input: Json, filter: &str) -> Result<String, String> {
    said(json!({"filter": filter, "input": input}))
}

fn said(arguments: Json) -> Result<String, String> {
    JsonTool::call(arguments)
        .map(|output| output.data().to_owned())
        .map_err(|error| error.message().to_owned())
}

fn ok(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn failed(text: &str) -> Result<String, String> {
    Err(text.to_owned())
}

#[test]
fn a_filter_gives_one_result_a_line() {
    let stock = json!({"items": [{"name": "pump", "price": 12.5}, {"name": "valve", "price": 3}]});
    let filter = ".items[] | select(.price > 2) | {name, half: (.price / 2)}";
    assert_eq!(
        on(stock.clone(), filter),
        ok("{\"name\":\"pump\",\"half\":6.25}\n{\"name\":\"valve\",\"half\":1.5}")
    );
    assert_eq!(on(stock.clone(), "[.items[].price] | add"), ok("15.5"));
    assert_eq!(
        on(stock.clone(), ".items | group_by(.price > 5) | map(length)"),
        ok("[1,1]")
    );
    assert_eq!(on(stock, ".nothing[]?"), ok("[no results]"));
    assert_eq!(on(json!(null), "."), ok("null"));

    let call = JsonTool::call(json!({"filter": ".[]", "input": ["é"], "raw": true}));
    assert_eq!(
        call,
        Ok(Output::text("é").summary("1 result").state_effect(StateEffect::Read))
    );
}

#[test]
fn numbers_keep_their_digits() {
    let big = json!({"id": 9007199254740993u64, "price": 0.1});
    assert_eq!(on(big, "."), ok("{\"id\":9007199254740993,\"price\":0.1}"));
}

#[test]
fn a_file_may_hold_several_values() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    fs::write(&path, "\u{feff}{\"n\": 1}\n{\"n\": 2}\n").unwrap();
    let path = path.to_str().unwrap();

    assert_eq!(said(json!({"filter": ".n", "path": path})), ok("1\n2"));
    assert_eq!(
        said(json!({"filter": "map(.n) | add", "path": path, "slurp": true})),
        ok("3")
    );

    fs::write(path, "{\"n\": 1}\n{\"n\" 2}").unwrap();
    let message = said(json!({"filter": ".n", "path": path})).unwrap_err();
    assert!(
        message.starts_with(&format!("'{path}' is not JSON: byte offset 14: ")),
        "{message}"
    );

    fs::write(path, "[".repeat(1_000_000)).unwrap();
    let message = format!("'{path}' has more than 500 arrays and objects inside one another");
    let expected = Error::new(message)
        .metadata("state_effect", "read")
        .metadata("resource_id", path);
    assert_eq!(JsonTool::call(json!({"filter": ".", "path": path})), Err(expected));
}

#[test]
fn a_wrong_filter_is_told_with_its_place() {
    let wrong = |filter: &str| on(json!(null), filter);
    assert_eq!(
        wrong(".a |\n  nope(1)"),
        failed("the filter is wrong in line 2, column 3: there is no filter 'nope' with 1 arguments")
    );
    assert_eq!(
        wrong("[.a"),
        failed("the filter is wrong in line 1, column 4: it ends where closing bracket should be")
    );
    assert_eq!(
        wrong(".a | | .b"),
        failed("the filter is wrong in line 1, column 6: '|' is where term should be")
    );
    assert_eq!(
        wrong(".a |"),
        failed("the filter is wrong in line 1, column 5: it ends where term should be")
    );
    assert_eq!(
        wrong("$x"),
        failed("the filter is wrong in line 1, column 1: there is no variable '$x'")
    );
    assert_eq!(
        wrong("env"),
        failed("the filter is wrong in line 1, column 1: there is no filter 'env'")
    );
    let module = wrong("include \"x\"; .").unwrap_err();
    assert!(module.contains("there is no module 'x'"), "{module}");
}

#[test]
fn a_filter_that_fails_says_why_and_how_far_it_came() {
    assert_eq!(
        on(json!({"a": 1}), ".a | .b"),
        failed("the filter failed: cannot index 1 with \"b\"")
    );
    assert_eq!(
        on(json!([1, "x"]), ".[] | . + 1"),
        failed("the filter failed after 1 results: cannot calculate \"x\" + 1")
    );
    assert_eq!(
        on(json!(null), "halt"),
        failed("the filter failed: it calls halt, which has nothing to end here")
    );
    assert_eq!(on(json!(null), "error(\"so\")"), failed("the filter failed: \"so\""));
}

#[test]
fn results_are_bounded() {
    let endless = said(json!({"filter": "repeat(1)", "input": null, "max_results": 2}));
    assert_eq!(endless, ok("1\n1\n[there is more after the first 2: filter for less]"));
    let long = said(json!({"filter": "\"x\" * 300000 | ., .", "input": null})).unwrap();
    assert_eq!(
        long.len(),
        300_002 + 1 + "[there is more after the first 1: filter for less]".len()
    );
    let longer = on(json!(null), "\"x\" * 600000");
    assert_eq!(
        longer,
        failed("the first result alone has 600002 bytes; at most 524288 are shown: filter for less")
    );
}

#[test]
fn there_is_one_input() {
    let both = said(json!({"filter": ".", "input": 1, "path": "/x"}));
    assert_eq!(both, failed("give either input or path, not both"));
    let none = said(json!({"filter": "."}));
    assert_eq!(none, failed("give the JSON to work on: input, or the path of a file"));
}

proptest! {
    #[test]
    fn any_text_is_a_filter_or_an_error(filter in "[ .a-c\\[\\]{}()|,:;\"$@?1#\n\\\\-]{1,24}") {
        let _ = said(json!({"filter": filter, "input": {"a": [1, {"b": "c"}]}, "max_results": 10}));
    }

    #[test]
    fn the_identity_changes_nothing(text in any::<String>(), number in any::<i64>()) {
        let value = json!({"t": text, "n": [number, null, true]});
        let said = on(value.clone(), ".").unwrap();
        prop_assert_eq!(said.parse::<Json>().unwrap(), value);
    }
}
