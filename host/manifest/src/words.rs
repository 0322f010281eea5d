//! What a schema expects and what was found, in words.

use serde_json::Value;

/// Longer texts are cut where a problem quotes them.
const LONGEST_QUOTE: usize = 40;

/// What `schema` expects: "an integer of at least 1". `limits` names an upper bound also where it is only that of the number's type.
pub(crate) fn expected(schema: &Value, limits: bool) -> String {
    if let Some(text) = schema["patternErrorMessage"].as_str() {
        return text.strip_prefix("expected ").unwrap_or(text).to_owned();
    }
    if let Some(options) = schema["enum"].as_array() {
        return match options.as_slice() {
            [one] => quote(one),
            many => format!("one of {}", many.iter().map(quote).collect::<Vec<_>>().join(", ")),
        };
    }
    if let Some(only) = schema.get("const") {
        return quote(only);
    }
    match &schema["type"] {
        Value::String(kind) => of_type(kind, schema, limits),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds
                .map(|kind| of_type(kind, schema, limits))
                .collect::<Vec<_>>()
                .join(" or ")
        }
        _ => "something else".to_owned(),
    }
}

fn quote(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

fn of_type(kind: &str, schema: &Value, limits: bool) -> String {
    match kind {
        "string" => text(schema),
        "integer" => number("an integer", schema, limits),
        "number" => number("a number", schema, limits),
        "boolean" => "`true` or `false`".to_owned(),
        "array" => "a list".to_owned(),
        "object" => "a mapping (`key: value`)".to_owned(),
        "null" => "nothing".to_owned(),
        other => other.to_owned(),
    }
}

fn text(schema: &Value) -> String {
    let examples: Vec<_> = schema["examples"].as_array().into_iter().flatten().map(quote).collect();
    let length = match (schema["minLength"].as_u64(), schema["maxLength"].as_u64()) {
        (Some(1), None) => " that is not empty".to_owned(),
        (Some(least), None) if least > 0 => format!(" of at least {least} characters"),
        (None | Some(0), Some(most)) => format!(" of at most {most} characters"),
        (Some(least), Some(most)) => format!(" of {least} to {most} characters"),
        _ => String::new(),
    };
    if !examples.is_empty() {
        return format!("text such as {}", examples.join(" or "));
    }
    match (schema["pattern"].as_str(), schema["format"].as_str()) {
        (Some(pattern), _) => format!("text that matches `{pattern}`"),
        (None, Some(format)) => format!("text in the format `{format}`"),
        (None, None) => format!("text{length}"),
    }
}

fn number(what: &str, schema: &Value, limits: bool) -> String {
    let bound = |key: &str| schema.get(key).filter(|bound| bound.is_number());
    // The largest number of a type is no limit that a person would want to read about.
    let most = bound("maximum").filter(|most| limits || most.as_u64().is_none_or(|most| most < u64::from(u32::MAX)));
    let range = match (bound("minimum"), most) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" of at least {least}"),
        (None, Some(most)) => format!(" of at most {most}"),
        (None, None) => String::new(),
    };
    let above = bound("exclusiveMinimum").map_or_else(String::new, |bound| format!(" above {bound}"));
    let below = bound("exclusiveMaximum").map_or_else(String::new, |bound| format!(" below {bound}"));
    format!("{what}{range}{above}{below}")
}

/// What was found instead. A secret is not shown.
pub(crate) fn found(value: &Value, secret: bool) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        _ if secret => "a value that is not shown".to_owned(),
        Value::String(text) if text.is_empty() => "an empty text".to_owned(),
        Value::String(text) if text.chars().count() > LONGEST_QUOTE => {
            let start: String = text.chars().take(LONGEST_QUOTE).collect();
            format!("{:?}", format!("{start}…"))
        }
        Value::String(text) => format!("{text:?}"),
        other => format!("`{other}`"),
    }
}

/// How a scalar's quotes would have to change to fit the schema.
pub(crate) fn quoting(schema: &Value, value: &Value) -> Option<String> {
    if schema.get("pattern").is_some() {
        return None;
    }
    match (schema["type"].as_str()?, value) {
        ("string", Value::Number(_) | Value::Bool(_)) => {
            Some("YAML reads it as a number or a truth value; in quotes it is text.".to_owned())
        }
        ("integer" | "number" | "boolean", Value::String(text)) if text.contains("${") => {
            Some("A variable gives text, and this key takes none; `--set` overrides it for a run.".to_owned())
        }
        ("integer" | "number", Value::String(text)) if text.parse::<f64>().is_ok() => {
            Some("In quotes it is text; without them it is a number.".to_owned())
        }
        ("boolean", Value::String(text)) => match text.to_lowercase().as_str() {
            "yes" | "on" => Some("Write `true`.".to_owned()),
            "no" | "off" => Some("Write `false`.".to_owned()),
            "true" | "false" => Some("Write it in small letters and without quotes.".to_owned()),
            _ => None,
        },
        ("array", Value::String(_) | Value::Object(_)) => {
            Some("Begin each item of a list with `- `, or write it as `[…]`.".to_owned())
        }
        _ => None,
    }
}
