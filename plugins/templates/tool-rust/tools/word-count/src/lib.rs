//! The tool `word-count`.

use capsule_guest::{Error, Json, Output, Tool, args, export_tool, json};

/// The tool.
pub struct WordCount;

export_tool!(WordCount {
    name: "word-count",
    description: "Counts the words, lines and characters of a text.",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The text to count."}
        },
        "required": ["text"],
        "additionalProperties": false
    }"#,
    annotations: r#"{"read_only": true}"#,
});

impl Tool for WordCount {
    fn call(input: Json) -> Result<Output, Error> {
        let text = args::required_text(&input, "text")?;
        Ok(Output::json(&count(text)))
    }
}

fn count(text: &str) -> Json {
    json!({
        "words": text.split_whitespace().count(),
        "lines": text.lines().count(),
        "characters": text.chars().count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lines_and_characters_are_counted() {
        assert_eq!(
            count("Grüße aus\nBern"),
            json!({"words": 3, "lines": 2, "characters": 14})
        );
    }
}
