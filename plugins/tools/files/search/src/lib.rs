//! The tool `files-search`: searches text files below the granted directories.

use capsule_guest::{Error, Json, Output, Tool, args, export_tool};
use files_core::search::{self, Asked};

struct FilesSearch;

export_tool!(FilesSearch {
    name: "files-search",
    description: "Searches text files for lines with a text or a regular expression, and answers with path:line: text. \
        Files that are binary, over 8 MiB, or hidden are left out, and links are not followed.",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "What to search for, within one line"},
            "regex": {"type": "boolean", "default": false, "description": "The pattern is a regular expression (no look-around, no back-references)"},
            "ignore_case": {"type": "boolean", "default": false},
            "path": {"type": "string", "minLength": 1, "description": "The directory or file to search; all granted directories where it is left out"},
            "files": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Only files with names like this, with * and ?, such as *.md"},
            "hidden": {"type": "boolean", "default": false, "description": "Search names that begin with a dot, too"},
            "context": {"type": "integer", "minimum": 0, "maximum": 10, "default": 0, "description": "Lines to show around each"},
            "max_results": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
        },
        "required": ["pattern"],
        "additionalProperties": false
    }"#,
    annotations: r#"{"title": "Search files", "read_only": true, "idempotent": true}"#,
});

impl Tool for FilesSearch {
    fn call(input: Json) -> Result<Output, Error> {
        let flag = |key| args::optional_bool(&input, key).map(Option::unwrap_or_default);
        search::search(Asked {
            pattern: args::required_text(&input, "pattern")?,
            regex: flag("regex")?,
            ignore_case: flag("ignore_case")?,
            path: args::optional_text(&input, "path")?,
            files: args::optional_text(&input, "files")?,
            hidden: flag("hidden")?,
            context: args::optional_u64(&input, "context")?.unwrap_or(0),
            most: args::optional_u64(&input, "max_results")?.unwrap_or(search::DEFAULT_RESULTS),
        })
    }
}
