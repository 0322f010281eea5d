//! Components that export plain functions, as they are written for other hosts.

use capsule_api::{ToolReply, ToolStatus};
use capsule_tools::ToolSource;
use serde_json::{Value, json};

use crate::{
    guests::{MEMORY, componentize},
    support::{Capsule, said},
};

/// A component whose function `echo` returns the list that it gets, of these types.
fn echoes(types: &str, item: &str) -> Vec<u8> {
    let wat = format!(
        r#"(module {MEMORY}
             (func (export "echo") (param $p i32) (param $n i32) (result i32)
               (i32.store (i32.const 16) (local.get $p))
               (i32.store (i32.const 20) (local.get $n))
               (i32.const 16)))"#
    );
    componentize(
        &format!("{types} export echo: func(items: list<{item}>) -> list<{item}>;"),
        &wat,
    )
}

/// Greets by name; fails without one.
fn greets() -> Vec<u8> {
    let wat = format!(
        r#"(module {MEMORY}
             (data (i32.const 64) "who?")
             (func (export "greet") (param $p i32) (param $n i32) (result i32)
               (i32.store8 (i32.const 16) (i32.eqz (local.get $n)))
               (i32.store (i32.const 20) (local.get $p))
               (i32.store (i32.const 24) (local.get $n))
               (if (i32.eqz (local.get $n)) (then
                 (i32.store (i32.const 20) (i32.const 64))
                 (i32.store (i32.const 24) (i32.const 4))))
               (i32.const 16)))"#
    );
    componentize("export greet: func(name: string) -> result<string, string>;", &wat)
}

fn calculator(interface: &str) -> Vec<u8> {
    let world =
        format!("export {interface}: interface {{ add: func(a: u32, b: u32) -> u32; negate: func(a: s32) -> s32; }}");
    let wat = format!(
        r#"(module
             (func (export "{interface}#add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
             (func (export "{interface}#negate") (param i32) (result i32) (i32.sub (i32.const 0) (local.get 0))))"#
    );
    componentize(&world, &wat)
}

#[tokio::test]
async fn one_function_is_a_tool_of_the_entry_s_name_with_a_schema_from_its_types() {
    let turn = Capsule::with("hello", greets()).turn();
    let tool = &turn.toolbox.catalogue().tools[0];
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "additionalProperties": false,
        "required": ["name"],
    });
    assert_eq!((tool.name.as_str(), &tool.input_schema), ("hello", &schema));
    assert_eq!(turn.call("hello", json!({"name": "Ada"})).await, ToolReply::text("Ada"));
    let failed = ToolReply::new(ToolStatus::Failed, "tool 'hello' failed: who?");
    assert_eq!(turn.call("hello", json!({"name": ""})).await, failed);
    let reply = turn.call("hello", json!({"nome": "Ada"})).await;
    assert_eq!(reply.status, ToolStatus::Invalid);
}

#[tokio::test]
async fn several_functions_are_tools_of_both_names() {
    let mut capsule = Capsule::with("calc", calculator("calculator"));
    capsule.sources[0].description = Some("Calculates.".into());
    let turn = capsule.turn();
    let tools: Vec<_> = turn
        .toolbox
        .catalogue()
        .tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.description.as_str()))
        .collect();
    assert_eq!(
        tools,
        [
            ("calc_add", "Calculates. Function `calculator#add`."),
            ("calc_negate", "Calculates. Function `calculator#negate`."),
        ]
    );
    assert_eq!(
        turn.call("calc_add", json!({"a": 40, "b": 2})).await,
        ToolReply::text("42")
    );
    assert_eq!(turn.call("calc_negate", json!({"a": 7})).await, ToolReply::text("-7"));
    let beyond = turn.call("calc_add", json!({"a": -1, "b": 2})).await;
    let text =
        "tool 'calc_add' was not run: the arguments do not fit its schema:\n- at /a: -1 is less than the minimum of 0";
    assert_eq!(beyond, ToolReply::new(ToolStatus::Invalid, text));
}

