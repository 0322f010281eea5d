//! Tools that were not written in Rust and not for this host, built by `tests/guests/languages.sh`: a JavaScript tool of the tool interface,
//! Python and C components that export plain functions, and a C command.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Once,
};

use serde_json::{Value, json};

use crate::{
    docs,
    support::{ROOT, Sandbox, copy, files, lines},
};

/// A sandbox with the capsule of `tests/guests/capsule` in its folder `c`, or `None` after saying that the test is skipped.
fn capsule() -> Option<Sandbox> {
    let built = built()?;
    let sandbox = Sandbox::new();
    copy(&Path::new(ROOT).join("tests/guests/capsule"), &sandbox.work("c"));
    copy(&built, &sandbox.work("c/tools"));
    // Python takes long to compile: the first test does so for all of them, while they wait.
    static COMPILED: Once = Once::new();
    COMPILED.call_once_force(|_| {
        sandbox.run(&["tool", "list", "--capsule", "c"]).code(0);
    });
    Some(sandbox)
}

/// The folder with the components.
fn built() -> Option<PathBuf> {
    let done = capsule_fakes::program(
        "CAPSULE_TEST_GUESTS",
        "guests/built",
        "tests/guests/languages.sh .tools",
    );
    Some(done?.parent().unwrap().to_owned())
}

/// The same tools under limits that a misbehaving one reaches soon.
fn with_limits(sandbox: &Sandbox) {
    let manifest = fs::read_to_string(sandbox.work("c/capsule.yaml")).unwrap();
    let limits = "capabilities:\n  limits: {deadline: 2s, memory: 32MiB}\n";
    sandbox.write("c/limits.yaml", manifest.replace("capabilities:\n", limits));
}

#[test]
fn plain_functions_become_tools_with_a_schema_and_nothing_else_of_a_component_does() {
    let Some(sandbox) = capsule() else { return };
    let listed = sandbox
        .run(&["tool", "list", "--capsule", "c", "--json"])
        .code(0)
        .json();
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let expected = [
        "search",
        "calendar_parse",
        "calendar_weekday-of",
        "calendar_dates",
        "palette_parse",
        "palette_mix",
        "count",
    ];
    assert_eq!(names, expected);
    let channel = json!({"type": "integer", "minimum": 0, "maximum": 255});
    let colour = json!({
        "type": "object",
        "properties": {"red": channel, "green": channel, "blue": channel},
        "additionalProperties": false,
        "required": ["red", "green", "blue"],
    });
    let schema = json!({
        "type": "object",
        "properties": {"colours": {"type": "array", "items": colour}},
        "additionalProperties": false,
        "required": ["colours"],
    });
    assert_eq!(tools[5]["input_schema"], schema);
}

/// Name, status and text of every call of a run, in the order in which the model made them.
fn calls(records: &[Value]) -> Vec<(&str, &str, &str)> {
    let mut ends: Vec<_> = records.iter().filter(|record| record["kind"] == "call_end").collect();
    let number = |record: &Value| {
        record["call"]
            .as_str()
            .unwrap()
            .trim_start_matches("call-")
            .parse::<u32>()
    };
    ends.sort_by_key(|record| number(record).unwrap());
    ends.iter()
        .map(|record| {
            let of = |key: &str| record[key].as_str().unwrap();
            (
                of("name"),
                of("status"),
                record["result"][0].as_str().unwrap().trim_end(),
            )
        })
        .collect()
}

