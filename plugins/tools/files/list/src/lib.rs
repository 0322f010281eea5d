//! The tool `files-list`: lists directories below the granted ones.

use capsule_guest::{Error, Json, Output, Tool, args, export_tool};
use files_core::list::{self, Asked};

struct FilesList;

export_tool!(FilesList {
    name: "files-list",
    description: "Lists a directory, with the sizes of files; without a path, the directories granted to this tool.",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The directory; leave out to see which are granted"},
            "depth": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1, "description": "Levels to go down"},
            "pattern": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Only names like this, with * and ?, such as *.md"},
            "max_entries": {"type": "integer", "minimum": 1, "maximum": 2000, "default": 200}
        },
        "additionalProperties": false
    }"#,
    annotations: r#"{"title": "List files", "read_only": true, "idempotent": true}"#,
});

impl Tool for FilesList {
    fn call(input: Json) -> Result<Output, Error> {
        list::list(Asked {
            path: args::optional_text(&input, "path")?,
            depth: args::optional_u64(&input, "depth")?.unwrap_or(1),
            pattern: args::optional_text(&input, "pattern")?,
            most: args::optional_u64(&input, "max_entries")?.unwrap_or(list::DEFAULT_ENTRIES),
        })
    }
}
