//! What is wrong, where, and what to do.

use std::fs;

use crate::{HEAD, capsule, complaints, options, read};

const MANY_ERRORS: &str = r#"name: Letters To Nowhere
verson: 0.1.0
tols: []
tools:
  - name: stamp
    component: ../stamp.wasm
    annotations: {read_only: yes}
  - name: stamp
capabilities:
  filesystem: [{path: ./data, at: data, mode: read}]
  limits: {memory: 256, deadline: 0s, concurrent_calls: 5000}
inference:
  address: [not, text]
  stamp: sk-secret-stamp
  max_turns: many
  transports:
    raido: {channel: short}
    radio: {channel: shrot, power: 0}
trace: {capture: all}
"#;

#[test]
fn all_errors_of_a_file_are_told_at_once_with_their_places() {
    insta::assert_snapshot!(read(MANY_ERRORS).unwrap_err().render());
}

#[test]
fn the_same_errors_as_data() {
    let report = read(MANY_ERRORS).unwrap_err();
    let data = serde_json::to_value(&report).unwrap();
    assert_eq!(data["file"], "capsule.yaml");
    assert_eq!(
        data["problems"][0],
        serde_json::json!({
            "code": "manifest-invalid",
            "origin": {"line": {"line": 1, "column": 1}},
            "key": "",
            "message": "the key `version` is missing",
            "excerpt": "name: Letters To Nowhere",
        })
    );
    assert!(!data.to_string().contains("sk-secret"), "{data}");
}

#[test]
fn a_report_is_an_error_of_the_contract() {
    let error =
        capsule_api::Error::from(read(&format!("{HEAD}inference: {{address: x, max_turns: '5'}}\n")).unwrap_err());
    assert_eq!(
        (error.kind, error.code),
        (capsule_api::ErrorKind::Settings, "manifest-invalid")
    );
    assert_eq!(
        error.message,
        "capsule.yaml:3:36: inference.max_turns: expected an integer of at least 1, found \"5\""
    );
    assert_eq!(error.hint, "In quotes it is text; without them it is a number.");
}

#[test]
fn values_of_the_wrong_kind_are_told_in_words() {
    let cases = [
        ("description: 1.10", "description: expected text, found `1.1`"),
        ("tools: hello", "tools: expected a list, found \"hello\""),
        ("tools:", "tools: expected a list, found nothing"),
        ("task: ''", "task: expected text that is not empty, found an empty text"),
        ("trace: all", "trace: expected a mapping (`key: value`), found \"all\""),
        (
            "capabilities: {limits: {memory: 10 MB}}",
            "capabilities.limits.memory: expected text such as `1MiB` or `256MiB`, found \"10 MB\"",
        ),
        (
            "capabilities: {limits: {memory: 99999999999GiB}}",
            "capabilities.limits.memory: the number is too large",
        ),
        (
            "capabilities: {limits: {concurrent_calls: 1001}}",
            "capabilities.limits.concurrent_calls: expected an integer from 1 to 1000, found `1001`",
        ),
        (
            "capabilities: {env: {allow: [1A]}}",
            "capabilities.env.allow[0]: expected the name of a variable such as `TZ`: letters, digits and `_`, no digit first, found \"1A\"",
        ),
        (
            "capabilities: {filesystem: [{path: a, at: /a/../b, mode: ro}]}",
            "capabilities.filesystem[0].at: expected a plain absolute path such as `/data`: no `.`, no `..`, no empty part",
        ),
    ];
    for (line, expected) in cases {
        let lines = complaints(&format!("{HEAD}inference: {{address: x}}\n{line}\n"));
        let [only] = lines.as_slice() else { panic!("{lines:#?}") };
        let (_, told) = only.split_once(": ").unwrap();
        assert_eq!(told, expected);
    }
}

#[test]
fn a_variable_cannot_stand_for_a_number() {
    let report = read(&format!(
        "{HEAD}inference: {{address: x, wait: \"${{WAIT}}\", max_turns: \"${{TURNS}}\"}}\n"
    ))
    .unwrap_err();
    let [problem] = report.problems.as_slice() else {
        panic!("{report}")
    };
    assert_eq!(problem.message, "expected an integer of at least 1, found \"${TURNS}\"");
    let hint = "A variable gives text, and this key takes none; `--set` overrides it for a run.";
    assert_eq!(problem.hint.as_deref(), Some(hint));
}

