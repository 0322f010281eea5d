//! The CLIs as the stories see them: what differs between them, in one place.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use capsule_fakes::{Position, Script};
use serde_json::{Value, json};

use crate::support::{CODEX_MODEL, MODEL, Scene, claude, codex};

/// A CLI and the transport that drives it.
pub(crate) struct Cli {
    /// The transport's name, and how the codes of its errors begin.
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) model: &'static str,
    /// The stand-in that misbehaves.
    pub(crate) fake: &'static str,
    /// Where a model request has its messages.
    messages: &'static str,
    /// Events of an answer up to its first piece of text.
    first_piece: usize,
    find: fn() -> Option<PathBuf>,
}

pub(crate) const CLAUDE: Cli = Cli {
    name: "claude",
    version: "2.1.332",
    model: MODEL,
    fake: env!("CARGO_BIN_EXE_fake-cli"),
    messages: "messages",
    first_piece: 4,
    find: claude,
};

pub(crate) const CODEX: Cli = Cli {
    name: "codex",
    version: "0.171.0",
    model: CODEX_MODEL,
    fake: env!("CARGO_BIN_EXE_fake-codex"),
    messages: "input",
    first_piece: 5,
    find: codex,
};

/// Makes each story a test of each CLI: `claude::…` and `codex::…`.
macro_rules! of_each_cli {
    ($($story:ident),+ $(,)?) => {
        mod claude {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::$story(&crate::cli::CLAUDE).await;
            })+
        }
        mod codex {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::$story(&crate::cli::CODEX).await;
            })+
        }
    };
}
pub(crate) use of_each_cli;

impl Cli {
    /// The real CLI's path; `None`, and said, where it is not installed.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        (self.find)()
    }

    /// The real CLI, led to a provider with this script; `None`, and said, where it is not installed.
    pub(crate) async fn scene(&self, script: Script) -> Option<Scene> {
        self.set(script, json!({})).await
    }

    /// The same with more settings.
    pub(crate) async fn set(&self, script: Script, settings: Value) -> Option<Scene> {
        let path = self.path()?;
        Some(Scene::of(self.name, &path, script, settings).await)
    }

    /// The stand-in that misbehaves.
    pub(crate) async fn faked(&self, settings: Value) -> Scene {
        self.faked_as(Path::new(self.fake), settings).await
    }

    /// The same under another name, by which it chooses what it lacks.
    pub(crate) async fn faked_as(&self, path: &Path, settings: Value) -> Scene {
        Scene::of(self.name, path, Script::new(), settings).await
    }

    /// `claude-auth` of `auth`.
    pub(crate) fn code(&self, what: &str) -> String {
        format!("{}-{what}", self.name)
    }

    /// Where an answer is when its first piece of text is out and its second is not.
    pub(crate) fn first_piece(&self) -> Position {
        Position::Events(self.first_piece)
    }

    /// The messages of a model request, as JSON text.
    pub(crate) fn messages(&self, request: &Value) -> String {
        request[self.messages].to_string()
    }

    /// The user's own texts of a model request, in order. What the CLI adds in its own name is left out.
    pub(crate) fn user_texts(&self, request: &Value) -> Vec<String> {
        let messages = request[self.messages].as_array().into_iter().flatten();
        let users = messages.filter(|message| message["role"] == "user");
        let texts = users.flat_map(|message| match &message["content"] {
            Value::String(text) => vec![text.clone()],
            parts => {
                let parts = parts.as_array().into_iter().flatten();
                parts
                    .filter_map(|part| part["text"].as_str().map(str::to_owned))
                    .collect()
            }
        });
        texts.filter(|text| !text.starts_with("<system-reminder>")).collect()
    }

    /// The system prompt of a model request without what the CLI always says of itself.
    pub(crate) fn system_texts(&self, request: &Value) -> Vec<String> {
        const OWN: &str = "You are a Claude agent, built on Anthropic's Claude Agent SDK.";
        let text = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
        if self.name == CLAUDE.name {
            let parts: Vec<_> = request["system"].as_array().into_iter().flatten().map(text).collect();
            let (own, ours): (Vec<_>, Vec<_>) = parts
                .into_iter()
                .filter(|text| !text.starts_with("x-anthropic-billing-header"))
                .partition(|text| text == OWN);
            assert_eq!(own, [OWN]);
            return ours;
        }
        let items = request["input"].as_array().into_iter().flatten();
        let ours = items.filter(|item| item["role"] == "developer");
        ours.map(|item| item["content"].as_array().into_iter().flatten().map(text).collect())
            .collect()
    }

    /// The texts of the results in a model request, by the call's id.
    pub(crate) fn results(&self, request: &Value) -> Vec<(String, String)> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            parts => {
                let parts = parts.as_array().into_iter().flatten();
                parts.filter_map(|part| part["text"].as_str()).collect()
            }
        };
        let (kind, id, output) = match self.name {
            "claude" => ("tool_result", "tool_use_id", "content"),
            _ => ("function_call_output", "call_id", "output"),
        };
        let messages = request[self.messages].as_array().into_iter().flatten();
        let pieces = messages.flat_map(|message| match message["content"].as_array() {
            Some(blocks) if message["type"] != kind => blocks.iter().collect::<Vec<_>>(),
            _ => vec![message],
        });
        let results = pieces.filter(|piece| piece["type"] == kind);
        results
            .map(|result| {
                (
                    result[id].as_str().unwrap_or_default().to_owned(),
                    text(&result[output]),
                )
            })
            .collect()
    }

    /// The tools that a model request offers, by the names that the model sees.
    pub(crate) fn offered(&self, request: &Value) -> BTreeSet<String> {
        let tools = request["tools"].as_array().into_iter().flatten();
        let names = tools.flat_map(|tool| {
            let name = tool["name"].as_str().unwrap_or_default().to_owned();
            match tool["tools"].as_array() {
                None => vec![name],
                // A group, whose members go by its name too.
                Some(inside) => inside
                    .iter()
                    .map(|tool| format!("{name}__{}", tool["name"].as_str().unwrap_or_default()))
                    .collect(),
            }
        });
        names.collect()
    }

    /// What the CLI offers besides the capsule's tools: with the tools that read resources of our own server, or without.
    pub(crate) fn own_tools(&self, with_bridge: bool) -> BTreeSet<String> {
        let own: &[&str] = match (self.name, with_bridge) {
            ("claude", _) => &[],
            (_, true) => &[
                "list_mcp_resource_templates",
                "list_mcp_resources",
                "read_mcp_resource",
                "request_user_input",
            ],
            (_, false) => &["request_user_input"],
        };
        own.iter().map(|name| (*name).to_owned()).collect()
    }
}
