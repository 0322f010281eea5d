//! `--set`, `--transport` and `--model`.

use capsule_manifest::{Options, Override};

use crate::{HEAD, Made, complaints_with, options, read_with};

fn set(texts: &[&str]) -> Vec<Override> {
    texts.iter().map(|text| Override::parse(text).unwrap()).collect()
}

#[test]
fn a_value_of_a_flag_replaces_the_files() {
    let overrides = set(&[
        "inference.address=a=b",
        "inference.max_turns=7",
        "inference.transports.radio={channel: short}",
        "tools.0.component=b.wasm",
        "trace.capture=none",
    ]);
    let text = format!("{HEAD}tools: [{{name: a, component: a.wasm}}]\ninference: {{address: x}}\n");
    let loaded = read_with(
        &text,
        &Options {
            overrides: &overrides,
            ..options()
        },
    )
    .unwrap();
    assert_eq!(loaded.manifest.tools[0].file.path().to_str(), Some("b.wasm"));
    let chosen = loaded.settings(&Made).unwrap();
    assert_eq!(
        (chosen.limits.requests, &chosen.settings.raw()["address"]),
        (7, &"a=b".into())
    );
    assert_eq!(
        loaded.settings_for("radio", &Made).unwrap().settings.raw()["channel"],
        "short"
    );
}

#[test]
fn an_error_in_a_flag_names_the_flag_without_its_value() {
    let overrides = set(&[
        "inference.max_turns=many",
        "inference.stamp=SK SECRET",
        "tols=[]",
        "tools.1.name=x",
        "name.x=1",
    ]);
    let text = format!("{HEAD}inference: {{address: x}}\ntools: [{{name: a, component: a}}]\n");
    let options = Options {
        overrides: &overrides,
        ..options()
    };
    assert_eq!(
        complaints_with(&text, &options),
        [
            "--set tools.1.name: `tools` is a list of 1, so `1` is no position in it (they begin at 0)",
            "--set name.x: `name` is neither a mapping nor a list, so it has no `x`",
            "--set inference.max_turns: expected an integer of at least 1, found \"many\"",
            "--set inference.stamp: expected text that matches `^[a-z]+-[0-9]+$`, found a value that is not shown",
            "--set tols: unknown key `tols`, did you mean `tools`?",
        ]
    );
}

#[test]
fn a_flag_that_cannot_be_read_is_refused() {
    let refused = |text: &str| Override::parse(text).unwrap_err().message.clone();
    assert_eq!(
        refused("inference.max_turns"),
        "`--set` needs `key.path=value`; there is no `=`"
    );
    assert_eq!(
        refused("=1"),
        "`--set` needs a key before `=`, such as `inference.max_turns`"
    );
    assert_eq!(
        refused("a..b=1"),
        "`--set` needs a key before `=`, such as `inference.max_turns`"
    );
    assert_eq!(refused("a=[SECRET"), "--set a: this bracket is never closed");
    assert_eq!(refused("a={b: 1, b: 2}"), "--set a: the key `b` is there twice");
    assert_eq!(
        format!("{:?}", Override::parse("a=SECRET").unwrap()),
        "Override(\"--set a\")"
    );
}

#[test]
fn an_unknown_transport_is_told_with_the_nearest() {
    let text = format!("{HEAD}inference: {{address: x}}\n");
    let report = read_with(
        &text,
        &Options {
            transport: Some("raido"),
            ..options()
        },
    )
    .unwrap_err();
    assert_eq!(
        report.render(),
        "--transport: no transport is called \"raido\"; there are post, radio\n  hint: Did you mean `radio`?\n"
    );
    let text = format!("{HEAD}inference: {{transport: raido, anything: 1}}\n");
    let report = read_with(&text, &options()).unwrap_err();
    assert_eq!(
        report.render(),
        "capsule.yaml:3:24: inference.transport: expected one of `post`, `radio`, found \"raido\"\n  hint: Did you mean `radio`?\n"
    );
}

#[test]
fn a_flag_of_another_name_says_its_own() {
    let overrides = [Override::of_flag("--driver", "driver", "x")];
    let text = format!("{HEAD}inference: {{address: x}}\n");
    let lines = complaints_with(
        &text,
        &Options {
            overrides: &overrides,
            ..options()
        },
    );
    assert_eq!(lines, ["--driver: unknown key `driver`"]);
}

#[test]
fn a_flag_for_a_setting_of_the_transport_that_runs_finds_it_wherever_it_stands() {
    let overrides = [Override::of_flag("--channel", "channel", "long")];
    let flat = "inference: {transport: radio, channel: short}\n";
    let block = "inference: {transport: radio, transports: {radio: {channel: short}}}\n";
    let both = "inference: {transport: radio, channel: short, transports: {radio: {channel: short}}}\n";
    let other = "inference: {transport: post, address: x, transports: {radio: {channel: short}}}\n";
    let none = "inference: {transport: post, address: x}\n";
    for inference in [flat, block, both, other, none] {
        let options = Options {
            overrides: &overrides,
            transport: Some("radio"),
            ..options()
        };
        let loaded = read_with(&format!("{HEAD}{inference}"), &options).unwrap();
        assert_eq!(
            loaded.settings(&Made).unwrap().settings.raw()["channel"],
            "long",
            "{inference}"
        );
    }
}
