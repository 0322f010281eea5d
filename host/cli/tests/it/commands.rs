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
        &["build"],
        &["schema"],
        &["explain"],
        &["completions"],
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
fn the_name_of_a_plugin_is_explained_by_its_codes() {
    let sandbox = Sandbox::new();
    for (name, owner) in [("claude", "transport claude"), ("cassete", "driver cassette")] {
        sandbox.run(&["explain", name]).code(2).says(&[&format!(
            "The codes of the {owner} are: {}-",
            owner.split(' ').nth(1).unwrap()
        )]);
    }
}

#[test]
fn a_warning_is_explained_as_one() {
    let sandbox = Sandbox::new();
    for code in [
        "tool-cache-unused",
        "tool-env-unset",
        "session-turn-overran",
        "session-close-failed",
    ] {
        let ran = sandbox.run(&["explain", code]).code(0);
        assert!(ran.out.contains("A warning: "), "{}", ran.out);
    }
}

#[test]
fn every_shell_gets_its_completions() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = sandbox.run(&["completions", shell]).code(0);
        assert!(ran.out.contains("template") && ran.out.contains("capsule"), "{shell}");
    }
    sandbox.run(&["completions", "bsh"]).code(2).says(&["bash"]);
}

#[test]
fn a_program_that_asks_for_json_gets_its_errors_as_json_too() {
    let sandbox = Sandbox::new();
    sandbox.write("wrong/capsule.yaml", "name: wrong\nversion: 1\ntools: 3\n");
    for command in [
        &["doctor", "wrong", "--json"][..],
        &["tool", "list", "--capsule", "wrong", "--json"],
        &["build", "wrong", "--json"],
        &["run", "wrong", "--json"],
    ] {
        let ran = sandbox.run(command).code(2).says(&["capsule.yaml"]);
        let errors = ran.json()["errors"].take();
        let keys: Vec<_> = errors
            .as_array()
            .unwrap()
            .iter()
            .map(|error| error["key"].as_str().unwrap())
            .collect();
        let all = ["inference", "version", "tools"];
        // Only a run needs a model.
        let expected = if command[0] == "run" { &all[..] } else { &all[1..] };
        assert_eq!(keys, expected, "{command:?}");
        assert_eq!(errors[0]["code"], "manifest-invalid");
        assert_eq!(errors[0]["file"], "wrong/capsule.yaml");
    }
    let missing = sandbox.run(&["run", "none", "--json"]).code(2).json();
    assert_eq!(missing["errors"][0]["code"], "manifest-missing");
    assert_eq!(sandbox.run(&["run", "wrong"]).code(2).out, "");
}

#[test]
fn arguments_that_are_too_long_are_not_cut() {
    let sandbox = Sandbox::new().with_hello();
    let long = format!("{{\"name\": \"Ada\"}}{}", " ".repeat(16 << 20));
    let call = ["tool", "call", "hello", "-", "--capsule", "hello"];
    sandbox.pipe(&call, &long).code(2).says(&["longer than 16 MiB"]);
}

#[test]
fn what_is_granted_and_not_set_is_said_before_the_run() {
    let sandbox = Sandbox::new().with_hello();
    let set = ["--set", "capabilities.env.allow=[NOBODY_SETS_THIS]"];
    let ran = sandbox.run(&[&["run", "hello"], &set[..]].concat()).code(0);
    let warning =
        "warning: the environment variable NOBODY_SETS_THIS is granted to the tools but not set (tool-env-unset)\n";
    assert!(ran.err.starts_with(warning), "{}", ran.err);
    assert_eq!(ran.err.matches("NOBODY_SETS_THIS").count(), 1);
}

#[test]
fn an_answer_that_cannot_be_written_fails_the_command() {
    let sandbox = Sandbox::new().with_hello();
    for command in [
        &["tool", "call", "hello", r#"{"name": "Ada"}"#, "--capsule", "hello"][..],
        &["tool", "list", "--capsule", "hello"],
        &["run", "hello"],
        &["doctor", "hello", "--json"],
        &["completions", "bash"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = sandbox.command(command).stdout(full).output().unwrap();
        Ran::of(&output).code(1).says(&["cli-output"]);
    }
}

#[test]
fn without_a_standard_output_nothing_is_run() {
    let sandbox = Sandbox::new();
    let shell = crate::docs::shell;
    shell(&sandbox, "capsule new a >&-")
        .code(1)
        .says(&["standard output is closed", "cli-output"]);
    assert!(files(&sandbox.work("")).is_empty());
    shell(&sandbox, "capsule new a > /dev/null").code(0);
}

#[test]
fn a_template_that_is_not_there_says_which_are_and_nothing_is_overwritten() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["new", "a", "--template", "tool-rst"])
        .code(2)
        .says(&["hello", "tool-rust"]);
    for bad in [&["--", "-x"][..], &["A"], &["../a"], &[""]] {
        let ran = sandbox.run(&[&["new"], bad].concat()).code(2);
        assert!(ran.err.contains("cannot name a capsule"), "{}", ran.err);
    }
    sandbox.write("taken/mine.txt", "mine");
    sandbox
        .run(&["new", "taken", "--template", "tool-rust"])
        .code(2)
        .says(&["taken"]);
    assert_eq!(files(&sandbox.work("")), [sandbox.work("taken/mine.txt")]);
}

#[test]
fn a_new_tool_has_its_own_name_and_all_of_its_sources() {
    let sandbox = Sandbox::new();
    let made = sandbox.run(&["new", "my-tool", "--template", "tool-rust"]).code(0);
    assert_eq!(
        made.out,
        "made my-tool/; run it with: capsule build my-tool && capsule run my-tool\n"
    );
    let text = |path: &str| fs::read_to_string(sandbox.work("my-tool").join(path)).unwrap();
    assert!(text("capsule.yaml").contains("\nname: my-tool\n"));
    assert!(text("README.md").starts_with("# my-tool\n"));
    for path in [
        "Cargo.lock",
        ".gitignore",
        "sdk/src/lib.rs",
        "tools/word-count/Cargo.toml",
        "wit/worlds.wit",
    ] {
        assert!(!text(path).is_empty(), "{path}");
    }
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
