//! What the capsule says about a tool.

use std::path::PathBuf;

use capsule_api::{Annotations, Code, Error};
use serde_json::Value;

/// The longest name, in characters: with the longest prefix that a CLI puts before it, it stays within 64.
const LONGEST_NAME: usize = 50;

/// A tool as the manifest declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSource {
    /// Its name: 1 to 50 of `A-Z a-z 0-9 _ -`, unique in the capsule.
    pub name: String,
    /// The component, absolute or relative to the current directory.
    pub component: PathBuf,
    /// What the tool does, for the model; `None` takes the component's own.
    pub description: Option<String>,
    /// JSON Schema of the arguments; `None` takes the component's own.
    pub input_schema: Option<Value>,
    /// Scheduling hints; `None` takes the component's own.
    pub annotations: Option<Annotations>,
}

impl ToolSource {
    /// A tool that describes itself.
    pub fn new(name: impl Into<String>, component: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            component: component.into(),
            description: None,
            input_schema: None,
            annotations: None,
        }
    }

    /// An error about this tool: names it and its file.
    pub(crate) fn error(&self, code: &'static Code, what: impl std::fmt::Display) -> Error {
        let file = self.component.display();
        Error::new(code, format!("tool `{}` ({file}): {what}", self.name))
            .with("tool", self.name.clone())
            .with("file", file.to_string())
    }

    pub(crate) fn has_safe_name(&self) -> bool {
        let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        (1..=LONGEST_NAME).contains(&self.name.len()) && self.name.chars().all(safe)
    }
}