/// What goes in as JSON comes back as the same JSON, through the component's own types.
/// A function `greet`, and beside it one called `init`, as the builder of JavaScript leaves it when its parameters are `parameters`.
fn greets_beside_init(parameters: &str, flat: &str) -> Vec<u8> {
    let wat = format!(
        r#"(module {MEMORY}
             (func (export "greet") (result i32) (i32.const 7))
             (func (export "init") (param {flat}) (result i32) (i32.const 16)))"#
    );
    let world = format!("export greet: func() -> u32; export init: func({parameters}) -> result<_, string>;");
    componentize(&world, &wat)
}

#[test]
fn the_function_that_a_builder_left_is_no_tool_and_one_that_is_only_called_so_is() {
    let names = |component: Vec<u8>| {
        let turn = Capsule::with("hello", component).turn();
        let tools = turn.toolbox.catalogue().tools.iter();
        tools.map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    let left = "shim: string, script: string, entry-path: option<string>, disable-gc: bool";
    assert_eq!(
        names(greets_beside_init(left, "i32 i32 i32 i32 i32 i32 i32 i32")),
        ["hello"]
    );
    assert_eq!(
        names(greets_beside_init("script: string", "i32 i32")),
        ["hello_greet", "hello_init"]
    );
}

#[tokio::test]
async fn values_of_every_type_pass_through_a_component() {
    let types = "record point { x: u8, note: option<string> }
        variant shape { none, circle(f64), polygon(list<point>) }
        enum colour { red, dark-blue }
        flags access { read, write }";
    let rows: &[(&str, Value)] = &[
        ("u64", json!([0, 9_007_199_254_740_991u64, "18446744073709551615"])),
        ("s64", json!([-1, "-9223372036854775808"])),
        ("f32", json!([0.1, "NaN", "-Infinity"])),
        ("char", json!(["é", "x"])),
        ("list<u8>", json!(["", "AP8="])),
        ("tuple<bool, s16>", json!([[true, -3]])),
        ("point", json!([{"x": 1, "note": null}, {"x": 2, "note": "n"}])),
        (
            "shape",
            json!(["none", {"circle": 1.5}, {"polygon": [{"x": 1, "note": null}]}]),
        ),
        ("colour", json!(["dark-blue", "red"])),
        ("access", json!([[], ["read", "write"]])),
        ("option<option<bool>>", json!([null, {"some": null}, {"some": true}])),
        ("result<u8, string>", json!([{"ok": 1}, {"err": "no"}])),
        ("result", json!([{"ok": null}, {"err": null}])),
    ];
    for (item, items) in rows {
        let turn = Capsule::with("echo", echoes(types, item)).turn();
        let reply = turn.call("echo", json!({"items": items})).await;
        assert_eq!(
            (reply.status, reply.joined_text()),
            said(ToolStatus::Passed, &items.to_string()),
            "{item}"
        );
    }
}

#[tokio::test]
async fn a_schema_of_the_entry_counts_and_the_types_still_hold() {
    let mut capsule = Capsule::with("hello", greets());
    capsule.sources[0].input_schema = Some(json!({"type": "object"}));
    let reply = capsule.turn().call("hello", json!({"name": 1})).await;
    let text = "tool 'hello' was not run: the arguments do not fit its function: at /name: expected a text";
    assert_eq!(reply, ToolReply::new(ToolStatus::Invalid, text));
}

#[test]
fn one_schema_cannot_be_that_of_several_functions() {
    let mut capsule = Capsule::with("calc", calculator("calculator"));
    capsule.sources[0].input_schema = Some(json!({"type": "object"}));
    let message = "tool `calc` (calc.wasm): the entry gives one input schema for several functions: \
        calculator#add, calculator#negate";
    assert_eq!(capsule.refusals(), [("tool-schema", message.to_owned())]);
}

/// Returns so many bytes as a list of them.
pub(crate) fn bytes(count: u32) -> Vec<u8> {
    let wat = format!(
        r#"(module {MEMORY}
             (func (export "bytes") (result i32)
               (drop (memory.grow (i32.const 1000)))
               (i32.store (i32.const 16) (i32.const 65536))
               (i32.store (i32.const 20) (i32.const {count}))
               (i32.const 16)))"#
    );
    componentize("export bytes: func() -> list<u8>;", &wat)
}

