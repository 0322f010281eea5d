//! Reads arguments. The host has checked them against the tool's schema where it has one; these
//! functions still say what is wrong, since a tool can also be called without that check.

use crate::{Error, Json};

/// The text at `key`.
///
/// # Errors
///
/// When it is absent, `null`, not a string or empty.
pub fn required_text<'a>(input: &'a Json, key: &str) -> Result<&'a str, Error> {
    match optional_text(input, key)? {
        Some("") => Err(Error::new(format!("argument '{key}' is empty"))),
        Some(text) => Ok(text),
        None => Err(Error::new(format!("argument '{key}' is missing"))),
    }
}

/// The text at `key`, which may be empty.
///
/// # Errors
///
/// When it is absent, `null` or not a string.
pub fn required_any_text<'a>(input: &'a Json, key: &str) -> Result<&'a str, Error> {
    optional_text(input, key)?.ok_or_else(|| Error::new(format!("argument '{key}' is missing")))
}

/// The text at `key`; `None` when it is absent or `null`.
///
/// # Errors
///
/// When it is there and not a string.
pub fn optional_text<'a>(input: &'a Json, key: &str) -> Result<Option<&'a str>, Error> {
    match input.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(other) => Err(Error::new(format!("argument '{key}' must be a string, not {other}"))),
    }
}

/// The whole number at `key`, 0 or more; `None` when it is absent or `null`. `3.0` counts as 3,
/// since some models write numbers that way.
///
/// # Errors
///
/// When it is there and not such a number.
pub fn optional_u64(input: &Json, key: &str) -> Result<Option<u64>, Error> {
    // Above 2^53 a float no longer names one whole number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let value = match input.get(key) {
        None | Some(Json::Null) => return Ok(None),
        Some(value) => value,
    };
    let whole = value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..=EXACT).contains(n));
    value.as_u64().or(whole.map(|n| n as u64)).map(Some).ok_or_else(|| {
        Error::new(format!(
            "argument '{key}' must be a whole number, 0 or more, not {value}"
        ))
    })
}

/// Yes or no at `key`; `None` when it is absent or `null`.
///
/// # Errors
///
/// When it is there and neither `true` nor `false`.
pub fn optional_bool(input: &Json, key: &str) -> Result<Option<bool>, Error> {
    match input.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Bool(value)) => Ok(Some(*value)),
        Some(other) => Err(Error::new(format!(
            "argument '{key}' must be true or false, not {other}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn text_is_read_or_the_error_names_the_argument() {
        let input = json!({"name": "Ada", "none": null, "empty": "", "number": 7});

        assert_eq!(required_text(&input, "name"), Ok("Ada"));
        assert_eq!(optional_text(&input, "none"), Ok(None));
        assert_eq!(optional_text(&input, "absent"), Ok(None));
        let message = |key| required_text(&input, key).expect_err("unusable").message().to_owned();
        assert_eq!(message("absent"), "argument 'absent' is missing");
        assert_eq!(message("empty"), "argument 'empty' is empty");
        assert_eq!(message("number"), "argument 'number' must be a string, not 7");
        assert_eq!(required_any_text(&input, "empty"), Ok(""));
        let missing = Error::new("argument 'none' is missing");
        assert_eq!(required_any_text(&input, "none"), Err(missing));
    }

    #[test]
    fn yes_and_no_are_no_other_values() {
        let input = json!({"yes": true, "none": null, "text": "true"});

        assert_eq!(optional_bool(&input, "yes"), Ok(Some(true)));
        assert_eq!(optional_bool(&input, "none"), Ok(None));
        assert_eq!(optional_bool(&input, "absent"), Ok(None));
        let refused = Error::new("argument 'text' must be true or false, not \"true\"");
        assert_eq!(optional_bool(&input, "text"), Err(refused));
    }

    #[test]
    fn whole_numbers_are_read_also_when_written_as_floats() {
        let input =
            json!({"int": 3, "float": 3.0, "max": u64::MAX, "part": 3.5, "minus": -1, "big": 1e300, "text": "3"});

        assert_eq!(optional_u64(&input, "int"), Ok(Some(3)));
        assert_eq!(optional_u64(&input, "float"), Ok(Some(3)));
        assert_eq!(optional_u64(&input, "max"), Ok(Some(u64::MAX)));
        assert_eq!(optional_u64(&input, "absent"), Ok(None));
        for key in ["part", "minus", "big", "text"] {
            assert!(optional_u64(&input, key).is_err(), "{key}");
        }
    }
}