#[test]
fn a_version_is_a_semantic_version() {
    for version in ["1", "1.0", "'1.0'", "v1.0.0", "1.0.0-", "1.0.0-01"] {
        let lines = complaints(&format!("name: a\nversion: {version}\ninference: {{address: x}}\n"));
        assert_eq!(lines.len(), 1, "{lines:#?}");
        let start = "capsule.yaml:2:10: version: expected a semantic version such as `1.4.0`";
        assert!(lines[0].starts_with(start), "{}", lines[0]);
    }
}

#[test]
fn a_repeated_key_names_both_places() {
    let lines = complaints("name: a\nversion: 1.0.0\nname: b\ninference: {address: x}\n");
    assert_eq!(
        lines,
        ["capsule.yaml:3:1: the key `name` is there twice (first at line 1, column 1)"]
    );
}

#[test]
fn a_repeated_tool_names_both_places() {
    let text =
        format!("{HEAD}inference: {{address: x}}\ntools:\n- {{name: a, component: a}}\n- {{name: a, component: b}}\n");
    assert_eq!(
        complaints(&text),
        [
            "capsule.yaml:6:10: tools[1].name: \"a\" is already taken by another tool at line 5, column 10 (tools[0].name)"
        ]
    );
}

#[test]
fn an_unknown_key_is_told_where_it_belongs() {
    let hint = |text: &str| {
        let report = read(&format!("{HEAD}{text}")).unwrap_err();
        let [problem] = report.problems.as_slice() else {
            panic!("{report}")
        };
        (problem.message.clone(), problem.hint.clone().unwrap_or_default())
    };
    assert_eq!(
        hint("max_turns: 5\ninference: {address: x}\n"),
        (
            "unknown key `max_turns`".to_owned(),
            "`max_turns` is a key of `inference`; indent it below `inference:`.".to_owned()
        )
    );
    assert_eq!(
        hint("inference: {address: x, channel: long}\n"),
        (
            "unknown key `channel`".to_owned(),
            "`channel` is a setting of the transport `radio`, not of `post`; write it as `inference.transports.radio.channel`.".to_owned()
        )
    );
    assert_eq!(
        hint("inference: {address: x, transports: {pigeon: {}}}\n"),
        (
            "unknown key `pigeon`".to_owned(),
            "No transport is called \"pigeon\"; there are post, radio.".to_owned()
        )
    );
}

#[test]
fn keys_of_features_to_come_are_unknown() {
    for line in [
        "lifecycle: {queue_depth: 8}",
        "network: {}",
        "exports: {}",
        "streaming: {}",
        "capabilities: {delegate: {}}",
        "tools: [{mcp: {}}]",
    ] {
        let lines = complaints(&format!("{HEAD}inference: {{address: x}}\n{line}\n"));
        assert!(lines.iter().any(|line| line.contains("unknown key `")), "{lines:#?}");
    }
}

#[test]
fn what_excludes_each_other_is_told_by_name() {
    let lines = complaints(&format!(
        "{HEAD}inference: {{address: x, system_prompt: a, system_prompt_file: b}}\n"
    ));
    assert_eq!(
        lines,
        ["capsule.yaml:3:43: inference: `system_prompt` and `system_prompt_file` exclude each other; keep one of them"]
    );
}

#[test]
fn a_secret_is_in_no_form_of_the_report() {
    for text in [
        "stamp: SK SECRET",
        "stamp: [SK SECRET]",
        "stmp: SK SECRET",
        "stamp: {a: SK SECRET}",
        "stamp: a-1\n  stamp: SK SECRET",
        "transports: {post: {stamp: SK SECRET}}",
        "transport: ghost\n  token: SK SECRET\n  max_turns: no",
        "stamp: \"SK SECRET",
    ] {
        let report = read(&format!("{HEAD}inference:\n  address: x\n  {text}\n")).unwrap_err();
        let shown = format!(
            "{report}\n{}\n{report:?}\n{}",
            report.render(),
            serde_json::to_string(&report).unwrap()
        );
        assert!(!shown.contains("SK SECRET"), "{shown}");
    }
}

