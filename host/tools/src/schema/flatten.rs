//! The top of a schema as a plain object: providers refuse combinators there. The original still decides what is valid.

use serde_json::{Map, Value, json};

/// References followed one after the other.
const LONGEST_CHAIN: usize = 16;
/// Keywords that decide between whole schemas and list no properties; they are left to the validation.
const LEFT_OUT: &[&str] = &["not", "if", "then", "else", "dependentSchemas", "enum", "const"];

/// The schema without combinators at its top. `Err` says what cannot be an object.
pub(super) fn flatten(schema: &Map<String, Value>, cured: &mut Vec<String>) -> Result<Map<String, Value>, String> {
    let mut shown = resolved(schema, schema)?.clone();
    for keep in ["$defs", "definitions"] {
        if let Some(definitions) = schema.get(keep) {
            shown.entry(keep).or_insert_with(|| definitions.clone());
        }
    }
    typed(&mut shown, cured)?;
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(branches) = shown.shift_remove(key) {
            merge_branches(&mut shown, key, &branches, schema)?;
            cured.push(format!("has `{key}` at its top; its branches are shown as one object"));
        }
    }
    for key in LEFT_OUT {
        if shown.shift_remove(*key).is_some() {
            cured.push(format!("has `{key}` at its top; it is held against, and not shown"));
        }
    }
    Ok(shown)
}

/// Makes the type that of an object. `Err` where it is that of something else.
fn typed(schema: &mut Map<String, Value>, cured: &mut Vec<String>) -> Result<(), String> {
    match schema.get("type") {
        None => {
            // First, where a reader looks for it.
            schema.shift_insert(0, "type".into(), "object".into());
            cured.push("has no type; it is shown with the type object".to_owned());
        }
        Some(Value::String(only)) if only == "object" => {}
        Some(Value::Array(several)) if several.iter().any(|one| one == "object") => {
            schema.insert("type".into(), "object".into());
            cured.push("has several types; it is shown with the type object".to_owned());
        }
        Some(other) => {
            return Err(format!(
                "the input schema has the type {other}; arguments are always an object"
            ));
        }
    }
    Ok(())
}

/// The schema behind its references into `root`.
fn resolved<'a>(
    schema: &'a Map<String, Value>,
    root: &'a Map<String, Value>,
) -> Result<&'a Map<String, Value>, String> {
    let mut at = schema;
    for _ in 0..LONGEST_CHAIN {
        let Some(target) = at.get("$ref") else {
            return Ok(at);
        };
        let path = target.as_str().and_then(|target| target.strip_prefix("#/"));
        let found = path.and_then(|path| {
            let mut parts = path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
            let first = root.get(&parts.next()?)?;
            parts.try_fold(first, |value, part| value.get(&part))
        });
        at = found
            .and_then(Value::as_object)
            .ok_or_else(|| format!("the input schema is not valid: `$ref` {target} names nothing in it"))?;
    }
    Err(format!(
        "the input schema is not valid: more than {LONGEST_CHAIN} references in a row"
    ))
}

/// Puts the properties of all branches beside those that are there. What all branches require stays required; of `allOf`, what any does.
fn merge_branches(
    shown: &mut Map<String, Value>,
    key: &str,
    branches: &Value,
    root: &Map<String, Value>,
) -> Result<(), String> {
    let branches = branches.as_array().map_or(&[][..], Vec::as_slice);
    let mut common: Option<Vec<Value>> = None;
    let mut choices = Vec::new();
    for branch in branches.iter().filter_map(Value::as_object) {
        let branch = resolved(branch, root)?;
        if branch.get("type").is_some_and(|kind| !names_object(kind)) {
            continue;
        }
        for (name, property) in branch
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            add(shown, name, property);
        }
        let required = branch
            .get("required")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        choices.push(spelled(&required));
        common = Some(match (common, key) {
            (None, _) => required,
            (Some(before), "allOf") => union(before, required),
            (Some(before), _) => before.into_iter().filter(|name| required.contains(name)).collect(),
        });
    }
    if choices.is_empty() {
        return Err(format!(
            "the input schema has `{key}` at its top and no branch of it is that of an object"
        ));
    }
    let before = shown
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let required = union(before, common.unwrap_or_default());
    if !required.is_empty() {
        shown.insert("required".into(), Value::Array(required));
    }
    if key != "allOf" && choices.iter().any(|choice| !choice.is_empty()) {
        describe(shown, key, &choices);
    }
    Ok(())
}

fn names_object(kind: &Value) -> bool {
    kind == "object"
        || kind
            .as_array()
            .is_some_and(|several| several.iter().any(|one| one == "object"))
}

fn union(mut before: Vec<Value>, more: Vec<Value>) -> Vec<Value> {
    for name in more {
        if !before.contains(&name) {
            before.push(name);
        }
    }
    before
}

/// Adds a property; one that is there in another form may have either.
fn add(shown: &mut Map<String, Value>, name: &str, property: &Value) {
    let properties = shown.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else {
        return;
    };
    let merged = match properties.get(name) {
        Some(there) if there == property => return,
        Some(there) => json!({"anyOf": [there, property]}),
        None => property.clone(),
    };
    properties.insert(name.to_owned(), merged);
}

fn spelled(required: &[Value]) -> String {
    let names: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
    names.join(" and ")
}

/// Tells the model in words what the combinator said.
fn describe(shown: &mut Map<String, Value>, key: &str, choices: &[String]) {
    let wanted = if key == "oneOf" { "exactly one" } else { "at least one" };
    let choices: Vec<&str> = choices
        .iter()
        .map(|choice| if choice.is_empty() { "nothing more" } else { choice })
        .collect();
    let rule = format!("Give {wanted} of: {}.", choices.join("; "));
    let text = match shown.get("description").and_then(Value::as_str) {
        Some(before) => format!("{before} {rule}"),
        None => rule,
    };
    shown.insert("description".into(), Value::String(text));
}
