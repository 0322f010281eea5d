//! The tool `fetch`: fetches a page, a text or JSON by HTTP GET.

use capsule_guest::{Error, Json, Output, StateEffect, Tool, args, export_tool};
use fetch_core::answer::{self, READABLE, Shape};
use fetch_core::request::Request;

struct Fetch;

export_tool!(Fetch {
    name: "fetch",
    description: "Fetches a page, a text or JSON by HTTP GET from the hosts granted to this tool. A page is shown as readable text, JSON as it is. \
        The answer begins with the HTTP status and the final address.",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "An absolute address, https://…"},
            "source": {"type": "boolean", "default": false, "description": "Show the source of a page in place of its text"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Headers to send, such as Accept; no credentials"},
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Where in a long text to go on, in bytes"},
            "max_bytes": {"type": "integer", "minimum": 1, "maximum": 524288, "default": 65536, "description": "How much of the text to show"},
            "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 300, "default": 30}
        },
        "required": ["url"],
        "additionalProperties": false
    }"#,
    annotations: r#"{"title": "Fetch", "read_only": true, "idempotent": true, "open_world": true}"#,
});

impl Tool for Fetch {
    fn call(input: Json) -> Result<Output, Error> {
        let url = args::required_text(&input, "url")?;
        fetch(url, &input).map_err(|why| why.metadata("state_effect", "read").metadata("resource_id", url))
    }
}

fn fetch(url: &str, input: &Json) -> Result<Output, Error> {
    let shape = Shape {
        page: (!args::optional_bool(input, "source")?.unwrap_or(false)).then_some(READABLE),
        offset: args::optional_u64(input, "offset")?.unwrap_or(0),
        most: args::optional_u64(input, "max_bytes")?.unwrap_or(answer::DEFAULT_BYTES),
        effect: StateEffect::Read,
    };
    let seconds = args::optional_u64(input, "timeout_seconds")?.unwrap_or(fetch_core::DEFAULT_SECONDS);
    fetch_core::fetch(Request::get(url, input.get("headers"))?, seconds, &shape)
}
