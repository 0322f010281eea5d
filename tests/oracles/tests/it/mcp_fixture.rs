//! The tools that the conformance suite prescribes, and one that echoes.

use std::sync::Arc;

use capsule_api::{
    Annotations, CallId, Catalogue, Content, Progress, ToolCall, ToolDispatch, ToolReply, ToolSpec, ToolStatus,
    async_trait,
};
use serde_json::{Value, json};

/// One pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xfc\xcf\xc0\xf0\x1f\0\
    \x05\x05\x02\0_\xc8\xf1\xd2\0\0\0\0IEND\xaeB`\x82";
/// A head of a sound, and no sound.
const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0";

pub(crate) struct Fixture(Arc<Catalogue>);

impl Fixture {
    pub(crate) fn new() -> Self {
        let plain = [
            "test_simple_text",
            "test_image_content",
            "test_audio_content",
            "test_embedded_resource",
            "test_multiple_content_types",
            "test_error_handling",
            "test_tool_with_progress",
            "test_missing_capability",
            "test_streaming_elicitation",
            "test_logging_tool",
        ];
        let mut tools: Vec<_> = plain
            .into_iter()
            .map(|name| tool(name, json!({"type": "object"})))
            .collect();
        tools.extend([
            tool(
                "echo",
                json!({"type": "object", "properties": {"a": {"type": "integer"}, "text": {"type": "string"}}}),
            ),
            tool("test_custom_header", custom_header()),
            tool("json_schema_2020_12_tool", schema_2020_12()),
        ]);
        Self(Arc::new(Catalogue { tools }))
    }

    /// What `test_missing_capability` is about.
    pub(crate) fn needs(tool: &ToolSpec) -> &'static [&'static str] {
        if tool.name == "test_missing_capability" {
            &["sampling"]
        } else {
            &[]
        }
    }
}

fn tool(name: &str, input_schema: Value) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        alias: name.into(),
        description: format!("the tool {name} of the suite"),
        input_schema,
        annotations: Annotations::default(),
        longest: std::time::Duration::from_secs(30),
        largest: 1 << 20,
    }
}

fn custom_header() -> Value {
    let value = json!({"type": "string", "x-mcp-header": "Value"});
    json!({"type": "object", "properties": {"value": value}, "required": ["value"]})
}

/// As the suite has it, keyword by keyword.
fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

fn image() -> Content {
    Content::Image {
        media_type: "image/png".into(),
        data: PNG.into(),
    }
}

fn resource(uri: &str, media_type: &str, text: &str) -> Content {
    Content::Resource(json!({"uri": uri, "mimeType": media_type, "text": text}))
}

fn of(content: Vec<Content>) -> ToolReply {
    let mut reply = ToolReply::text("");
    reply.content = content;
    reply
}

#[async_trait]
impl ToolDispatch for Fixture {
    fn catalogue(&self) -> &Arc<Catalogue> {
        &self.0
    }

    async fn call(&self, call: ToolCall) -> ToolReply {
        match call.name.as_str() {
            "echo" => ToolReply::text(call.arguments.to_string()),
            "test_simple_text" => ToolReply::text("This is a simple text response for testing."),
            "test_image_content" => of(vec![image()]),
            "test_audio_content" => of(vec![Content::Audio {
                media_type: "audio/wav".into(),
                data: WAV.into(),
            }]),
            "test_embedded_resource" => of(vec![resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content.",
            )]),
            "test_multiple_content_types" => of(vec![
                Content::Text("Multiple content types test:".into()),
                image(),
                resource(
                    "test://mixed-content-resource",
                    "application/json",
                    r#"{"test":"data","value":123}"#,
                ),
            ]),
            "test_error_handling" => ToolReply::new(
                ToolStatus::Failed,
                "This tool intentionally returns an error for testing",
            ),
            "test_tool_with_progress" => {
                for done in [0.0, 50.0, 100.0] {
                    if let Some(report) = &call.progress {
                        report(Progress::Step {
                            done,
                            total: Some(100.0),
                            message: None,
                        });
                    }
                }
                ToolReply::text("done")
            }
            other if self.0.by_name(other).is_some() => ToolReply::text("called"),
            other => ToolReply::new(
                ToolStatus::Unknown,
                format!("tool '{other}' failed: there is no such tool"),
            ),
        }
    }

    fn missed(&self, call: CallId, why: &str) {
        panic!("{call} was missed: {why}");
    }
}
