//! Manifests that are right, and what a transport gets of them.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use capsule_api::{Annotations, ByteSize, ContextWindow, HumanDuration, Limits};
use capsule_manifest::{
    CallLimits, Capture, CommandInput, EnvSecrets, Loaded, Mode, Model, Options, Override, ToolFile,
};
use serde_json::json;

use crate::{HEAD, Made, capsule, complaints_with, options, read, read_with};

const WHOLE: &str = r#"
name: letters
version: 1.2.3-beta.1+4
description: Writes letters.
tools:
  - name: Stamp_1
    component: tools/stamp.wasm
    description: Stamps.
    input_schema: {type: object, properties: {x: {type: number}}}
    annotations: {read_only: true}
capabilities:
  filesystem: [{path: ./data, at: /data, mode: ro}, {path: /tmp/out, at: /out, mode: rw}]
  env: {allow: [TZ]}
  limits: {memory: 64MiB, deadline: 5s, output: 64KiB, concurrent_calls: 2}
inference:
  transport: post
  model: big
  system_prompt: Dear ${WHO:-reader}
  max_turns: 3.0
  address: ${ADDRESS}
  stamp: ${STAMP}
  wait: ${WAIT:-5s}
  transports:
    radio: {model: small, channel: long, mast: true, system_prompt_file: prompt.md}
    post: {max_tokens: 100, address: elsewhere}
context: {max_tokens: 1000, threshold: 0.5}
task: Write.
trace: {capture: content}
"#;

const WINDOW: Option<ContextWindow> = Some(ContextWindow {
    max_tokens: 1000,
    threshold_permille: 500,
});

#[test]
fn a_whole_manifest_is_read() {
    let loaded = read(WHOLE).unwrap();
    let manifest = &loaded.manifest;
    assert_eq!(
        (manifest.name.as_str(), manifest.version.to_string().as_str()),
        ("letters", "1.2.3-beta.1+4")
    );
    let tool = &manifest.tools[0];
    assert_eq!(
        (tool.name.as_str(), tool.file.path()),
        ("Stamp_1", "tools/stamp.wasm".as_ref())
    );
    assert_eq!(
        tool.annotations,
        Some(Annotations {
            read_only: true,
            exclusive: false
        })
    );
    let grants = &manifest.capabilities;
    assert_eq!(
        (grants.filesystem[0].mode, grants.filesystem[1].mode),
        (Mode::ReadOnly, Mode::ReadWrite)
    );
    assert_eq!(loaded.path(&grants.filesystem[1].path), PathBuf::from("/tmp/out"));
    assert_eq!(grants.env.allow, ["TZ"]);
    assert_eq!(
        (grants.limits.memory, grants.limits.concurrent_calls),
        (ByteSize(64 << 20), 2)
    );
    assert_eq!(
        (manifest.task.as_deref(), manifest.trace.capture),
        (Some("Write."), Capture::Content)
    );
}

#[test]
fn the_defaults_are_those_of_the_schema() {
    let loaded = read(&format!("{HEAD}inference: {{address: x}}\n")).unwrap();
    let limits = loaded.manifest.capabilities.limits;
    assert_eq!(limits, CallLimits::default());
    assert_eq!(limits.deadline, HumanDuration(Duration::from_secs(60)));
    assert_eq!(loaded.manifest.trace.capture, Capture::Summary);
    assert_eq!(
        loaded.settings(&Made).unwrap().limits,
        Limits {
            requests: 50,
            output_tokens: 8192,
            context: None,
            answer: Duration::from_secs(600),
        }
    );

    let schema = capsule_manifest::schema(&Made, "post");
    let documented = &schema["properties"]["capabilities"]["properties"]["limits"]["properties"];
    let defaults = json!({
        "memory": limits.memory.to_string(),
        "deadline": "60s",
        "output": limits.output.to_string(),
        "concurrent_calls": limits.concurrent_calls,
    });
    assert!(limits.deadline == "60s".parse().unwrap());
    for (key, default) in defaults.as_object().unwrap() {
        assert_eq!(&documented[key]["default"], default, "{key}");
    }
    let inference = &schema["properties"]["inference"]["properties"];
    assert_eq!(
        (&inference["max_turns"]["default"], &inference["max_tokens"]["default"]),
        (&json!(50), &json!(8192))
    );
    assert_eq!(inference["transport"]["default"], "post");
}

