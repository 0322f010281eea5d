//! Manifests and components that are not what they should be: each an error that says where and what to do.

use std::fs;

use crate::{
    guests,
    support::{Ran, Sandbox, prebuilt},
};

const HEAD: &str = "name: t\nversion: 0.1.0\ndescription: A test.\ninference: {transport: echo}\n";

fn with_tool(component: &[u8]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("t/tool.wasm", component);
    sandbox.write(
        "t/capsule.yaml",
        format!("{HEAD}tools:\n  - {{name: tool, component: tool.wasm}}\n"),
    );
    sandbox
}

fn refused(sandbox: &Sandbox) -> Ran {
    let ran = sandbox.run(&["run", "t", "-t", "x"]).code(2);
    assert_eq!(ran.out, "");
    assert_eq!(sandbox.run(&["doctor", "t"]).code(2).err, ran.err);
    assert_eq!(sandbox.leftovers(), [] as [std::path::PathBuf; 0]);
    ran
}

#[test]
fn broken_yaml_is_shown_where_it_breaks() {
    let sandbox = Sandbox::new();
    sandbox.write("t/capsule.yaml", "name: t\nversion: 0.1.0\ntools: [\n");
    refused(&sandbox).says(&["t/capsule.yaml:3:8:", "bracket", "hint:", "manifest-syntax"]);
    sandbox.write("t/capsule.yaml", "name: t\n\tversion: 0.1.0\n");
    refused(&sandbox).says(&["t/capsule.yaml:2:", "tab"]);
}

#[test]
fn all_that_is_wrong_with_a_manifest_is_said_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "t/capsule.yaml",
        "name: T!\nversion: one\ntolls: []\ninference:\n  transport: echo\n  modle: x\n",
    );
    let ran = refused(&sandbox);
    insta::assert_snapshot!(sandbox.filtered(&ran.err), @r#"
    t/capsule.yaml:1:7: name: expected 1 to 100 small letters, digits and `-`, found "T!"
      1 | name: T!
        |       ^
    t/capsule.yaml:2:10: version: expected a semantic version such as `1.4.0`, found "one"
      2 | version: one
        |          ^
    t/capsule.yaml:3:1: unknown key `tolls`, did you mean `tools`?
      3 | tolls: …
        | ^
    t/capsule.yaml:6:3: inference: unknown key `modle`, did you mean `model`?
      6 |   modle: …
        |   ^
      manifest-invalid · `capsule explain manifest-invalid`
    "#);
}

#[test]
fn a_manifest_that_is_not_there_is_an_error_with_a_way_out() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["run", "nowhere", "-t", "x"])
        .code(2)
        .says(&["nowhere", "capsule new"]);
    sandbox.write("t/capsule.yaml", [0xff, 0xfe, 0x00]);
    refused(&sandbox).says(&["UTF-8"]);
    sandbox.write("t/capsule.yaml", "");
    refused(&sandbox).says(&["empty"]);
}

#[test]
fn a_missing_component_is_named() {
    let sandbox = with_tool(b"");
    fs::remove_file(sandbox.work("t/tool.wasm")).unwrap();
    refused(&sandbox).says(&["`tool`", "tool.wasm", "No such file", "tool-file", "hint:"]);
}

#[test]
fn a_truncated_component_is_named() {
    let whole = fs::read(prebuilt("hello.wasm")).unwrap();
    for length in [0, 4, 100, whole.len() / 2, whole.len() - 1] {
        refused(&with_tool(&whole[..length])).says(&["`tool`", "tool.wasm", "hint:", "capsule explain tool-"]);
    }
}

#[test]
fn what_is_no_component_is_named() {
    let module = wat::parse_str("(module)").unwrap();
    refused(&with_tool(&module)).says(&["`tool`", "tool-not-a-component", "wasm32-wasip2"]);
    refused(&with_tool(b"#!/bin/sh\necho hello\n")).says(&["`tool`", "tool-not-a-component"]);
}

#[test]
fn unmet_imports_are_named() {
    let sandbox = with_tool(&guests::needs_a_database());
    refused(&sandbox).says(&["`tool`", "acme:database/query@1.0.0", "tool-imports-unmet", "hint:"]);
}

#[test]
fn every_tool_that_cannot_be_loaded_is_told() {
    let sandbox = with_tool(&guests::needs_a_database());
    let tools = "tools:\n  - {name: tool, component: tool.wasm}\n  - {name: gone, component: gone.wasm}\n";
    sandbox.write("t/capsule.yaml", format!("{HEAD}{tools}"));
    refused(&sandbox).says(&["`tool`", "acme:database", "`gone`", "gone.wasm"]);
}

#[test]
fn a_granted_directory_that_is_missing_is_an_error() {
    let sandbox = Sandbox::new().with_hello();
    fs::remove_dir_all(sandbox.work("hello/notes")).unwrap();
    sandbox
        .run(&["run", "hello"])
        .code(2)
        .says(&["notes", "tool-grant-directory", "hint:"]);
}
