//! The manifest as types. The defaults here are those that the schema documents.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use capsule_api::{Annotations, ContextWindow, HumanDuration, Limits};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::capabilities::{Grants, ToolGrants};

/// A valid `capsule.yaml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Manifest {
    /// The capsule's name: `[a-z0-9-]`, 1 to 100 characters.
    pub name: String,
    /// Its version.
    pub version: semver::Version,
    /// What it is for.
    pub description: Option<String>,
    /// The component of a script capsule: a program that calls the tools, run in place of a model. As written.
    pub script: Option<PathBuf>,
    /// The tools, in the file's order; names are unique.
    #[serde(default)]
    pub tools: Vec<ToolEntry>,
    /// What the tools may do.
    #[serde(default)]
    pub capabilities: Grants,
    /// The model, and how it is reached. [`crate::Loaded::settings_for`] reads it for one transport.
    #[serde(default)]
    pub inference: Inference,
    /// The model's context window, for transports that own the loop.
    pub context: Option<Context>,
    /// How a task lives.
    #[serde(default)]
    pub lifecycle: Lifecycle,
    /// What a run does without a task of its own.
    pub task: Option<String>,
    /// The record of each run.
    #[serde(default)]
    pub trace: Trace,
}

/// One tool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "ToolKeys")]
#[non_exhaustive]
pub struct ToolEntry {
    /// Its name: 1 to 100 characters. A skill without one is called as its file, without the extension.
    pub name: String,
    /// What it is made of.
    pub file: ToolFile,
    /// For the model; else the component's own.
    pub description: Option<String>,
    /// JSON Schema of the arguments; else the component's own.
    pub input_schema: Option<Value>,
    /// Scheduling hints; else the component's own.
    pub annotations: Option<Annotations>,
    /// What this tool alone can read, as text.
    pub config: BTreeMap<String, String>,
    /// Its own part of the capsule's grants; else all of them.
    pub capabilities: Option<ToolGrants>,
}

/// The file of a tool, as written; [`crate::Loaded::path`] resolves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolFile {
    /// A WebAssembly component.
    Component {
        /// Where it is.
        path: PathBuf,
        /// How it gets its arguments, where it is a command.
        input: CommandInput,
    },
    /// A text that the model may read.
    Skill(PathBuf),
}

impl ToolFile {
    /// Where it is, as written.
    pub fn path(&self) -> &Path {
        match self {
            Self::Component { path, .. } | Self::Skill(path) => path,
        }
    }
}

/// How a command gets its arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandInput {
    /// As JSON on standard input.
    #[default]
    Stdin,
    /// As options on its command line.
    Argv,
}

/// The keys of an entry as they stand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolKeys {
    name: Option<String>,
    component: Option<PathBuf>,
    skill: Option<PathBuf>,
    input: Option<CommandInput>,
    description: Option<String>,
    input_schema: Option<Value>,
    #[serde(default, deserialize_with = "annotations")]
    annotations: Option<Annotations>,
    #[serde(default)]
    config: BTreeMap<String, Value>,
    capabilities: Option<ToolGrants>,
}

impl TryFrom<ToolKeys> for ToolEntry {
    type Error = &'static str;

    fn try_from(keys: ToolKeys) -> Result<Self, Self::Error> {
        let file = match (keys.component, keys.skill) {
            (Some(path), None) => ToolFile::Component {
                path,
                input: keys.input.unwrap_or_default(),
            },
            (None, Some(path)) => ToolFile::Skill(path),
            _ => return Err("a tool has either `component` or `skill`"),
        };
        let stem = || file.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Ok(Self {
            name: keys.name.or_else(stem).ok_or("a tool has a name")?,
            file,
            description: keys.description,
            input_schema: keys.input_schema,
            annotations: keys.annotations,
            config: keys.config.into_iter().map(|(key, value)| (key, text(value))).collect(),
            capabilities: keys.capabilities,
        })
    }
}

/// A value as a tool reads it: text as it is, anything else as JSON.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn annotations<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Annotations>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Keys {
        #[serde(default)]
        read_only: bool,
        #[serde(default)]
        exclusive: bool,
    }
    let Keys { read_only, exclusive } = Keys::deserialize(deserializer)?;
    Ok(Some(Annotations { read_only, exclusive }))
}

/// How the model is reached, as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Inference {
    /// The transport that the file names; `None` means the program's default.
    pub transport: Option<String>,
    /// Blocks by transport.
    #[serde(default)]
    pub transports: BTreeMap<String, Block>,
    /// The common keys, and the named transport's own.
    #[serde(flatten)]
    pub flat: Block,
}

/// The common keys and a transport's own, as written. `${NAME}` is not yet expanded.
///
/// `Debug` shows no value of the transport's own keys: a key may be written into the file itself.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Block {
    /// The model.
    pub model: Option<String>,
    /// The system prompt; excludes `system_prompt_file`.
    pub system_prompt: Option<String>,
    /// Its file; excludes `system_prompt`.
    pub system_prompt_file: Option<PathBuf>,
    /// Model requests at most; at least 1.
    pub max_turns: Option<u32>,
    /// Output tokens of one request at most; at least 1.
    pub max_tokens: Option<u32>,
    /// The transport's own keys.
    #[serde(flatten)]
    pub own: Map<String, Value>,
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block")
            .field("model", &self.model)
            .field("max_turns", &self.max_turns)
            .field("max_tokens", &self.max_tokens)
            .field("own", &self.own.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Block {
    /// Whether it has this setting: one of the common texts, or one of the transport's own.
    pub(crate) fn has(&self, key: &str) -> bool {
        match key {
            "model" => self.model.is_some(),
            "system_prompt" => self.system_prompt.is_some(),
            "system_prompt_file" => self.system_prompt_file.is_some(),
            own => self.own.contains_key(own),
        }
    }

    /// These keys with those of `over` in place of their own. The two forms of the system prompt replace each other.
    #[must_use]
    pub(crate) fn overridden_by(mut self, over: &Self) -> Self {
        if over.system_prompt.is_some() || over.system_prompt_file.is_some() {
            self.system_prompt.clone_from(&over.system_prompt);
            self.system_prompt_file.clone_from(&over.system_prompt_file);
        }
        self.model = over.model.clone().or(self.model);
        self.max_turns = over.max_turns.or(self.max_turns);
        self.max_tokens = over.max_tokens.or(self.max_tokens);
        self.own.extend(over.own.clone());
        self
    }
}

/// The model's context window.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Context {
    /// Tokens that the model takes, input and output together; at least 1.
    pub max_tokens: u64,
    /// The share of it at which older turns are summarised: more than 0, at most 1.
    #[serde(default = "most_of_it")]
    pub threshold: f64,
}

fn most_of_it() -> f64 {
    0.85
}

impl Context {
    /// The window as a conversation gets it.
    pub(crate) fn window(self) -> ContextWindow {
        // From 1 to 1000: the schema keeps the share between 0 and 1.
        let permille = (self.threshold.clamp(0.001, 1.0) * 1000.0).round();
        ContextWindow {
            max_tokens: self.max_tokens,
            threshold_permille: permille as u16,
        }
    }
}

/// How a task lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Lifecycle {
    /// How long a question to whoever sent the task waits for its answer.
    pub input_timeout: HumanDuration,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            input_timeout: HumanDuration(Limits::default().answer),
        }
    }
}

/// The record of each run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Trace {
    /// How much it holds.
    pub capture: Capture,
}

/// How much of a run is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capture {
    /// Nothing; no file is written.
    None,
    /// Sizes and hashes in place of texts, arguments and results.
    #[default]
    Summary,
    /// Everything but secrets.
    Content,
}
