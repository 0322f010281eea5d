//! What must hold for any bytes, for the fuzz target and for the test that runs its seeds.

use std::path::Path;

use capsule_manifest::{Options, Origin, Problem, TransportSchemas, codes};
use serde_json::{Value, json};

/// A manifest: whatever is in the file, it is a manifest that a run can begin with, or a report of problems that each say what is wrong, by a
/// known code, at a place that is there; and always the same one.
pub(super) fn manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let parse = || capsule_manifest::parse(Path::new("capsule.yaml"), text, &Options::new(&Any, "any"));
    match parse() {
        Ok(loaded) => {
            assert!(!loaded.manifest.name.is_empty());
            let chosen = loaded
                .settings(&Any)
                .expect("a manifest that is valid has the settings of its transport");
            assert_eq!(chosen.transport, loaded.selected);
            loaded.warnings.iter().for_each(|warning| told(warning, text));
        }
        Err(report) => {
            assert!(!report.problems.is_empty());
            report.problems.iter().for_each(|problem| told(problem, text));
            let shown = report.render();
            assert!(
                report.problems.iter().all(|problem| shown.contains(&problem.message)),
                "{shown}"
            );
            assert_eq!(parse().map(drop), Err(report));
        }
    }
}

fn told(problem: &Problem, text: &str) {
    assert!(!problem.message.is_empty(), "{problem:?}");
    assert!(codes::ALL.iter().any(|code| code.id == problem.code), "{problem:?}");
    if let Origin::Line(at) = problem.origin {
        // Any of these ends a line of YAML; the end of the text may count as one more.
        let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() as u64;
        assert!((1..=lines + 1).contains(&at.line) && at.column >= 1, "{problem:?}");
    }
}

/// One transport that takes any settings.
struct Any;

impl TransportSchemas for Any {
    fn schema(&self, name: &str, _: Option<&Value>) -> Option<Value> {
        (name == "any").then(|| json!({"type": "object"}))
    }

    fn names(&self) -> Vec<String> {
        vec!["any".to_owned()]
    }
}
