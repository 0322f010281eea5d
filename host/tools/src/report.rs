//! What a tool may do, and what its component asks for: declared against achieved.

use crate::grants::Checked;

/// How much of the host a component can reach at all, by what it imports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Nothing but the capsule's own interfaces, or nothing: no grant could give it more.
    Pure,
    /// Interfaces of WASI, each as far as a grant goes.
    Wasi,
    /// A text.
    Text,
}

impl Profile {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Wasi => "wasi",
            Self::Text => "text",
        }
    }
}

/// The report on one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolReport {
    /// Its declared name.
    pub name: String,
    /// What it can reach at all.
    pub profile: Profile,
    /// The interfaces that its component imports, sorted.
    pub imports: Vec<String>,
    /// What it may do: granted, and with an import to use it. Phrases that go on after "it may".
    pub may: Vec<String>,
    /// What is granted or imported in vain, as sentences.
    pub notes: Vec<String>,
    /// Its limits, in words.
    pub limits: String,
}

const HTTP: &str = "wasi:http/outgoing-handler";
const FILES: &str = "wasi:filesystem/";
const ENV: &str = "wasi:cli/environment";
const CONFIG: &str = "wasi:config/store";

impl ToolReport {
    pub(crate) fn of_text(name: &str, grants: &Checked) -> Self {
        Self {
            name: name.to_owned(),
            profile: Profile::Text,
            imports: Vec::new(),
            may: Vec::new(),
            notes: Vec::new(),
            limits: grants.limits_in_words(),
        }
    }

    pub(crate) fn of_component(name: &str, mut imports: Vec<String>, grants: &Checked, configured: bool) -> Self {
        imports.sort();
        let uses = |what: &str| imports.iter().any(|import| import.starts_with(what));
        let (http, files, env) = (uses(HTTP), uses(FILES), uses(ENV));
        let effective = Checked {
            filesystem: if files { grants.filesystem.clone() } else { Vec::new() },
            network: if http { grants.network.clone() } else { Vec::new() },
            secrets: if http { grants.secrets.clone() } else { Vec::new() },
            env: if env { grants.env.clone() } else { Vec::new() },
            env_names: if env { grants.env_names.clone() } else { Vec::new() },
            ..grants.clone()
        };
        let mut notes = Vec::new();
        for (uses, granted, what, import) in [
            (http, !grants.network.is_empty(), "the network", HTTP),
            (files, !grants.filesystem.is_empty(), "directories", "wasi:filesystem"),
            (env, !grants.env_names.is_empty(), "environment variables", ENV),
        ] {
            match (uses, granted) {
                // Environment and files are imported by standard libraries themselves, whatever the tool does.
                (true, false) if import == HTTP => {
                    notes.push(format!("it imports {import}, and no grant gives it {what}"));
                }
                (false, true) => {
                    let them = if import == HTTP { "it" } else { "them" };
                    notes.push(format!(
                        "it is granted {what} and cannot use {them}: it does not import {import}"
                    ));
                }
                _ => {}
            }
        }
        if configured && !uses(CONFIG) {
            notes.push(format!("its `config` is not read: it does not import {CONFIG}"));
        }
        let pure = imports.iter().all(|import| import.starts_with("murmur:"));
        Self {
            name: name.to_owned(),
            profile: if pure { Profile::Pure } else { Profile::Wasi },
            may: effective.words(),
            notes,
            limits: grants.limits_in_words(),
            imports,
        }
    }
}
