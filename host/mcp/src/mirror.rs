//! Headers that repeat what a body says. A proxy decides by the header and the server acts by the body, so the two must be the same.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderMap;
use serde_json::Value;

use crate::{modern::HEADER_MISMATCH, wire::RpcError};

/// The annotation of a property whose value is repeated in `Mcp-Param-…`.
const ANNOTATION: &str = "x-mcp-header";

/// Checks that the header is there once and says `expected`.
pub(crate) fn same(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), RpcError> {
    match read(headers, name)? {
        Some(said) if said == expected => Ok(()),
        Some(_) => Err(mismatch(name, "does not say what the body says")),
        None => Err(mismatch(name, "is missing")),
    }
}

/// Checks the headers of all annotated properties. A property without a value must have no header.
pub(crate) fn parameters(headers: &HeaderMap, schema: &Value, arguments: Option<&Value>) -> Result<(), RpcError> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (key, property) in properties {
        let value = arguments.and_then(|arguments| arguments.get(key));
        if let Some(header) = property.get(ANNOTATION).and_then(Value::as_str) {
            parameter(headers, &format!("mcp-param-{header}"), value)?;
        }
        parameters(headers, property, value)?;
    }
    Ok(())
}

fn parameter(headers: &HeaderMap, name: &str, value: Option<&Value>) -> Result<(), RpcError> {
    let expected = match value {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(scalar @ (Value::Bool(_) | Value::Number(_))) => Some(scalar.to_string()),
        // Not what the schema wants: the dispatch says so, in words for the model.
        Some(_) => return Ok(()),
    };
    match expected {
        Some(expected) => same(headers, name, &expected),
        None if read(headers, name)?.is_some() => Err(mismatch(name, "is there although the body has no value")),
        None => Ok(()),
    }
}

/// The value of a header, out of its wrapping where it has one.
fn read(headers: &HeaderMap, name: &str) -> Result<Option<String>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(mismatch(name, "is there more than once"));
    }
    let text = value.to_str().ok().and_then(unwrap);
    text.map(Some).ok_or_else(|| mismatch(name, "cannot be read"))
}

/// `=?base64?…?=` holds what a header cannot; everything else stands for itself.
fn unwrap(text: &str) -> Option<String> {
    let Some(wrapped) = text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(text.to_owned());
    };
    String::from_utf8(STANDARD.decode(wrapped).ok()?).ok()
}

fn mismatch(name: &str, what: &str) -> RpcError {
    RpcError::new(HEADER_MISMATCH, format!("the header `{name}` {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;
    use serde_json::json;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    fn verdict(pairs: &[(&str, &str)], arguments: Value) -> Result<(), String> {
        let schema = json!({"type": "object", "properties": {
            "city": {"type": "string", "x-mcp-header": "City"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "deep": {"type": "object", "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
            "plain": {"type": "string"},
        }});
        parameters(&headers(pairs), &schema, Some(&arguments)).map_err(|error| {
            assert_eq!(error.code, -32020);
            error.message
        })
    }

    fn says(header: &str, what: &str) -> Result<(), String> {
        Err(format!("the header `mcp-param-{header}` {what}"))
    }

    #[test]
    fn m_10_values_of_every_kind_are_repeated_as_text_and_wrapped_where_they_must_be() {
        let all = [
            ("mcp-param-city", "=?base64?WsO8cmljaA==?="),
            ("mcp-param-count", "-7"),
            ("mcp-param-flag", "true"),
        ];
        let arguments = json!({"city": "Zürich", "count": -7, "deep": {"flag": true}, "plain": "x"});
        assert_eq!(verdict(&all, arguments), Ok(()));
        assert_eq!(verdict(&[], json!({"city": null, "plain": "x"})), Ok(()));
        assert_eq!(verdict(&[], json!({"deep": 7, "count": ["wrong"]})), Ok(()));
    }

    #[test]
    fn m_10_a_header_that_says_something_else_is_told_by_its_name() {
        let berlin = json!({"city": "Berlin"});
        assert_eq!(verdict(&[], berlin.clone()), says("City", "is missing"));
        let other = [("mcp-param-city", "Bonn")];
        assert_eq!(
            verdict(&other, berlin.clone()),
            says("City", "does not say what the body says")
        );
        let twice = [("mcp-param-city", "Berlin"), ("mcp-param-city", "Berlin")];
        assert_eq!(verdict(&twice, berlin.clone()), says("City", "is there more than once"));
        for unreadable in [
            "=?base64?QmVybGlu=?=",
            "=?base64?Qm!!?=",
            "=?base64?/w==?=",
            "Berl\u{ed}n",
        ] {
            let unreadable = [("mcp-param-city", unreadable)];
            assert_eq!(verdict(&unreadable, berlin.clone()), says("City", "cannot be read"));
        }
        let extra = [("mcp-param-flag", "true")];
        assert_eq!(
            verdict(&extra, json!({})),
            says("Flag", "is there although the body has no value")
        );
    }

    proptest! {
        #[test]
        fn any_header_and_any_argument_get_a_verdict(header in "[ -~]{0,40}", wrapped in any::<bool>(), value in ".{0,20}") {
            let said = if wrapped { format!("=?base64?{}?=", STANDARD.encode(&value)) } else { header.trim().to_owned() };
            let fits = unwrap(&said).is_some_and(|text| text == value);
            prop_assert_eq!(verdict(&[("mcp-param-city", &said)], json!({"city": value})).is_ok(), fits);
        }
    }
}
