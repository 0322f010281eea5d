//! Arguments against the tool's schema.

use jsonschema::Validator;
use serde_json::{Map, Value};

/// Violations that a reply lists; a model mends these and sees the rest next time.
const MOST: usize = 5;
/// Characters of one violation: it quotes the offending value, which may be of any size.
const LONGEST: usize = 400;

/// Missing arguments are none.
pub(super) fn or_none(arguments: Value) -> Value {
    match arguments {
        Value::Null => Value::Object(Map::new()),
        // Some models write nothing at all for a tool without input.
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        given => given,
    }
}

/// What is wrong with the arguments, for the model to read.
pub(super) fn violations(validator: &Validator, arguments: &Value) -> Option<String> {
    if !arguments.is_object() {
        let kind = kind(arguments);
        return Some(format!("the arguments are {kind}; they must be a JSON object"));
    }
    if validator.is_valid(arguments) {
        return None;
    }
    let errors: Vec<String> = validator
        .iter_errors(arguments)
        .map(|error| match error.instance_path().as_str() {
            "" => format!("- {}", shortened(error.to_string())),
            path => format!("- at {path}: {}", shortened(error.to_string())),
        })
        .collect();
    let mut text = errors[..errors.len().min(MOST)].join("\n");
    if errors.len() > MOST {
        text.push_str(&format!("\n- and {} more", errors.len() - MOST));
    }
    Some(format!("the arguments do not fit its schema:\n{text}"))
}

/// The end of a violation says what was expected, so the middle goes.
fn shortened(text: String) -> String {
    let characters = text.chars().count();
    if characters <= LONGEST {
        return text;
    }
    let start: String = text.chars().take(LONGEST / 2).collect();
    let end: String = text.chars().skip(characters - LONGEST / 2).collect();
    format!("{start} […] {end}")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn t_05_no_arguments_in_any_spelling_are_an_empty_object() {
        for none in [json!(null), json!(""), json!(" \n"), json!({})] {
            assert_eq!(or_none(none), json!({}));
        }
        assert_eq!(or_none(json!("x")), json!("x"));
    }

    #[test]
    fn a_violation_names_its_path_and_what_was_expected() {
        let schema = json!({
            "type": "object",
            "properties": {"count": {"type": "integer"}, "items": {"type": "array", "items": {"minLength": 1}}},
            "required": ["count"]
        });
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert_eq!(violations(&validator, &json!({"count": 1})), None);
        assert_eq!(
            violations(&validator, &json!({"count": "many", "items": ["a", ""]})).as_deref(),
            Some(
                "the arguments do not fit its schema:\n\
                 - at /count: \"many\" is not of type \"integer\"\n\
                 - at /items/1: \"\" is shorter than 1 character"
            )
        );
        assert_eq!(
            violations(&validator, &json!({})).as_deref(),
            Some("the arguments do not fit its schema:\n- \"count\" is a required property")
        );
        let long = violations(&validator, &json!({"count": "é".repeat(100_000)})).unwrap();
        assert!(
            long.chars().count() < 600 && long.ends_with("éé\" is not of type \"integer\""),
            "{long}"
        );
        assert_eq!(
            violations(&validator, &json!([1])).as_deref(),
            Some("the arguments are an array; they must be a JSON object")
        );
    }
}
