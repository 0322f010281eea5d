//! The tool `files-edit`: replaces a piece of a text file below the granted directories.

use capsule_guest::{Error, Json, Output, Tool, args, export_tool};
use files_core::edit::{self, Asked};

struct FilesEdit;

export_tool!(FilesEdit {
    name: "files-edit",
    description: "Replaces a piece of a text file by another. The piece must be in the file exactly once, with the same white space: give enough \
        lines around it, or set replace_all.",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The file"},
            "old_text": {"type": "string", "minLength": 1, "description": "What is there now, copied exactly"},
            "new_text": {"type": "string", "description": "What is to be there; empty removes the piece"},
            "replace_all": {"type": "boolean", "default": false, "description": "Replace every place where the piece is"}
        },
        "required": ["path", "old_text", "new_text"],
        "additionalProperties": false
    }"#,
    annotations: r#"{"title": "Edit file", "read_only": false, "exclusive": true, "destructive": true}"#,
});

impl Tool for FilesEdit {
    fn call(input: Json) -> Result<Output, Error> {
        edit::edit(Asked {
            path: args::required_text(&input, "path")?,
            old: args::required_text(&input, "old_text")?,
            new: args::required_any_text(&input, "new_text")?,
            all: args::optional_bool(&input, "replace_all")?.unwrap_or(false),
        })
    }
}
