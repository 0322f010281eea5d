//! Input schemas: what the model is shown, and what arguments are held against.

mod flatten;
mod normalise;

use jsonschema::Validator;
use serde_json::{Value, json};

/// A schema as the catalogue shows it, and its compiled form.
pub(crate) struct InputSchema {
    /// An object with `"type": "object"`, without combinators at the top, as every provider and CLI needs it.
    pub(crate) shown: Value,
    /// The original; arguments are validated against this.
    pub(crate) validator: Validator,
    /// What `shown` says otherwise than the original; each completes the sentence "its input schema …".
    pub(crate) cured: Vec<String>,
}

/// Normalises and compiles a schema; `None` stands for any object. `Err` says what cannot be cured.
pub(crate) fn input_schema(original: Option<&Value>) -> Result<InputSchema, String> {
    let any = json!({"type": "object"});
    let original = original.unwrap_or(&any);
    let mut cured = Vec::new();
    let mut shown = match original {
        Value::Bool(true) => {
            cured.push("is `true`; it is shown as that of any object".to_owned());
            any.clone()
        }
        Value::Object(schema) => Value::Object(flatten::flatten(schema, &mut cured)?),
        other => return Err(format!("the input schema is `{other}`; it must be an object")),
    };
    let validator =
        jsonschema::validator_for(original).map_err(|cause| format!("the input schema is not valid: {cause}"))?;
    normalise::normalise(&mut shown, &mut cured)?;
    Ok(InputSchema {
        shown,
        validator,
        cured,
    })
}

#[cfg(test)]
mod tests;
