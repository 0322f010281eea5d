//! What must hold for any bytes, for the fuzz targets and for the test that runs their seeds.

use capsule_tools::{Grants, ToolSource, Toolbox, fuzzing};
use serde_json::Value;

/// JSON and component values: what a schema accepts converts, and comes back as JSON that the schema accepts and that says the same.
///
/// The first line of the input makes a type, the rest is the JSON.
pub(super) fn values(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (shape, json) = bytes.split_at(at);
    if let Ok(json) = serde_json::from_slice::<Value>(json.get(1..).unwrap_or_default()) {
        fuzzing::round_trip(shape, &json);
    }
}

/// From a component to a catalogue: whatever is in the file, it is a tool with a schema of an object, or an error with a code.
pub(super) fn component(bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a directory for the component");
    let file = dir.path().join("tool.wasm");
    std::fs::write(&file, bytes).expect("a file for the component");
    let source = ToolSource::new("tool", &file);
    match Toolbox::load(&[source], &Grants::default(), &capsule_tools::Options::default()) {
        Ok(toolbox) => {
            for tool in &toolbox.catalogue().tools {
                assert_eq!(tool.input_schema["type"], "object", "{}", tool.input_schema);
                assert!(!tool.alias.is_empty() && tool.alias.len() <= 50, "{}", tool.alias);
            }
        }
        Err(errors) => assert!(errors.iter().all(|error| error.code.starts_with("tool-")), "{errors:?}"),
    }
}