#[test]
fn a_question_waits_as_long_as_the_capsule_says() {
    let loaded = read(&format!(
        "{HEAD}lifecycle: {{input_timeout: 5s}}\ninference: {{address: x}}\n"
    ))
    .unwrap();
    assert_eq!(loaded.settings(&Made).unwrap().limits.answer, Duration::from_secs(5));
    let schema = capsule_manifest::schema(&Made, "post");
    let documented = &schema["properties"]["lifecycle"]["properties"]["input_timeout"]["default"];
    assert_eq!(documented, &json!("10m"));
}

#[test]
fn the_threshold_of_the_context_window_has_the_default_of_the_schema() {
    let loaded = read(&format!(
        "{HEAD}context: {{max_tokens: 200000}}\ninference: {{address: x}}\n"
    ))
    .unwrap();
    let window = loaded.settings(&Made).unwrap().limits.context.unwrap();
    assert_eq!((window.threshold_permille, window.compact_above()), (850, 170_000));
    let schema = capsule_manifest::schema(&Made, "post");
    let documented = &schema["properties"]["context"]["properties"]["threshold"]["default"];
    assert_eq!(documented, &json!(0.85));
}

#[test]
fn the_named_transport_gets_the_flat_keys_under_its_block() {
    let loaded = read(WHOLE).unwrap();
    let chosen = loaded.settings(&Made).unwrap();
    assert_eq!(
        (chosen.transport.as_str(), chosen.limits),
        (
            "post",
            Limits {
                requests: 3,
                output_tokens: 100,
                context: WINDOW,
                answer: Duration::from_secs(600),
            }
        )
    );
    let own = json!({"address": "elsewhere", "stamp": "${STAMP}", "wait": "${WAIT:-5s}"});
    assert_eq!(serde_json::Value::Object(chosen.settings.raw().clone()), own);
    let secrets = EnvSecrets::with_environment(&loaded.base, |_| None);
    assert_eq!(chosen.model(&secrets).unwrap().as_deref(), Some("big"));
    assert_eq!(chosen.system_prompt(&secrets).unwrap(), "Dear reader");
}

#[test]
fn another_transport_gets_the_common_keys_and_its_own_block() {
    let dir = capsule(WHOLE);
    fs::write(dir.path().join("prompt.md"), "Over ${AND} out").unwrap();
    let options = Options {
        transport: Some("radio"),
        ..options()
    };
    let loaded = capsule_manifest::load(dir.path(), &options).unwrap();
    let chosen = loaded.settings(&Made).unwrap();
    assert_eq!(chosen.transport, "radio");
    assert_eq!(
        serde_json::Value::Object(chosen.settings.raw().clone()),
        json!({"channel": "long", "mast": true})
    );
    let secrets = EnvSecrets::with_environment(&loaded.base, |_| None);
    assert_eq!(chosen.model(&secrets).unwrap().as_deref(), Some("small"));
    assert_eq!(
        chosen.system_prompt(&secrets).unwrap(),
        "Over ${AND} out",
        "a file is taken as it is"
    );
    assert_eq!(
        chosen.limits,
        Limits {
            requests: 3,
            output_tokens: 8192,
            context: WINDOW,
            answer: Duration::from_secs(600),
        }
    );
}

#[test]
fn the_model_of_the_flag_wins_over_every_block() {
    let options = Options {
        transport: Some("radio"),
        model: Some("tiny"),
        ..options()
    };
    let loaded = read_with(WHOLE, &options).unwrap();
    let secrets = EnvSecrets::with_environment(&loaded.base, |_| None);
    assert_eq!(
        loaded.settings(&Made).unwrap().model(&secrets).unwrap().as_deref(),
        Some("tiny")
    );
}

