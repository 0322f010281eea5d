//! Doors for the fuzz targets into what is private. No part of the crate's interface.

use serde_json::Value;

/// Reads a type from `shape`; where its schema accepts `json`, converts it to a component value and back.
///
/// # Panics
/// Where what the schema accepts does not convert, or comes back as something that the schema refuses or that converts otherwise.
pub fn round_trip(shape: &[u8], json: &Value) {
    crate::values::round_trip(shape, json);
}