#[tokio::test]
async fn w_04_a_list_of_bytes_is_cut_like_a_text_and_one_that_would_swell_in_the_host_is_refused() {
    let (status, text) = Capsule::with("bytes", bytes(3_000_000)).turn().ask("bytes").await;
    assert_eq!(status, ToolStatus::Passed);
    assert!(
        text.ends_with("[cut: the first 1048576 of 4000000 bytes; `limits.output` is 1MiB]"),
        "{}",
        &text[text.len() - 200..]
    );
    // As values each byte takes many: what a call may hold of them is bounded before any is made.
    let swells = Capsule::with("bytes", bytes(50_000_000)).turn().ask("bytes").await;
    let text = "tool 'bytes' was stopped: too much data is being copied between the host and the guest: \
        fuel allocated for hostcalls has been exhausted";
    assert_eq!(swells, said(ToolStatus::Trapped, text));
}

#[test]
fn resources_are_refused_with_the_reason() {
    let world = "export db: interface { resource connection { query: func() -> string; } open: func() -> connection; }";
    let wat = format!(
        r#"(module {MEMORY}
             (func (export "db#[method]connection.query") (param i32) (result i32) unreachable)
             (func (export "db#open") (result i32) unreachable))"#
    );
    let message = "tool `db` (db.wasm): these functions cannot be tools: \
        `db#[method]connection.query`: it belongs to a resource, which ends with the call; \
        `db#open`: its result holds a resource, which ends with the call";
    assert_eq!(
        Capsule::with("db", componentize(world, &wat)).refusals(),
        [("tool-function", message.to_owned())]
    );
}

#[test]
fn t_06_two_tools_of_one_name_are_an_error_that_names_both() {
    let mut capsule = Capsule::with("calc", calculator("calculator")).tool("calc_add", greets());
    let message = "tool `calc_add` (calc_add.wasm): two tools are called `calc_add`: \
        calc.wasm, function `calculator#add` and calc_add.wasm";
    assert_eq!(capsule.refusals(), [("tool-duplicate", message.to_owned())]);
    // Two components that export functions of the same names are told apart by their entries.
    capsule.sources.pop();
    let path = capsule.path("calc.wasm");
    capsule.sources.push(ToolSource::new("other", path));
    let names: Vec<_> = capsule
        .load()
        .unwrap()
        .catalogue()
        .tools
        .iter()
        .map(|tool| tool.name.clone())
        .collect();
    assert_eq!(names, ["calc_add", "calc_negate", "other_add", "other_negate"]);
}

#[tokio::test]
async fn t_03_arguments_are_held_against_the_original_schema() {
    let mut capsule = Capsule::with("echo", crate::guests::echo().build());
    let branch = |name: &str| json!({"properties": {(name): {"type": "string"}}, "required": [name]});
    capsule.sources[0].input_schema = Some(json!({"type": "object", "oneOf": [branch("a"), branch("b")]}));
    let turn = capsule.turn();
    let shown = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "description": "Give exactly one of: a; b.",
    });
    assert_eq!(turn.toolbox.catalogue().tools[0].input_schema, shown);
    assert_eq!(turn.call("echo", json!({"a": "x"})).await.status, ToolStatus::Passed);
    let both = turn.call("echo", json!({"a": "x", "b": "y"})).await;
    assert_eq!(both.status, ToolStatus::Invalid);
    assert!(
        both.joined_text().contains("more than one of the schemas"),
        "{}",
        both.joined_text()
    );
}
