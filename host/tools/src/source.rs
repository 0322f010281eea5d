//! What the capsule says about a tool.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use capsule_api::{Annotations, Code, Error};
use serde_json::Value;

use crate::{codes, grants::Narrowing};

/// The longest name, in characters.
const LONGEST_NAME: usize = 100;

/// What to do where a copy has lost what its links lead to.
pub(crate) const COPY_WHOLE: &str =
    "Copy a capsule with what its links lead to: `cp -rL FROM TO`; or begin with one of your own: `capsule new NAME`.";

/// What is at the path if it is a link to nothing, in words.
pub(crate) fn dangling(path: &Path, cause: &io::Error) -> Option<String> {
    if cause.kind() != io::ErrorKind::NotFound {
        return None;
    }
    let target = std::fs::read_link(path).ok()?;
    Some(format!("a symbolic link to {}, which is not there", target.display()))
}

/// What the file of a tool is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// A WebAssembly component: one tool, or one for each function that it exports.
    #[default]
    Component,
    /// A text that the model may read: a tool without input, whose call returns it.
    Skill,
    /// A component that is the capsule's program: no tool, and in no catalogue.
    Script,
    /// A component that speaks to a provider: no tool, and in no catalogue.
    Driver,
}

/// How a command gets its arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandInput {
    /// As JSON on standard input.
    #[default]
    Stdin,
    /// As options on its command line: `--key value`, `--key` for true, one for each item of an array.
    Argv,
}

/// A tool as the manifest declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSource {
    /// Its name: 1 to 100 characters, none of them a control character, no white space around; unique in the capsule.
    pub name: String,
    /// The file, absolute or relative to the current directory.
    pub component: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// How it gets its arguments, where the component is a command.
    pub input: CommandInput,
    /// What the tool does, for the model; `None` takes the component's own.
    pub description: Option<String>,
    /// JSON Schema of the arguments; `None` takes the component's own.
    pub input_schema: Option<Value>,
    /// Scheduling hints; `None` takes the component's own.
    pub annotations: Option<Annotations>,
    /// What it reads by `wasi:config/store`: keys and values, delivered to this tool alone.
    pub config: BTreeMap<String, String>,
    /// Its own part of the capsule's grants; `None` gives it all of them.
    pub capabilities: Option<Narrowing>,
}

impl ToolSource {
    /// A tool that describes itself.
    pub fn new(name: impl Into<String>, component: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            component: component.into(),
            kind: FileKind::Component,
            input: CommandInput::Stdin,
            description: None,
            input_schema: None,
            annotations: None,
            config: BTreeMap::new(),
            capabilities: None,
        }
    }

    /// A text that the model may read.
    pub fn skill(name: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        Self {
            kind: FileKind::Skill,
            ..Self::new(name, file)
        }
    }

    /// The program of a script capsule.
    pub fn script(component: impl Into<PathBuf>) -> Self {
        Self {
            kind: FileKind::Script,
            ..Self::new("script", component)
        }
    }

    /// A component that speaks to a provider.
    pub(crate) fn driver(component: impl Into<PathBuf>) -> Self {
        Self {
            kind: FileKind::Driver,
            ..Self::new("driver", component)
        }
    }

    /// An error about this tool: names it and its file.
    pub(crate) fn error(&self, code: &'static Code, what: impl std::fmt::Display) -> Error {
        let file = self.component.display();
        let who = match self.kind {
            FileKind::Script => format!("the script ({file})"),
            FileKind::Driver => format!("the driver's component ({file})"),
            _ => format!("tool `{}` ({file})", self.name),
        };
        let error = Error::new(code, format!("{who}: {what}"))
            .with("tool", self.name.clone())
            .with("file", file.to_string());
        match self.kind {
            FileKind::Script if code.id == codes::EXPORT.id => error.hint(
                "Build the script for the world `script` of `wit`, which exports `murmur:capsule/run@0.1.0`; a component without it is a tool.",
            ),
            _ => error,
        }
    }

    /// The error of a file that cannot be read; `what` it is goes before the cause.
    pub(crate) fn unreadable(&self, what: &str, cause: &io::Error) -> Error {
        match dangling(&self.component, cause) {
            Some(link) => self.error(&codes::FILE, format!("{what} is {link}")).hint(COPY_WHOLE),
            None => self.error(&codes::FILE, format!("{what} cannot be read: {cause}")),
        }
    }

    pub(crate) fn has_usable_name(&self) -> bool {
        let length = self.name.chars().count();
        (1..=LONGEST_NAME).contains(&length)
            && self.name.trim() == self.name
            && !self.name.chars().any(char::is_control)
    }
}
