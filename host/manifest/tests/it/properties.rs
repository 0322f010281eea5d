//! Whatever the text, the answer is a manifest or a report.

use std::path::Path;

use capsule_manifest::Override;
use proptest::prelude::*;

use crate::{options, read, read_with};

/// Lines that are parts of manifests, so that random texts get past the parser.
fn line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("name"),
        Just("version"),
        Just("tools"),
        Just("component"),
        Just("inference"),
        Just("transport"),
        Just("transports"),
        Just("radio"),
        Just("post"),
        Just("channel"),
        Just("address"),
        Just("stamp"),
        Just("sender"),
        Just("capabilities"),
        Just("limits"),
        Just("memory"),
        Just("filesystem"),
        Just("at"),
        Just("retry"),
        Just("times"),
        Just("max_turns"),
        Just("- name"),
        Just("$ref"),
    ];
    let value = prop_oneof![
        Just(""),
        Just("a"),
        Just("1.0.0"),
        Just("1"),
        Just("-1.5e300"),
        Just("null"),
        Just("[]"),
        Just("[a, {b: c}]"),
        Just("{a: 1, a: 2}"),
        Just("radio"),
        Just("post"),
        Just("256MiB"),
        Just("${X}"),
        Just("'\u{e9} \u{1f600}'"),
        Just("&a x"),
        Just("*a"),
        Just("true"),
    ];
    (0_usize..4, key, value).prop_map(|(indent, key, value)| format!("{}{key}: {value}\n", "  ".repeat(indent)))
}

proptest! {
    #[test]
    fn any_text_is_a_manifest_or_a_report(text: String) {
        if let Err(report) = read(&text) {
            prop_assert!(!report.problems.is_empty());
        }
    }

    #[test]
    fn any_lines_are_a_manifest_or_a_report(lines in proptest::collection::vec(line(), 0..20)) {
        let text = lines.concat();
        if let Err(report) = read(&text) {
            prop_assert!(!report.problems.is_empty());
            let rendered = report.render();
            for problem in &report.problems {
                prop_assert!(rendered.contains(&problem.message));
                prop_assert!(problem.message.chars().all(|c| !c.is_control()), "{:?}", problem.message);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_manifest_or_a_report(bytes: Vec<u8>) {
        let dir = crate::capsule(&bytes);
        let _ = capsule_manifest::load(Path::new(dir.path()), &options());
    }

    #[test]
    fn any_override_is_applied_or_refused(path in "[a-z]{1,4}(\\.[a-z0-9]{1,3}){0,3}", value: String) {
        if let Ok(one) = Override::parse(&format!("{path}={value}")) {
            let overrides = [one];
            let options = capsule_manifest::Options { overrides: &overrides, ..options() };
            let _ = read_with(crate::HEAD, &options);
        }
    }
}