#[test]
fn a_key_that_is_required_may_stand_in_the_block_or_beside_it() {
    for inference in ["{address: x}", "{transports: {post: {address: x}}}"] {
        read(&format!("{HEAD}inference: {inference}\n")).unwrap();
    }
    let missing = |text: &str| complaints_with(&format!("{HEAD}{text}"), &options());
    let told = "the key `address` is missing; the transport `post` needs it";
    assert_eq!(
        missing("inference:\n  model: x\n"),
        [format!("capsule.yaml:3:1: inference: {told}")]
    );
    assert_eq!(missing(""), [format!("capsule.yaml:1:1: inference: {told}")]);
    assert_eq!(
        missing("inference: {transports: {post: {wait: 1s}}}\n"),
        [format!("capsule.yaml:3:26: inference.transports.post: {told}")]
    );
}

#[test]
fn what_the_transport_does_not_run_on_need_not_be_complete() {
    let text = format!("{HEAD}inference: {{transport: post, transports: {{radio: {{channel: long}}}}}}\n");
    read_with(
        &text,
        &Options {
            transport: Some("radio"),
            ..options()
        },
    )
    .unwrap();
}

#[test]
fn a_transport_decides_its_keys_by_its_settings() {
    let text = |channel: &str| format!("{HEAD}inference: {{transport: radio, channel: {channel}, mast: true}}\n");
    read(&text("long")).unwrap();
    let report = read(&text("short")).unwrap_err();
    assert_eq!(report.problems[0].message, "unknown key `mast`");
}

#[test]
fn a_loaded_manifest_shows_no_value_that_may_be_secret() {
    let text =
        format!("{HEAD}inference: {{address: x, stamp: sksecret-1, transports: {{post: {{stamp: sksecret-2}}}}}}\n");
    let shown = format!("{:?}", read(&text).unwrap());
    assert!(!shown.contains("sksecret") && shown.contains("stamp"), "{shown}");
}

#[test]
fn a_tool_is_a_component_or_a_skill() {
    let tools = |entries: &str| format!("{HEAD}inference: {{address: x}}\ntools: [{entries}]\n");
    let loaded = read(&tools(
        "{name: 'fs.read/file', component: a.wasm, input: argv}, {skill: skills/house-style.md}, {name: b, skill: c.md}",
    ))
    .unwrap();
    let tools_of = |loaded: &Loaded| {
        let tools = loaded.manifest.tools.iter();
        tools
            .map(|tool| (tool.name.clone(), tool.file.clone()))
            .collect::<Vec<_>>()
    };
    let (path, input) = ("a.wasm".into(), CommandInput::Argv);
    assert_eq!(
        tools_of(&loaded),
        [
            ("fs.read/file".to_owned(), ToolFile::Component { path, input }),
            (
                "house-style".to_owned(),
                ToolFile::Skill("skills/house-style.md".into())
            ),
            ("b".to_owned(), ToolFile::Skill("c.md".into())),
        ]
    );
    for (entry, wanted) in [
        ("{component: a.wasm}", "the key `name` is missing"),
        ("{name: a}", "the key `component` is missing"),
        ("{skill: a.md, component: a.wasm}", "this key is not allowed here"),
        ("{skill: a.md, input_schema: {}}", "this key is not allowed here"),
        ("{name: a, skill: ../a.md}", "the path leaves the manifest's directory"),
        ("{name: ' a', component: a.wasm}", "expected 1 to 100 characters"),
        ("{name: '', component: a.wasm}", "expected 1 to 100 characters"),
    ] {
        let report = read(&tools(entry)).unwrap_err().to_string();
        assert!(report.contains(wanted), "{entry}: {report}");
    }
}

#[test]
fn a_script_is_named_by_its_component() {
    let loaded = read(&format!(
        "{HEAD}script: run.wasm\ntools: [{{name: a, component: a.wasm}}]\n"
    ))
    .unwrap();
    assert_eq!(loaded.manifest.script, Some("run.wasm".into()));
    let report = read(&format!("{HEAD}script: ../run.wasm\n")).unwrap_err().to_string();
    assert!(report.contains("the path leaves the manifest's directory"), "{report}");
}