#[test]
fn of_several_forms_the_closest_one_is_explained() {
    let sender = |value: &str| complaints(&format!("{HEAD}inference: {{address: x, sender: {value}}}\n"));
    assert_eq!(
        sender("{nam: x}"),
        [
            "capsule.yaml:3:25: inference.sender: the key `name` is missing",
            "capsule.yaml:3:34: inference.sender: unknown key `nam`, did you mean `name`?",
        ]
    );
    assert_eq!(
        sender("5"),
        ["capsule.yaml:3:33: inference.sender: expected text or a mapping (`key: value`), found `5`"]
    );
}

#[test]
fn a_file_that_is_no_manifest_says_why() {
    let big = vec![b'#'; (1 << 20) + 1];
    let cases: [(&[u8], &str, &str); 6] = [
        (
            b"",
            "manifest-invalid",
            ": the manifest is empty; it needs at least `name` and `version`",
        ),
        (
            b"# only a comment\n",
            "manifest-invalid",
            ": the manifest is empty; it needs at least `name` and `version`",
        ),
        (
            b"- a\n",
            "manifest-invalid",
            ": a manifest is a mapping that begins with a line such as `name: my-capsule`",
        ),
        (
            b"name: a\n\tversion: 1\n",
            "manifest-syntax",
            ":2:1: a tab cannot indent; use spaces",
        ),
        (
            b"name: a\nb: \xff\n",
            "manifest-unreadable",
            ":2:4: the file is not UTF-8 text (line 2, column 4)",
        ),
        (&big, "manifest-unreadable", ": the file is larger than 1 MiB"),
    ];
    for (bytes, code, message) in cases {
        let dir = capsule(bytes);
        let report = capsule_manifest::load(dir.path(), &options()).unwrap_err();
        assert_eq!(report.problems[0].code, code);
        let file = dir.path().join("capsule.yaml");
        assert_eq!(report.to_string(), format!("{}{message}", file.display()));
    }
}

#[test]
fn a_missing_file_and_a_pipe_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let missing = capsule_manifest::load(dir.path(), &options()).unwrap_err();
    assert_eq!(missing.problems[0].code, "manifest-missing");
    fs::create_dir(dir.path().join("capsule.yaml")).unwrap();
    let odd = capsule_manifest::load(dir.path(), &options()).unwrap_err();
    assert_eq!(
        (odd.problems[0].code, odd.problems[0].message.as_str()),
        ("manifest-unreadable", "this is not a regular file")
    );
}

#[test]
fn every_code_is_listed_once() {
    let mut ids: Vec<_> = capsule_manifest::codes::ALL.iter().map(|code| code.id).collect();
    assert!(ids.iter().all(|id| id.starts_with("manifest-")));
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn a_file_full_of_errors_gives_a_report_of_bounded_length() {
    let keys: String = (0..20_000).map(|index| format!("x{index}: SECRET\n")).collect();
    let tools: String = (0..9_000).map(|_| "- {name: a, component: b}\n").collect();
    let report = read(&format!("{HEAD}inference: {{address: x}}\ntools:\n{tools}{keys}")).unwrap_err();
    assert_eq!((report.problems.len(), report.truncated), (200, true));
    assert!(report.render().ends_with("\nand more\n"));
}

#[test]
fn a_problem_shows_its_line_without_what_may_be_secret_in_it() {
    let shown = |text: &str| {
        let report = read(&format!("{HEAD}{text}")).expect_err("it is wrong");
        assert!(!report.render().contains("sk-"), "{}", report.render());
        report.render()
    };
    let unknown_transport = shown("inference:\n  transport: pots\n  stamp: sk-1\n");
    assert!(
        unknown_transport.contains("  4 |   transport: pots\n    |              ^\n"),
        "{unknown_transport}"
    );
    let in_a_flow = shown("inference: {address: x, stamp: sk-1, adress: sk-2}\n");
    let line = format!("  3 | {}…adress: …\n    | {}^\n", " ".repeat(36), " ".repeat(37));
    assert!(in_a_flow.contains(&line), "{in_a_flow}");
    let syntax = shown("inference:\n  model: [sk-1\n");
    assert!(syntax.contains("  4 |   model: …\n"), "{syntax}");
    // Nothing is known of such a line.
    let other = shown("inference:\n  stamp: [sk-1\n");
    assert!(!other.contains(" | "), "{other}");
}
