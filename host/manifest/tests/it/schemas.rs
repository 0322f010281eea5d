//! The schema that editors use.

use serde_json::{Value, json};

use crate::Made;

fn accepts(manifest: &Value) -> bool {
    let schema = capsule_manifest::schema(&Made, "post");
    let validator = jsonschema::options().build(&schema).unwrap();
    validator.is_valid(manifest)
}

fn with(inference: Value) -> Value {
    json!({"name": "a", "version": "1.0.0", "inference": inference})
}

#[test]
fn it_is_a_valid_schema_that_describes_every_key() {
    let schema = capsule_manifest::schema(&Made, "post");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(jsonschema::meta::is_valid(&schema));
    let mut missing = Vec::new();
    let mut base = schema.clone();
    // What transports say about their keys is theirs.
    base["properties"]["inference"]["allOf"] = Value::Null;
    base["properties"]["inference"]["properties"]["transports"]["properties"] = Value::Null;
    base["$defs"] = Value::Null;
    undescribed(&base, "", &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}

fn undescribed(schema: &Value, at: &str, missing: &mut Vec<String>) {
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}.{key}");
        if property["description"].is_null() {
            missing.push(at.clone());
        }
        undescribed(property, &at, missing);
        undescribed(&property["items"], &at, missing);
    }
}

#[test]
fn flat_keys_are_those_of_the_named_transport() {
    assert!(
        accepts(&with(json!({"address": "x", "stamp": "a-1"}))),
        "of the default one, where none is named"
    );
    assert!(accepts(&with(
        json!({"transport": "radio", "channel": "long", "mast": true})
    )));
    assert!(!accepts(&with(json!({"transport": "radio", "address": "x"}))));
    assert!(!accepts(&with(json!({"channel": "long"}))));
    assert!(
        !accepts(&with(json!({"stamp": "a"}))),
        "references into a transport's schema hold"
    );
}

#[test]
fn blocks_are_those_of_their_owners() {
    assert!(accepts(&with(
        json!({"transports": {"radio": {"model": "m", "channel": "short"}, "post": {"retry": {"times": 1}}}})
    )));
    assert!(!accepts(&with(json!({"transports": {"radio": {"address": "x"}}}))));
    assert!(!accepts(&with(json!({"transports": {"pigeon": {}}}))));
}
