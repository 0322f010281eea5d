//! The lines of the CLI's stream, as far as they are used. Everything is optional: fields come and go between versions.

use serde::Deserialize;
use serde_json::Value;

/// A line of a type that is read.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event {
    System(System),
    StreamEvent(StreamEvent),
    Assistant(Assistant),
    User(User),
    Result(Box<RunResult>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct System {
    pub(super) subtype: String,
    pub(super) status: Option<String>,
    // init
    pub(super) session_id: Option<String>,
    pub(super) tools: Vec<String>,
    pub(super) mcp_servers: Vec<McpServer>,
    pub(super) model: Option<String>,
    #[serde(rename = "apiKeySource")]
    pub(super) api_key_source: Option<String>,
    pub(super) claude_code_version: Option<String>,
    // api_retry
    pub(super) attempt: u32,
    pub(super) retry_delay_ms: f64,
    pub(super) error_status: Option<u16>,
    pub(super) error: Option<Value>,
    // permission_denied
    pub(super) tool_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct McpServer {
    pub(super) name: String,
    pub(super) status: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct StreamEvent {
    pub(super) event: Raw,
    #[serde(default)]
    pub(super) abandoned_blocks: Option<Abandoned>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Abandoned {
    pub(super) from_block_index: u32,
}

/// An event of the Messages API.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Raw {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        index: u32,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u32,
        delta: Delta,
    },
    MessageDelta {
        #[serde(default)]
        delta: MessageDelta,
        #[serde(default)]
        usage: Usage,
    },
    MessageStop,
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: String },
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageDelta {
    pub(super) stop_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) model: Option<String>,
    pub(super) content: Vec<Block>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Usage,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Assistant {
    pub(super) message: Message,
    pub(super) error: Option<String>,
    pub(super) is_api_error_message: bool,
    pub(super) api_error_status: Option<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct User {
    pub(super) message: UserMessage,
    #[serde(rename = "isSynthetic")]
    pub(super) is_synthetic: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UserMessage {
    /// A text or a list of blocks.
    pub(super) content: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    pub(super) input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    pub(super) thinking_tokens: Option<u64>,
}

/// The terminal event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunResult {
    pub(super) subtype: String,
    pub(super) is_error: bool,
    pub(super) terminal_reason: Option<String>,
    pub(super) api_error_status: Option<u16>,
    pub(super) result: Option<String>,
    pub(super) errors: Vec<Value>,
    pub(super) num_turns: u32,
    pub(super) session_id: Option<String>,
    pub(super) usage: Usage,
}

impl RunResult {
    /// What it says about a failure.
    pub(super) fn words(&self) -> String {
        if let Some(result) = &self.result {
            return result.clone();
        }
        let errors = self.errors.iter().map(|error| match error {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        errors.collect::<Vec<_>>().join("; ")
    }
}
