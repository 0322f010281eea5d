//! The tool `read-file`: reads a part of a text file, or lists a directory, below the directories
//! that the capsule grants it.

mod read;

use capsule_guest::{Error, Json, Output, StateEffect, Tool, args, export_tool};

struct ReadFile;

export_tool!(ReadFile {
    name: "read-file",
    description: "Reads a UTF-8 text file, or lists a directory, in the directories granted to this tool. \
        A long file comes in parts: the answer then ends with the offset to go on from.",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The file or directory"},
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Where to begin, in bytes"},
            "max_bytes": {"type": "integer", "minimum": 4, "maximum": 524288, "default": 65536, "description": "How much to read at most, in bytes"}
        },
        "required": ["path"],
        "additionalProperties": false
    }"#,
    annotations: r#"{"title": "Read file", "read_only": true, "idempotent": true}"#,
});

const DEFAULT_BYTES: u64 = 64 * 1024;
/// Half of the output limit that a tool has by default, so that a part fits together with its note.
const MOST_BYTES: u64 = 512 * 1024;
/// The longest character of UTF-8: with less, a part could be empty and the reader never go on.
const LEAST_BYTES: u64 = 4;

impl Tool for ReadFile {
    fn call(input: Json) -> Result<Output, Error> {
        let path = args::required_text(&input, "path")?;
        let offset = args::optional_u64(&input, "offset")?.unwrap_or(0);
        let max_bytes = args::optional_u64(&input, "max_bytes")?
            .unwrap_or(DEFAULT_BYTES)
            .clamp(LEAST_BYTES, MOST_BYTES);
        match read::read(path, offset, max_bytes) {
            Ok(found) => Ok(output(path, found)),
            Err(why) => Err(why.metadata("state_effect", "read").metadata("resource_id", path)),
        }
    }
}

fn output(path: &str, found: read::Found) -> Output {
    let output = match found {
        read::Found::Text(part) => {
            let (from, to, size) = (part.from, part.to, part.size);
            let summary = format!("{path}: bytes {from} to {to} of {size}");
            if to < size {
                let note = format!("\n[bytes {from} to {to} of {size}; go on with offset {to}]");
                Output::text(part.text + &note)
                    .summary(summary)
                    .truncated(true)
                    .metadata("next_offset", to.to_string())
            } else {
                Output::text(part.text).summary(summary)
            }
        }
        read::Found::Directory(listing) => {
            let summary = format!("{path}: {} entries", listing.total);
            let shown = listing.entries.len();
            let left_off = listing.total > shown;
            let mut text = listing.entries.join("\n");
            if listing.total == 0 {
                text.push_str("[an empty directory]");
            }
            if left_off {
                text.push_str(&format!("\n[the first {shown} of {} entries]", listing.total));
            }
            Output::text(text).summary(summary).truncated(left_off)
        }
    };
    output.state_effect(StateEffect::Read).resource_id(path)
}

#[cfg(test)]
mod tests;
