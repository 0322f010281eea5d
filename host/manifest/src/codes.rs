//! Codes that reading a manifest and its variables may raise.

use capsule_api::{Code, ErrorKind};

/// There is no manifest where one was looked for.
pub const MISSING: Code = Code {
    id: "manifest-missing",
    kind: ErrorKind::Settings,
    meaning: "There is no capsule.yaml at the given place.",
    remedy: "Name the capsule's directory, or create a capsule with `capsule new`.",
};
/// The file exists but is no readable text.
pub const UNREADABLE: Code = Code {
    id: "manifest-unreadable",
    kind: ErrorKind::Settings,
    meaning: "The manifest cannot be read: permissions, size, or not UTF-8 text.",
    remedy: "Make it a regular UTF-8 text file of at most 1 MiB that you may read.",
};
/// The text is not YAML.
pub const SYNTAX: Code = Code {
    id: "manifest-syntax",
    kind: ErrorKind::Settings,
    meaning: "The manifest is not well-formed YAML.",
    remedy: "Correct the line that the message names; YAML indents with spaces, never with tabs.",
};
/// The YAML does not say what a manifest says.
pub const INVALID: Code = Code {
    id: "manifest-invalid",
    kind: ErrorKind::Settings,
    meaning: "Keys or values of the manifest, or of a flag that overrides it, are not what is expected.",
    remedy: "Correct each place the message names; `capsule schema` describes every key.",
};
/// A `--set` without `key.path=value`.
pub const OVERRIDE: Code = Code {
    id: "manifest-override",
    kind: ErrorKind::Settings,
    meaning: "A `--set` is not of the form `key.path=value`.",
    remedy: "Write it as `--set inference.max_turns=10`; the value is read as YAML.",
};
/// The file of the system prompt.
pub const PROMPT_UNREADABLE: Code = Code {
    id: "manifest-prompt-unreadable",
    kind: ErrorKind::Settings,
    meaning: "The file that `system_prompt_file` names cannot be read.",
    remedy: "Make it a regular UTF-8 text file of at most 1 MiB below the manifest's directory.",
};
/// A variable that is set nowhere.
pub const VARIABLE_UNSET: Code = Code {
    id: "manifest-variable-unset",
    kind: ErrorKind::Settings,
    meaning: "The manifest uses a variable that is set neither in the environment nor in `.env`.",
    remedy: "Export the variable, or put it into the file `.env` beside the manifest.",
};
/// `${` that does not begin a variable.
pub const VARIABLE_SYNTAX: Code = Code {
    id: "manifest-variable-syntax",
    kind: ErrorKind::Settings,
    meaning: "A `${` in the manifest does not begin `${NAME}` or `${NAME:-default}`.",
    remedy: "Complete the variable, or write `$${` where the text itself shall contain `${`.",
};
/// A variable whose value is no text.
pub const VARIABLE_NOT_TEXT: Code = Code {
    id: "manifest-variable-not-text",
    kind: ErrorKind::Settings,
    meaning: "A variable that the manifest uses is not UTF-8 text.",
    remedy: "Set the variable to UTF-8 text.",
};
/// `.env` cannot be read or understood.
pub const DOTENV: Code = Code {
    id: "manifest-dotenv",
    kind: ErrorKind::Settings,
    meaning: "The file `.env` beside the manifest cannot be read.",
    remedy: "Write one `NAME=value` per line; quote values that contain spaces or `#`.",
};
/// A transport describes its settings wrongly.
pub const SCHEMA: Code = Code {
    id: "manifest-schema",
    kind: ErrorKind::Bug,
    meaning: "A transport's description of its settings is no valid JSON Schema.",
    remedy: "Report it to the author of the transport that the message names.",
};
/// All of them.
pub const ALL: &[&Code] = &[
    &MISSING,
    &UNREADABLE,
    &SYNTAX,
    &INVALID,
    &OVERRIDE,
    &PROMPT_UNREADABLE,
    &VARIABLE_UNSET,
    &VARIABLE_SYNTAX,
    &VARIABLE_NOT_TEXT,
    &DOTENV,
    &SCHEMA,
];