#[test]
fn a_run_calls_all_of_them_and_after_a_trap_the_next_call_is_clean() {
    let Some(sandbox) = capsule() else { return };
    let ran = sandbox.run(&["run", "c", "--json"]).code(0);
    let records = lines(&ran.out);
    let unreachable = "wasm trap: wasm `unreachable` instruction executed";
    let [search, weekday] =
        ["search", "calendar_weekday-of"].map(|name| format!("tool '{name}' trapped: {unreachable}"));
    let expected = [
        ("count", "passed", r#"{"lines": 2, "words": 9, "bytes": 60}"#),
        (
            "search",
            "passed",
            r##"[{"at":39,"text":"#ff0000"},{"at":51,"text":"#0000ff"}]"##,
        ),
        (
            "count",
            "failed",
            "tool 'count' failed: it exited with code 1\nend of its standard error:\ncount: /notes/other.md: No such file or directory",
        ),
        ("search", "failed", "tool 'search' failed: SyntaxError: expecting ')'"),
        ("calendar_parse", "passed", r#"{"year":2026,"month":2,"day":28}"#),
        (
            "calendar_parse",
            "failed",
            "tool 'calendar_parse' failed: day 30 must be in range 1..28 for month 2 in year 2026",
        ),
        ("palette_parse", "passed", r#"{"red":255,"green":0,"blue":0}"#),
        (
            "palette_parse",
            "failed",
            "tool 'palette_parse' failed: a colour is written as #rrggbb",
        ),
        ("search", "trapped", &search),
        ("calendar_weekday-of", "trapped", &weekday),
        (
            "palette_mix",
            "trapped",
            "tool 'palette_mix' trapped: wasm trap: integer divide by zero",
        ),
        ("search", "passed", r#"[{"at":11,"text":"2026"}]"#),
        ("calendar_weekday-of", "passed", "saturday"),
        ("calendar_dates", "passed", "5"),
        ("palette_mix", "passed", r#"{"red":127,"green":0,"blue":127}"#),
    ];
    assert_eq!(calls(&records), expected);
    let streamed: Vec<_> = records.iter().filter(|record| record["kind"] == "call_text").collect();
    assert_eq!(streamed.len(), 2, "{streamed:?}");
    assert_eq!(streamed[0]["text"], "2 found\n");
}

#[test]
fn a_tool_of_any_language_that_never_ends_is_stopped_by_its_deadline() {
    let Some(sandbox) = capsule() else { return };
    with_limits(&sandbox);
    let long = format!(r#"{{"text": "{}b", "pattern": "^(a+)+$"}}"#, "a".repeat(64));
    let day = r#"{"year": 2026, "month": 2, "day": 28}"#;
    let never = format!(r#"{{"start": {day}, "last": {day}, "every": 0}}"#);
    for (tool, arguments) in [("search", long), ("calendar_dates", never)] {
        let ran = sandbox.run(&["tool", "call", tool, &arguments, "--capsule", "c/limits.yaml"]);
        let says = format!("tool '{tool}' timed out after 2s (`limits.deadline`)");
        assert_eq!(ran.code(1).answer(), says);
    }
}

#[test]
fn javascript_can_answer_that_it_ran_out_of_memory() {
    let Some(sandbox) = capsule() else { return };
    with_limits(&sandbox);
    let arguments = r#"{"text": "0123456789", "pattern": "x", "repeat": 10000000}"#;
    let ran = sandbox.run(&["tool", "call", "search", arguments, "--capsule", "c/limits.yaml"]);
    assert_eq!(
        ran.code(1).answer(),
        "tool 'search' failed: InternalError: out of memory\n(it ran into the memory limit of 32MiB (`limits.memory`))"
    );
}

#[test]
fn doctor_finds_those_pure_that_import_nothing_of_wasi_and_all_fit_the_pool() {
    let Some(sandbox) = capsule() else { return };
    let report = sandbox.run(&["doctor", "c", "--json"]).code(0).json();
    let tools = report["tools"].as_array().unwrap();
    let profiles: Vec<_> = tools
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap(), tool["profile"].as_str().unwrap()))
        .collect();
    let expected = [
        ("search", "pure"),
        ("calendar_parse", "pure"),
        ("calendar_weekday-of", "pure"),
        ("calendar_dates", "pure"),
        ("palette_parse", "pure"),
        ("palette_mix", "pure"),
        ("count", "wasi"),
    ];
    assert_eq!(profiles, expected);
    for tool in tools {
        assert!(!tool["notes"].to_string().contains("place in the pool"), "{tool}");
    }
    // A program may read what is granted; the others could not if they wanted.
    assert_eq!(tools[0]["may"], json!([]));
    assert!(tools[6]["may"].to_string().contains("/notes"), "{}", tools[6]);
}

#[test]
fn a_component_is_compiled_at_its_first_load_and_taken_from_the_cache_at_the_second() {
    let Some(sandbox) = capsule() else { return };
    let sandbox = sandbox.private_cache();
    let search = "name: c\nversion: 0.1.0\ntools: [{name: search, component: tools/search.wasm}]\ninference: {transport: echo}\n";
    sandbox.write("c/capsule.yaml", search);
    let load = || {
        sandbox.run(&["tool", "list", "--capsule", "c"]).code(0);
        let cached = files(&sandbox.path("cache"));
        cached
            .iter()
            .map(|file| (file.clone(), fs::metadata(file).unwrap().ino()))
            .collect::<Vec<_>>()
    };
    let first = load();
    assert_eq!(first.len(), 1, "{first:?}");
    // A component that is compiled again is written to a new file.
    assert_eq!(load(), first);
}

#[test]
fn the_page_shows_this_capsule_and_its_commands_work() {
    let Some(sandbox) = capsule() else { return };
    let page = fs::read_to_string(format!("{ROOT}/docs/guests.md")).unwrap();
    let commands: Vec<_> = page.lines().filter(|line| line.starts_with("capsule ")).collect();
    assert!(commands.len() > 5, "{commands:?}");
    for command in commands {
        docs::shell(&sandbox, &format!("cd c && {command}")).code(0);
    }
    let yaml = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let tools = |text: &str| {
        let manifest: Value = serde_saphyr::from_str(text).unwrap();
        let tools = manifest["tools"].as_array().unwrap().clone();
        let entry = |tool: &Value| (tool["name"].clone(), tool["component"].clone(), tool["input"].clone());
        tools.iter().map(entry).collect::<Vec<_>>()
    };
    let whole = fs::read_to_string(sandbox.work("c/capsule.yaml")).unwrap();
    assert_eq!(tools(yaml.unwrap()), tools(&whole));
}
