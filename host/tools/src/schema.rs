//! Input schemas: what the model is shown, and what arguments are held against.

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// A schema as the catalogue shows it, and its compiled form.
pub(crate) struct InputSchema {
    /// An object with `"type": "object"`, as every provider and CLI needs it.
    pub(crate) shown: Value,
    /// The original; arguments are validated against this.
    pub(crate) validator: Validator,
}

/// Normalises and compiles a schema; `None` stands for any object.
pub(crate) fn input_schema(original: Option<&Value>) -> Result<InputSchema, String> {
    let any = json!({"type": "object"});
    let original = original.unwrap_or(&any);
    let shown = match original {
        Value::Bool(true) => any.clone(),
        Value::Object(schema) => with_type(schema)?,
        other => return Err(format!("the input schema is `{other}`; it must be an object")),
    };
    let validator =
        jsonschema::validator_for(original).map_err(|cause| format!("the input schema is not valid: {cause}"))?;
    Ok(InputSchema { shown, validator })
}

fn with_type(schema: &Map<String, Value>) -> Result<Value, String> {
    let mut shown = schema.clone();
    match schema.get("type") {
        None => {
            // First, where a reader looks for it.
            shown.shift_insert(0, "type".into(), "object".into());
        }
        Some(Value::String(only)) if only == "object" => {}
        Some(Value::Array(several)) if several.iter().any(|one| one == "object") => {
            shown.insert("type".into(), "object".into());
        }
        Some(other) => {
            return Err(format!(
                "the input schema has the type {other}; arguments are always an object"
            ));
        }
    }
    Ok(Value::Object(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usable_schema_is_shown_as_that_of_an_object() {
        let properties = json!({"a": {"type": "string"}});
        for (original, shown) in [
            (None, json!({"type": "object"})),
            (Some(json!(true)), json!({"type": "object"})),
            (Some(json!({})), json!({"type": "object"})),
            (
                Some(json!({"properties": properties})),
                json!({"type": "object", "properties": properties}),
            ),
            (Some(json!({"type": ["object", "null"]})), json!({"type": "object"})),
        ] {
            assert_eq!(input_schema(original.as_ref()).map(|schema| schema.shown), Ok(shown));
        }
    }

    #[test]
    fn a_schema_that_cannot_be_cured_is_refused() {
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
        ] {
            let refused = input_schema(Some(&original)).map(|schema| schema.shown).unwrap_err();
            assert!(refused.starts_with(why), "{refused}");
        }
    }
}
