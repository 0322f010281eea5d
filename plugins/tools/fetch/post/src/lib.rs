//! The tool `fetch-post`: sends text or JSON by HTTP POST.

use capsule_guest::{Error, Json, Output, StateEffect, Tool, args, export_tool};
use fetch_core::answer::{self, Shape};
use fetch_core::request::Request;

struct FetchPost;

export_tool!(FetchPost {
    name: "fetch-post",
    description: "Sends JSON or a text by HTTP POST to the hosts granted to this tool, and shows the answer: JSON or text as it is, after the \
        HTTP status and the final address.",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "An absolute address, https://…"},
            "json": {"description": "What to send, where it is JSON"},
            "text": {"type": "string", "description": "What to send, where it is a text"},
            "content_type": {"type": "string", "minLength": 1, "maxLength": 200, "description": "The type of the text; text/plain where it is left out"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Headers to send, such as Accept; no credentials"},
            "max_bytes": {"type": "integer", "minimum": 1, "maximum": 524288, "default": 65536, "description": "How much of the answer to show"},
            "timeout_seconds": {"type": "integer", "minimum": 1, "maximum": 300, "default": 30}
        },
        "required": ["url"],
        "additionalProperties": false
    }"#,
    annotations: r#"{"title": "Fetch by POST", "read_only": false, "destructive": true, "open_world": true}"#,
});

/// What is sent where nothing is said about its type.
const PLAIN: &str = "text/plain; charset=utf-8";

impl Tool for FetchPost {
    fn call(input: Json) -> Result<Output, Error> {
        let url = args::required_text(&input, "url")?;
        post(url, &input).map_err(|why| why.metadata("state_effect", "mutate").metadata("resource_id", url))
    }
}

fn post(url: &str, input: &Json) -> Result<Output, Error> {
    let content_type = args::optional_text(input, "content_type")?;
    let (content_type, body) = match (input.get("json"), args::optional_text(input, "text")?) {
        (Some(json), None) => (content_type.unwrap_or("application/json"), json.to_string()),
        (None, Some(text)) => (content_type.unwrap_or(PLAIN), text.to_owned()),
        (Some(_), Some(_)) => return Err(Error::new("give either json or text, not both")),
        (None, None) => return Err(Error::new("give what is to be sent: json or text")),
    };
    let shape = Shape {
        page: None,
        offset: 0,
        most: args::optional_u64(input, "max_bytes")?.unwrap_or(answer::DEFAULT_BYTES),
        effect: StateEffect::Mutate,
    };
    let seconds = args::optional_u64(input, "timeout_seconds")?.unwrap_or(fetch_core::DEFAULT_SECONDS);
    let request = Request::post(url, input.get("headers"), content_type, body.into_bytes())?;
    fetch_core::fetch(request, seconds, &shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use capsule_guest::json;

    fn refused(input: Json) -> String {
        post("https://example.org", &input).unwrap_err().message().to_owned()
    }

    #[test]
    fn one_thing_is_sent() {
        assert_eq!(refused(json!({})), "give what is to be sent: json or text");
        assert_eq!(
            refused(json!({"json": 1, "text": "a"})),
            "give either json or text, not both"
        );
        let type_of_two = json!({"text": "a", "content_type": "a\nb"});
        assert_eq!(
            refused(type_of_two),
            "the content type has characters that no header may have"
        );
    }
}
