//! The tool `files-write`: writes whole text files below the granted directories.

use capsule_guest::{Error, Json, Output, Tool, args, export_tool};
use files_core::write::{self, Asked};

struct FilesWrite;

export_tool!(FilesWrite {
    name: "files-write",
    description: "Writes a whole text file, and the directories above it that are missing. To change a part of a file, edit it instead.",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The file"},
            "content": {"type": "string", "description": "All that the file is to hold"},
            "overwrite": {"type": "boolean", "default": false, "description": "Replace a file that is there; else that is refused"}
        },
        "required": ["path", "content"],
        "additionalProperties": false
    }"#,
    annotations: r#"{"title": "Write file", "read_only": false, "exclusive": true, "destructive": true, "idempotent": true}"#,
});

impl Tool for FilesWrite {
    fn call(input: Json) -> Result<Output, Error> {
        write::write(Asked {
            path: args::required_text(&input, "path")?,
            content: args::required_any_text(&input, "content")?,
            overwrite: args::optional_bool(&input, "overwrite")?.unwrap_or(false),
        })
    }
}