#[test]
fn what_is_not_expanded_is_a_warning() {
    let loaded = read(&format!(
        "{HEAD}inference: {{address: x}}\ntools: [{{name: a, component: '${{HOME}}/a.wasm'}}]\n"
    ))
    .unwrap();
    let warnings: Vec<_> = loaded
        .warnings
        .iter()
        .map(|warning| (warning.key.as_str(), warning.message.as_str()))
        .collect();
    assert_eq!(
        warnings,
        [(
            "tools[0].component",
            "`${…}` is not expanded here, only in texts of `inference`"
        )]
    );
}

#[test]
fn aliases_and_merge_keys_are_yaml_like_any_other() {
    let text = format!(
        "{HEAD}inference:\n  address: x\n  retry: &r {{times: 2}}\n  transports: {{post: {{retry: {{<<: *r}}}}}}\n"
    );
    let loaded = read(&text).unwrap();
    assert_eq!(
        loaded.settings(&Made).unwrap().settings.raw()["retry"],
        json!({"times": 2})
    );
}

#[test]
fn a_prompt_file_that_cannot_be_read_is_named() {
    let dir = capsule(format!(
        "{HEAD}inference: {{address: x, system_prompt_file: none.md}}\n"
    ));
    let loaded = capsule_manifest::load(dir.path(), &options()).unwrap();
    let secrets = EnvSecrets::with_environment(&loaded.base, |_| None);
    let error = loaded.settings(&Made).unwrap().system_prompt(&secrets).unwrap_err();
    let file = dir.path().join("none.md");
    assert_eq!(error.code, "manifest-prompt-unreadable");
    assert_eq!(
        error.message,
        format!(
            "{}:3:45: inference.system_prompt_file: {}: the file does not exist",
            dir.path().join("capsule.yaml").display(),
            file.display()
        )
    );
}

#[test]
fn an_error_about_a_variable_has_the_place_and_the_whole_key_of_the_value() {
    let text = format!(
        "{HEAD}inference:\n  model: ${{M}}\n  system_prompt: ${{\n  address: ${{NOBODY}}\n  transports:\n    post:\n      stamp: ${{NOBODY}}\n"
    );
    let secrets = EnvSecrets::with_environment(Path::new("/nonexistent"), |_| None);
    let told = |options: &Options<'_>| {
        let chosen = read_with(&text, options).unwrap().settings(&Made).unwrap();
        let own = |key: &str| {
            chosen
                .settings
                .about(key, chosen.model(&secrets).unwrap_err())
                .message
                .clone()
        };
        [
            chosen.model(&secrets).unwrap_err().message.clone(),
            chosen.system_prompt(&secrets).unwrap_err().message.clone(),
            own("address"),
            own("stamp"),
        ]
        .map(|message| message.split(": ").take(2).collect::<Vec<_>>().join(": "))
    };
    assert_eq!(
        told(&options()),
        [
            "capsule.yaml:4:10: inference.model",
            "capsule.yaml:5:18: inference.system_prompt",
            "capsule.yaml:6:12: inference.address",
            "capsule.yaml:9:14: inference.transports.post.stamp",
        ]
    );
    let set = [Override::parse("inference.address=${NOBODY}").unwrap()];
    let by_flag = told(&Options {
        overrides: &set,
        model: Some("${M}"),
        ..options()
    });
    assert_eq!(by_flag[0], "--model: inference.model");
    assert!(by_flag[2].starts_with("--set inference.address: "), "{by_flag:?}");
}

#[test]
fn what_is_said_of_the_model_is_read_as_far_as_it_is_needed() {
    let held_to = |held_to, inference: &str| {
        let text = format!("{HEAD}inference: {inference}\n");
        read_with(&text, &Options { held_to, ..options() }).is_ok()
    };
    for (inference, held) in [
        ("{address: x}", [true, true, true]),
        ("{}", [false, true, true]),
        ("{adress: x}", [false, false, true]),
        ("{transport: nowhere}", [false, false, true]),
        ("7", [false, false, true]),
    ] {
        let now = [Model::Whole, Model::Keys, Model::Unread].map(|model| held_to(model, inference));
        assert_eq!(now, held, "{inference}");
    }
}
