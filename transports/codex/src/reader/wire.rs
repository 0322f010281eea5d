//! The app-server's lines, as far as they are used. Everything is optional: fields come and go between versions.

use serde::Deserialize;
use serde_json::Value;

/// A line: an answer, a notification, or a request of the app-server's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) id: Option<Value>,
    pub(super) method: Option<String>,
    pub(super) params: Value,
    pub(super) result: Value,
    pub(super) error: Option<RpcError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RpcError {
    pub(super) message: String,
}

/// The answer to `thread/start` and `thread/resume`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Opened {
    pub(super) thread: Named,
    pub(super) model: Option<String>,
    pub(super) model_provider: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    pub(super) id: String,
}

/// What the notifications of a turn have in common: their thread and turn, and one thing more.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Params {
    pub(super) thread_id: Option<String>,
    pub(super) turn_id: Option<String>,
    pub(super) turn: Option<Turn>,
    pub(super) item: Value,
    pub(super) item_id: String,
    pub(super) delta: String,
    pub(super) summary_index: u32,
    pub(super) error: Option<TurnError>,
    pub(super) will_retry: bool,
    pub(super) token_usage: Option<TokenUsage>,
    pub(super) usage: Option<Tokens>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) error: Option<TurnError>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TurnError {
    pub(super) message: String,
    /// A word, or an object of one key that holds the provider's status.
    pub(super) codex_error_info: Value,
    pub(super) additional_details: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenUsage {
    pub(super) last: Tokens,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Tokens {
    pub(super) input_tokens: u64,
    pub(super) cached_input_tokens: u64,
    pub(super) cache_write_input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) reasoning_output_tokens: u64,
}

/// An item of a turn, as the CLI tells it to people.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum Item {
    AgentMessage {
        id: String,
        #[serde(default)]
        text: String,
    },
    Reasoning {
        id: String,
        #[serde(default)]
        summary: Vec<String>,
        #[serde(default)]
        content: Vec<String>,
    },
    McpToolCall(Box<McpToolCall>),
    UserMessage,
    ContextCompaction,
    /// Anything else is work of the CLI's own, which is turned off.
    #[serde(other)]
    Other,
}

/// A call of an MCP server's tool.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct McpToolCall {
    pub(super) id: String,
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) result: Value,
    pub(super) error: Value,
}

/// An item of the Responses API, as the model wrote it or was answered.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum RawItem {
    FunctionCall {
        call_id: String,
        name: String,
        #[serde(default)]
        namespace: Option<String>,
        #[serde(default)]
        arguments: String,
    },
    CustomToolCall {
        call_id: String,
        name: String,
        #[serde(default)]
        input: String,
    },
    FunctionCallOutput {
        call_id: String,
        #[serde(default)]
        output: Value,
    },
    CustomToolCallOutput {
        call_id: String,
        #[serde(default)]
        output: Value,
    },
    #[serde(other)]
    Other,
}
