//! The tool `files-read`: reads lines of text files below the granted directories.

use capsule_guest::{Error, Json, Output, Tool, args, export_tool};
use files_core::read::{self, Asked};

struct FilesRead;

export_tool!(FilesRead {
    name: "files-read",
    description: "Reads lines of a UTF-8 text file. A long file comes in parts: the answer then ends with the line to go on from.",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The file"},
            "from_line": {"type": "integer", "minimum": 1, "default": 1, "description": "The first line to read, counted from 1"},
            "max_lines": {"type": "integer", "minimum": 1, "maximum": 5000, "default": 500},
            "line_numbers": {"type": "boolean", "default": false, "description": "Begin each line with its number and a tab"}
        },
        "required": ["path"],
        "additionalProperties": false
    }"#,
    annotations: r#"{"title": "Read file", "read_only": true, "idempotent": true}"#,
});

impl Tool for FilesRead {
    fn call(input: Json) -> Result<Output, Error> {
        read::read(Asked {
            path: args::required_text(&input, "path")?,
            from: args::optional_u64(&input, "from_line")?.unwrap_or(1),
            lines: args::optional_u64(&input, "max_lines")?.unwrap_or(read::DEFAULT_LINES),
            numbers: args::optional_bool(&input, "line_numbers")?.unwrap_or(false),
        })
    }
}
