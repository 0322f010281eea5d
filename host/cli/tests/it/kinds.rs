//! What a capsule may be made of besides tools of the tool interface: skills, and a script in place of a model.

use std::fs;

use crate::{
    guests,
    support::{Sandbox, kinds, lines, prebuilt},
};

fn capsule(manifest: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let hello = fs::read(prebuilt("hello.wasm")).unwrap();
    sandbox.write("c/hello.wasm", hello);
    sandbox.write("c/capsule.yaml", format!("name: c\nversion: 0.1.0\n{manifest}"));
    sandbox
}

#[test]
fn a_script_runs_the_tools_without_a_model_and_what_it_shows_is_the_answer() {
    let sandbox = capsule("script: greet.wasm\ntools: [{name: hello, component: hello.wasm}]\n");
    sandbox.write("c/greet.wasm", guests::greeting_script());
    let ran = sandbox.run(&["run", "c"]).code(0);
    assert_eq!(ran.answer(), "Hello, Ada!");
    let ran = sandbox.run(&["run", "c", "--json"]).code(0);
    let records = lines(&ran.out);
    let calls: Vec<_> = records.iter().filter(|record| record["call"] == "script/1").collect();
    assert_eq!(calls.len(), 2, "{:?}", kinds(&records));
    assert_eq!(records[0]["transport"], "script");
}

#[test]
fn a_script_that_traps_fails_the_run_with_its_reason() {
    let sandbox = capsule("script: greet.wasm\n");
    sandbox.write("c/greet.wasm", guests::greeting_script());
    let ran = sandbox.run(&["run", "c"]).code(1);
    assert!(
        ran.err.contains("wasm `unreachable` instruction executed"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("cli-script"), "{}", ran.err);
}

#[test]
fn a_skill_is_a_tool_called_as_its_file() {
    let sandbox = capsule("tools: [{skill: house-style.md}]\ninference: {transport: echo}\n");
    sandbox.write("c/house-style.md", "# House style\n\nShort sentences.\n");
    let ran = sandbox
        .run(&["tool", "call", "house-style", "{}", "--capsule", "c"])
        .code(0);
    assert_eq!(ran.out.trim_end(), "# House style\n\nShort sentences.");
}
