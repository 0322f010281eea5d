//! Cures what some provider or CLI refuses, at every depth of a schema.

use serde_json::{Map, Value, json};

/// Keywords whose value is a schema.
const ONE: &[&str] = &[
    "items",
    "additionalProperties",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
];
/// Keywords whose value is a list of schemas.
const LISTS: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose value is schemas by name.
const MAPS: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];
/// Schemas nested deeper are refused: nobody writes them, and every walk is on the stack.
const DEEPEST: u32 = 64;

/// Cures the schema and everything in it. `Err` says what cannot be cured.
pub(super) fn normalise(schema: &mut Value, cured: &mut Vec<String>) -> Result<(), String> {
    walk(schema, "", 0, cured)
}

fn walk(schema: &mut Value, at: &str, depth: u32, cured: &mut Vec<String>) -> Result<(), String> {
    if depth > DEEPEST {
        return Err(format!("the input schema is nested more than {DEEPEST} deep"));
    }
    let Some(parts) = schema.as_object_mut() else {
        return Ok(());
    };
    array_with_items(parts, at, cured);
    required_that_can_be_given(parts, at, cured)?;
    for key in ONE {
        if let Some(inner) = parts.get_mut(*key) {
            walk(inner, &format!("{at}/{key}"), depth + 1, cured)?;
        }
    }
    for key in LISTS {
        for (index, inner) in parts
            .get_mut(*key)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .enumerate()
        {
            walk(inner, &format!("{at}/{key}/{index}"), depth + 1, cured)?;
        }
    }
    for key in MAPS {
        for (name, inner) in parts.get_mut(*key).and_then(Value::as_object_mut).into_iter().flatten() {
            if *key == "properties" && inner == true {
                *inner = json!({});
            }
            walk(inner, &format!("{at}/{key}/{name}"), depth + 1, cured)?;
        }
    }
    Ok(())
}

fn array_with_items(schema: &mut Map<String, Value>, at: &str, cured: &mut Vec<String>) {
    let array = match schema.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    };
    if array && !schema.contains_key("items") {
        schema.insert("items".into(), json!({}));
        cured.push(format!("has an array without `items` at {at}; any are shown"));
    }
}

fn required_that_can_be_given(
    schema: &mut Map<String, Value>,
    at: &str,
    cured: &mut Vec<String>,
) -> Result<(), String> {
    let known = |schema: &Map<String, Value>, name: &str| {
        schema
            .get("properties")
            .is_some_and(|properties| properties.get(name).is_some())
    };
    let names: Vec<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .filter(|name| !known(schema, name))
        .collect();
    // Inside a branch, the properties may stand beside the combinator.
    let alone = at.is_empty() || schema.contains_key("properties");
    for name in names.into_iter().filter(|_| alone) {
        let place = if at.is_empty() { "at its top" } else { at };
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) && !schema.contains_key("patternProperties")
        {
            return Err(format!(
                "the input schema requires `{name}` {place} and permits no such property: no arguments would fit"
            ));
        }
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.insert(name.clone(), json!({}));
        }
        cured.push(format!(
            "requires `{name}` {place} without a property of that name; any value is shown"
        ));
    }
    Ok(())
}
