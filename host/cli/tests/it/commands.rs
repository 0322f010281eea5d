//! Every other command, and the help of all.

use std::fs;

use serde_json::json;

use crate::{
    run::ANSWER,
    support::{Ran, Sandbox, files},
};

#[test]
fn the_help_of_every_command_has_an_example() {
    let sandbox = Sandbox::new();
    let mut all = String::new();
    for command in [
        &[][..],
        &["run"],
        &["tool"],
        &["tool", "list"],
        &["tool", "call"],
        &["mcp"],
        &["transports"],
        &["new"],
        &["schema"],
        &["explain"],
    ] {
        let help = sandbox.run(&[command, &["--help"]].concat()).code(0);
        assert!(help.out.contains("Example"), "{command:?} has none:\n{}", help.out);
        all.push_str(&format!("$ capsule {} --help\n{}\n", command.join(" "), help.out));
    }
    insta::assert_snapshot!("help", all);
}

#[test]
fn the_version_is_the_packages() {
    let ran = Sandbox::new().run(&["--version"]).code(0);
    assert_eq!(ran.out, format!("capsule {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_command_line_that_makes_no_sense_exits_2() {
    let sandbox = Sandbox::new();
    sandbox.run(&["rum"]).code(2).says(&["rum", "run"]);
    sandbox.run(&["run", "--jsn"]).code(2).says(&["--jsn", "--json"]);
    sandbox.run(&[]).code(2).says(&["Usage"]);
}

#[test]
fn the_catalogue_is_shown_as_models_see_it() {
    let sandbox = Sandbox::new().with_hello();
    let text = sandbox.run(&["tool", "list", "--capsule", "hello"]).code(0);
    assert!(text.out.starts_with("hello\n  Greets a person by name"), "{}", text.out);
    assert_eq!(text.err, "");
    let list = sandbox
        .run(&["tool", "list", "--capsule", "hello", "--json"])
        .code(0)
        .json();
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hello", "read-file"]);
    assert_eq!(tools[0]["input_schema"]["required"], json!(["name"]));
    assert_eq!(tools[1]["annotations"], json!({"read_only": true, "exclusive": false}));
}

#[test]
fn a_tool_is_called_without_a_model() {
    let sandbox = Sandbox::new().with_hello();
    let call = |args: &[&str]| sandbox.run(&[&["tool", "call"], args, &["--capsule", "hello"]].concat());
    let said = |ran: Ran, code| {
        let ran = ran.code(code);
        (ran.out, ran.err)
    };
    let greeting = (("Hello, Ada!\n".to_owned()), String::new());
    assert_eq!(said(call(&["hello", r#"{"name": "Ada"}"#]), 0), greeting);
    let stdin = sandbox.pipe(
        &["tool", "call", "hello", "-", "--capsule", "hello"],
        r#"{"name": "Ada"}"#,
    );
    assert_eq!(said(stdin, 0), greeting);

    let json = call(&["hello", r#"{"name": "Ada", "language": "fr"}"#, "--json"])
        .code(0)
        .json();
    assert_eq!(
        json,
        json!({"status": "passed", "text": "Bonjour, Ada !", "structured": null, "full_bytes": null, "metadata": {"state_effect": "read"}})
    );
    let denied = call(&["read-file", r#"{"path": "/etc/passwd"}"#, "--json"])
        .code(1)
        .json();
    assert_eq!(denied["status"], "denied");
}

#[test]
fn a_call_that_cannot_be_made_says_why() {
    let sandbox = Sandbox::new().with_hello();
    let call = |args: &[&str]| sandbox.run(&[&["tool", "call"], args, &["--capsule", "hello"]].concat());
    let unknown = call(&["helo", "{}"]).code(1);
    assert!(
        unknown
            .out
            .starts_with("no tool is called 'helo'; there are: hello, read-file"),
        "{unknown:#?}"
    );
    let invalid = call(&["hello", r#"{"name": 3}"#]).code(1);
    assert!(invalid.out.contains("/name"), "{invalid:#?}");
    for not_json in ["{name: Ada}", "{\"name\": ", ""] {
        assert_eq!(call(&["hello", not_json]).code(2).says(&["not JSON", "hint:"]).out, "");
    }
    assert_eq!(call(&["hello", "[1]"]).code(1).err, "");
}

#[test]
fn the_transports_of_this_program_are_listed_for_people_and_programs() {
    let sandbox = Sandbox::new();
    let text = sandbox.run(&["transports"]).code(0);
    let json = sandbox.run(&["transports", "--json"]).code(0).json();
    let names = |list: &str| -> Vec<String> {
        let list = json[list].as_array().unwrap();
        list.iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("transports"), ["claude", "codex", "echo", "http"]);
    let drivers = names("drivers");
    assert!(
        ["anthropic", "cassette"]
            .iter()
            .all(|name| drivers.iter().any(|driver| driver == name)),
        "{drivers:?}"
    );
    for name in names("transports").iter().chain(&names("drivers")) {
        assert!(
            text.out.contains(&format!("\n  {name} ")),
            "{name} is missing in {}",
            text.out
        );
    }
    assert_eq!(json["transports"][3]["at_most"]["host_owns_loop"], true);
}

#[test]
fn the_schema_is_a_json_schema_that_the_capsules_fit() {
    let sandbox = Sandbox::new().with_hello();
    let schema = sandbox.run(&["schema"]).code(0).json();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let text = fs::read_to_string(sandbox.work("hello/capsule.yaml")).unwrap();
    let manifest: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    let problems: Vec<_> = validator
        .iter_errors(&manifest)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(problems, [] as [String; 0]);
    let mut wrong = manifest;
    wrong["tolls"] = json!([]);
    assert!(!validator.is_valid(&wrong), "an unknown key is not valid");
}

#[test]
fn an_error_code_is_explained() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["explain", "tool-imports-unmet"]).code(0);
    insta::assert_snapshot!(ran.out, @r"
    tool-imports-unmet (tools, tools_unavailable)

    A tool's component imports interfaces that this host does not offer.

    What to do: Build the component against the interfaces in `wit` and WASI 0.2.
    ");
    sandbox
        .run(&["explain", "tool-imports-umet"])
        .code(2)
        .says(&["`tool-imports-unmet`"]);
    sandbox.run(&["explain", "zzz"]).code(2).says(&["zzz", "hint:"]);
}

#[test]
fn a_new_capsule_runs_at_once_under_its_own_name() {
    let sandbox = Sandbox::new();
    let made = sandbox.run(&["new", "my-agent"]).code(0);
    assert_eq!(made.out, "made my-agent/; run it with: capsule run my-agent\n");
    let ran = sandbox
        .run(&["run", "my-agent"])
        .code(0)
        .says(&["● my-agent 0.1.0 on http"]);
    assert_eq!(ran.answer(), ANSWER);
    // Whole files, no links that lead back into a checkout.
    for file in files(&sandbox.work("my-agent")) {
        assert!(fs::symlink_metadata(&file).unwrap().is_file(), "{}", file.display());
    }
}

#[test]
fn nothing_that_is_there_is_overwritten_and_a_bad_name_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("mine/notes.txt", "mine");
    sandbox.run(&["new", "mine"]).code(2).says(&["`mine`", "File exists"]);
    assert_eq!(files(&sandbox.work("mine")), [sandbox.work("mine/notes.txt")]);
    for name in ["", "My-Agent", "a b", "../up", "a/b", "ä"] {
        sandbox.run(&["new", name]).code(2).says(&["cannot name a capsule"]);
    }
    assert_eq!(files(&sandbox.work("")), [sandbox.work("mine/notes.txt")]);
}
