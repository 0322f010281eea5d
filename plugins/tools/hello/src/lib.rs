//! The tool `hello`: greets in several languages.

use capsule_guest::{Error, Json, Output, StateEffect, Tool, args, export_tool};

struct Hello;

export_tool!(Hello {
    name: "hello",
    description: "Greets a person by name, in the language asked for (English by default).",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Whom to greet"},
            "language": {"type": "string", "description": "A language, by its English name or two-letter code, such as French or fr"}
        },
        "required": ["name"],
        "additionalProperties": false
    }"#,
    annotations: r#"{"title": "Hello", "read_only": true, "idempotent": true}"#,
});

/// Code (ISO 639-1), English name, and the greeting around the name.
const LANGUAGES: [(&str, &str, &str, &str); 16] = [
    ("ar", "Arabic", "مرحبًا يا ", "!"),
    ("de", "German", "Guten Tag, ", "!"),
    ("el", "Greek", "Γεια σου, ", "!"),
    ("en", "English", "Hello, ", "!"),
    ("es", "Spanish", "¡Hola, ", "!"),
    ("fr", "French", "Bonjour, ", " !"),
    ("hi", "Hindi", "नमस्ते, ", "!"),
    ("it", "Italian", "Ciao, ", "!"),
    ("ja", "Japanese", "こんにちは、", "さん！"),
    ("nl", "Dutch", "Hallo, ", "!"),
    ("pl", "Polish", "Cześć, ", "!"),
    ("pt", "Portuguese", "Olá, ", "!"),
    ("sv", "Swedish", "Hej, ", "!"),
    ("sw", "Swahili", "Habari, ", "!"),
    ("tr", "Turkish", "Merhaba, ", "!"),
    ("uk", "Ukrainian", "Привіт, ", "!"),
];

const LONGEST_NAME: usize = 200;

impl Tool for Hello {
    fn call(input: Json) -> Result<Output, Error> {
        let name = args::required_text(&input, "name")?.trim();
        if name.is_empty() {
            return Err(Error::new("argument 'name' is blank"));
        }
        if name.chars().count() > LONGEST_NAME {
            return Err(Error::new(format!(
                "argument 'name' is longer than {LONGEST_NAME} characters"
            )));
        }
        let asked = args::optional_text(&input, "language")?.unwrap_or("en").trim();
        let (_, language, before, after) = LANGUAGES
            .iter()
            .find(|(code, language, ..)| code.eq_ignore_ascii_case(asked) || language.eq_ignore_ascii_case(asked))
            .ok_or_else(|| unknown_language(asked))?;
        Ok(Output::text(format!("{before}{name}{after}"))
            .summary(format!("greeted {name} in {language}"))
            .state_effect(StateEffect::Read))
    }
}

fn unknown_language(asked: &str) -> Error {
    let known: Vec<String> = LANGUAGES
        .iter()
        .map(|(code, language, ..)| format!("{language} ({code})"))
        .collect();
    Error::new(format!(
        "no greeting in '{asked}'; the languages are {}",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use capsule_guest::json;

    fn failure(input: Json) -> String {
        Hello::call(input).expect_err("must fail").message().to_owned()
    }

    #[test]
    fn greets_in_english_unless_asked_otherwise() {
        let expected = Output::text("Hello, Ada!")
            .summary("greeted Ada in English")
            .state_effect(StateEffect::Read);
        assert_eq!(Hello::call(json!({"name": " Ada "})), Ok(expected));
    }

    #[test]
    fn a_language_is_known_by_name_and_by_code_in_any_case() {
        let expected = Output::text("Bonjour, Ada !")
            .summary("greeted Ada in French")
            .state_effect(StateEffect::Read);
        for language in ["fr", "FR", "french", "French"] {
            let greeted = Hello::call(json!({"name": "Ada", "language": language}));
            assert_eq!(greeted, Ok(expected.clone()), "{language}");
        }
    }

    #[test]
    fn an_unknown_language_fails_and_lists_the_known_ones() {
        let message = failure(json!({"name": "Ada", "language": "Klingon"}));

        assert!(
            message.starts_with("no greeting in 'Klingon'; the languages are Arabic (ar), "),
            "{message}"
        );
        for (code, language, ..) in LANGUAGES {
            assert!(message.contains(&format!("{language} ({code})")), "{language}");
        }
    }

    #[test]
    fn a_name_is_needed() {
        assert_eq!(failure(json!({})), "argument 'name' is missing");
        assert_eq!(failure(json!({"name": "  "})), "argument 'name' is blank");
        assert_eq!(
            failure(json!({"name": "é".repeat(201)})),
            "argument 'name' is longer than 200 characters"
        );
    }
}
