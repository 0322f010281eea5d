//! Doors for the fuzz targets into what is private. No part of the crate's interface.

use serde_json::Value;

/// Reads a type from `shape`; converts `json` to a component value of it and back.
///
/// # Panics
/// Where the schema of the type refuses what converts or accepts what does not (but for what no schema can say), or where a value comes back
/// as another.
pub fn round_trip(shape: &[u8], json: &Value) {
    crate::values::round_trip(shape, json);
}
