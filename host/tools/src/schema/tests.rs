use serde_json::json;

use super::*;

fn shown(original: Value) -> (Value, Vec<String>) {
    let schema = input_schema(Some(&original))
        .map_err(|why| format!("{original}: {why}"))
        .unwrap();
    (schema.shown, schema.cured)
}

#[test]
fn t_02_what_can_be_cured_is_shown_as_every_peer_takes_it_and_told() {
    let properties = json!({"a": {"type": "string"}});
    let no_type = "has no type; it is shown with the type object";
    for (original, wanted, cures) in [
        (json!({"type": "object"}), json!({"type": "object"}), vec![]),
        (
            json!(true),
            json!({"type": "object"}),
            vec!["is `true`; it is shown as that of any object"],
        ),
        (json!({}), json!({"type": "object"}), vec![no_type]),
        (
            json!({"properties": properties}),
            json!({"type": "object", "properties": properties}),
            vec![no_type],
        ),
        (
            json!({"type": ["object", "null"]}),
            json!({"type": "object"}),
            vec!["has several types; it is shown with the type object"],
        ),
        (
            json!({"type": "object", "properties": {"list": {"type": "array"}, "any": true}}),
            json!({"type": "object", "properties": {"list": {"type": "array", "items": {}}, "any": {}}}),
            vec!["has an array without `items` at /properties/list; any are shown"],
        ),
        (
            json!({"type": "object", "properties": {}, "required": ["b"]}),
            json!({"type": "object", "properties": {"b": {}}, "required": ["b"]}),
            vec!["requires `b` at its top without a property of that name; any value is shown"],
        ),
    ] {
        assert_eq!(
            shown(original),
            (wanted, cures.into_iter().map(str::to_owned).collect())
        );
    }
}

#[test]
fn t_02_what_cannot_be_cured_is_refused() {
    for (original, why) in [
        (json!(false), "the input schema is `false`; it must be an object"),
        (
            json!({"type": "string"}),
            "the input schema has the type \"string\"; arguments are always an object",
        ),
        (
            json!({"properties": {"a": {"type": "strnig"}}}),
            "the input schema is not valid: ",
        ),
        (
            json!({"$ref": "https://example.com/schema.json"}),
            "the input schema is not valid: ",
        ),
        (json!({"$ref": "#/$defs/none"}), "the input schema is not valid: "),
        (
            json!({"required": ["b"], "additionalProperties": false}),
            "the input schema requires `b` at its top and permits no such property: no arguments would fit",
        ),
        (
            json!({"anyOf": [{"type": "string"}]}),
            "the input schema has `anyOf` at its top and no branch of it is that of an object",
        ),
    ] {
        let refused = input_schema(Some(&original)).map(|schema| schema.shown).unwrap_err();
        assert!(refused.starts_with(why), "{refused}");
    }
}

#[test]
fn t_03_branches_are_shown_as_one_object_and_the_original_is_held_against() {
    let branch = |name: &str| json!({"properties": {(name): {"type": "string"}}, "required": [name]});
    let original =
        json!({"type": "object", "oneOf": [branch("a"), {"$ref": "#/$defs/b"}], "$defs": {"b": branch("b")}});
    let schema = input_schema(Some(&original)).unwrap();
    assert_eq!(
        schema.shown,
        json!({
            "type": "object",
            "$defs": {"b": branch("b")},
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "description": "Give exactly one of: a; b.",
        })
    );
    assert!(schema.validator.is_valid(&json!({"a": "x"})));
    assert!(!schema.validator.is_valid(&json!({"a": "x", "b": "y"})));
    assert_eq!(
        schema.cured,
        ["has `oneOf` at its top; its branches are shown as one object"]
    );
}

#[test]
fn all_branches_hold_together_and_conditions_are_left_to_the_validation() {
    let original = json!({
        "allOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"a": {"minLength": 2}, "b": {}}, "required": ["b"]},
        ],
        "not": {"required": ["c"]},
    });
    assert_eq!(
        shown(original).0,
        json!({
            "type": "object",
            "properties": {"a": {"anyOf": [{"type": "string"}, {"minLength": 2}]}, "b": {}},
            "required": ["a", "b"],
        })
    );
}
