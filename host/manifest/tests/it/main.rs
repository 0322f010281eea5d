//! Manifests as people write them, right and wrong.
#![cfg(test)]

mod family;
mod grants;
mod overrides;
mod problems;
mod properties;
mod schemas;
mod seeds;
mod stories;

use std::{fs, path::Path};

use capsule_manifest::{Loaded, Options, Report, TransportSchemas};
use serde_json::{Value, json};

/// Two made-up transports. `radio` needs a `channel`, and what else it takes depends on it; `post` has a key that is secret.
pub struct Made;

impl TransportSchemas for Made {
    fn schema(&self, name: &str, settings: Option<&Value>) -> Option<Value> {
        match name {
            "post" => Some(post()),
            "radio" => Some(radio(settings)),
            _ => None,
        }
    }

    fn names(&self) -> Vec<String> {
        vec!["post".to_owned(), "radio".to_owned()]
    }
}

fn post() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": ["address"],
        "properties": {
            "address": {"type": "string", "description": "Where letters go."},
            "stamp": {"$ref": "#/$defs/stamp"},
            "wait": capsule_api::HumanDuration::schema(),
            "retry": {
                "type": "object",
                "additionalProperties": false,
                "properties": {"times": {"type": "integer", "minimum": 0, "maximum": 9}},
            },
            "sender": {"anyOf": [
                {"type": "string"},
                {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}, "additionalProperties": false},
            ]},
        },
        "$defs": {"stamp": {"type": "string", "pattern": "^[a-z]+-[0-9]+$", "writeOnly": true}},
    })
}

fn radio(settings: Option<&Value>) -> Value {
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["channel"],
        "properties": {
            "channel": {"type": "string", "enum": ["short", "long"]},
            "power": {"type": "number", "exclusiveMinimum": 0},
        },
    });
    if settings.is_none_or(|settings| settings["channel"] == "long") {
        schema["properties"]["mast"] = json!({"type": "boolean"});
    }
    schema
}

pub fn options() -> Options<'static> {
    Options::new(&Made, "post")
}

/// A manifest of this text, read without a file.
pub fn read(text: &str) -> Result<Loaded, Report> {
    read_with(text, &options())
}

pub fn read_with(text: &str, options: &Options<'_>) -> Result<Loaded, Report> {
    capsule_manifest::parse(Path::new("capsule.yaml"), text, options)
}

/// The report's lines.
pub fn complaints(text: &str) -> Vec<String> {
    complaints_with(text, &options())
}

pub fn complaints_with(text: &str, options: &Options<'_>) -> Vec<String> {
    let report = read_with(text, options).expect_err("the manifest is wrong");
    report.to_string().lines().map(str::to_owned).collect()
}

/// A directory with a `capsule.yaml`.
pub fn capsule(bytes: impl AsRef<[u8]>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("capsule.yaml"), bytes).unwrap();
    dir
}

/// What every manifest needs.
pub const HEAD: &str = "name: letters\nversion: 0.1.0\n";
