//! The tool `json`: queries and transforms JSON with a filter of the language jq.

mod filter;
mod input;

use capsule_guest::{Error, Json, Output, StateEffect, Tool, args, export_tool};
use filter::{Bounds, Results};

struct JsonTool;

export_tool!(JsonTool {
    name: "json",
    description: "Runs a filter of the language jq over JSON: a value given here, or a file of the granted directories, which may hold several \
        values (JSON Lines). Answers with one result a line.",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "filter": {"type": "string", "minLength": 1, "maxLength": 16384, "description": "In the language jq, such as .items[] | select(.price > 10) | {name, price}"},
            "input": {"description": "The JSON to work on, where no path is given"},
            "path": {"type": "string", "minLength": 1, "description": "A JSON file to work on, where no input is given"},
            "slurp": {"type": "boolean", "default": false, "description": "Take all values of the file as one array"},
            "raw": {"type": "boolean", "default": false, "description": "Write results that are strings without quotes"},
            "max_results": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 1000}
        },
        "required": ["filter"],
        "additionalProperties": false
    }"#,
    annotations: r#"{"title": "Query JSON", "read_only": true, "idempotent": true}"#,
});

const DEFAULT_RESULTS: u64 = 1000;
const MOST_RESULTS: u64 = 10_000;
/// Half of the output limit that a tool has by default.
const MOST_BYTES: usize = 512 << 10;

impl Tool for JsonTool {
    fn call(input: Json) -> Result<Output, Error> {
        let path = args::optional_text(&input, "path")?;
        query(&input, path).map_err(|why| match path {
            Some(path) => why.metadata("state_effect", "read").metadata("resource_id", path),
            None => why.metadata("state_effect", "read"),
        })
    }
}

fn query(input: &Json, path: Option<&str>) -> Result<Output, Error> {
    let filter = args::required_text(input, "filter")?;
    let slurp = args::optional_bool(input, "slurp")?.unwrap_or(false);
    let bounds = Bounds {
        raw: args::optional_bool(input, "raw")?.unwrap_or(false),
        results: args::optional_u64(input, "max_results")?
            .unwrap_or(DEFAULT_RESULTS)
            .clamp(1, MOST_RESULTS),
        bytes: MOST_BYTES,
    };
    let values = match (path, input.get("input")) {
        (Some(path), None) => input::of_file(path, slurp)?,
        (None, Some(value)) => vec![input::of_value(value)?],
        (Some(_), Some(_)) => return Err(Error::new("give either input or path, not both")),
        (None, None) => return Err(Error::new("give the JSON to work on: input, or the path of a file")),
    };
    let found = filter::run(filter, values, bounds)?;
    let output = output(found).state_effect(StateEffect::Read);
    Ok(match path {
        Some(path) => output.resource_id(path),
        None => output,
    })
}

fn output(found: Results) -> Output {
    let Results { mut text, count, cut } = found;
    let summary = match count {
        1 => "1 result".to_owned(),
        count => format!("{count} results"),
    };
    if cut {
        text.push_str(&format!("[there is more after the first {count}: filter for less]\n"));
    } else if count == 0 {
        text.push_str("[no results]\n");
    }
    text.pop();
    Output::text(text).summary(summary).truncated(cut)
}

#[cfg(test)]
mod tests;
