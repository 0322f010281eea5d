//! What must hold for any bytes, for the fuzz targets and for the test that runs their seeds.

use std::collections::BTreeSet;

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

/// From a component and the types in it to a catalogue: whatever is in the file, it is tools that each have a name of their own that every
/// model takes and a schema of an object, or an error with a code.
pub(super) fn component(bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a directory for the component");
    let file = dir.path().join("tool.wasm");
    std::fs::write(&file, bytes).expect("a file for the component");
    let source = ToolSource::new("tool", &file);
    match Toolbox::load(&[source], &Grants::default(), &capsule_tools::Options::default()) {
        Ok(toolbox) => {
            let tools = &toolbox.catalogue().tools;
            for tool in tools {
                assert_eq!(tool.input_schema["type"], "object", "{}", tool.input_schema);
                jsonschema::validator_for(&tool.input_schema).expect("what a model is shown is a schema");
                let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
                assert!(
                    (1..=50).contains(&tool.alias.len()) && tool.alias.bytes().all(fits),
                    "{}",
                    tool.alias
                );
            }
            let aliases: BTreeSet<_> = tools.iter().map(|tool| &tool.alias).collect();
            assert_eq!(aliases.len(), tools.len(), "{aliases:?}");
        }
        Err(errors) => assert!(
            !errors.is_empty() && errors.iter().all(|error| error.code.starts_with("tool-")),
            "{errors:?}"
        ),
    }
}
