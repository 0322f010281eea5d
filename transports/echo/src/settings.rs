//! The transport's own keys of the `inference:` block.

use serde::Deserialize;
use serde_json::{Value, json};

/// The settings, read from the manifest with `${NAME}` expanded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EchoSettings {
    /// Written before every echoed text.
    pub(crate) prefix: String,
}

/// JSON Schema of [`EchoSettings`]. The host checks a manifest against it before it builds the transport.
pub(crate) fn schema(_: Option<&Value>) -> Value {
    json!({
        "type": "object",
        "properties": {
            "prefix": {"type": "string", "description": "Written before every echoed text.", "default": ""},
        },
        "additionalProperties": false,
    })
}
