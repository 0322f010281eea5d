//! What must hold for any bytes, for the fuzz target and for the test that runs its seeds.

use std::path::Path;

use capsule_manifest::{Options, TransportSchemas};
use serde_json::{Value, json};

/// A manifest: whatever is in the file, it is a manifest or a report of problems, each with a message.
pub(super) fn manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match capsule_manifest::parse(Path::new("capsule.yaml"), text, &Options::new(&Any, "any")) {
        Ok(loaded) => assert!(!loaded.manifest.name.is_empty()),
        Err(report) => {
            assert!(!report.problems.is_empty());
            assert!(!report.render().is_empty());
        }
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
