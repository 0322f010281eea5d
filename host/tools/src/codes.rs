//! Codes of the errors and warnings of this crate.

use capsule_api::{Code, ErrorKind};

/// A tool's name cannot be used.
pub const NAME: Code = Code {
    id: "tool-name",
    kind: ErrorKind::Settings,
    meaning: "A tool's name cannot be used.",
    remedy: "Use 1 to 100 characters, no control characters, no white space around it.",
};
/// Two tools share a name.
pub const DUPLICATE: Code = Code {
    id: "tool-duplicate",
    kind: ErrorKind::Settings,
    meaning: "Two tools of the capsule have the same name.",
    remedy: "Rename one of the two entries under `tools`; the tools of a component with several functions are called `name_function`.",
};
/// A component cannot be read.
pub const FILE: Code = Code {
    id: "tool-file",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "A tool's component cannot be read.",
    remedy: "Correct the path of the component, or build it.",
};
/// A file is not a whole component.
pub const NOT_A_COMPONENT: Code = Code {
    id: "tool-not-a-component",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "A tool's file is not a whole WebAssembly component.",
    remedy: "Build the tool for the target `wasm32-wasip2` and name the file that the build leaves.",
};
/// A component does not compile.
pub const COMPILE: Code = Code {
    id: "tool-compile",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "A tool's component is not valid, or uses a feature that this host does not offer.",
    remedy: "Build the component again with current tools; if it stays, report it with the message.",
};
/// A component's imports cannot be met.
pub const IMPORTS: Code = Code {
    id: "tool-imports-unmet",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "A tool's component imports interfaces that this host does not offer.",
    remedy: "Build the component against the interfaces in `wit` and WASI 0.2.",
};
/// A component does not export the tool interface.
pub const EXPORT: Code = Code {
    id: "tool-export-missing",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "A tool's component exports nothing that can be called as a tool.",
    remedy: "Export `murmur:tool/run@0.1.0` (in Rust, `export_tool!` of the guest SDK does), `wasi:cli/run`, or functions on plain values.",
};
/// A component needs more than a place in the pool holds.
pub const POOL: Code = Code {
    id: "tool-too-large",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "A tool's component needs more to begin with than one call may have.",
    remedy: "Raise `capabilities.limits.memory` if the message names memory; otherwise make the component smaller.",
};
/// A schema cannot be used.
pub const SCHEMA: Code = Code {
    id: "tool-schema",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "A tool's input schema is not a usable JSON Schema of an object.",
    remedy: "Give a schema with `\"type\": \"object\"`, in the manifest's entry or in the component.",
};
/// An exported function cannot be a tool.
pub const FUNCTION: Code = Code {
    id: "tool-function",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "A component exports a function that takes or returns what has no JSON form.",
    remedy: "Export functions on plain values alone; wrap what needs a resource inside the component.",
};
/// A component's description of itself cannot be read.
pub const SECTION: Code = Code {
    id: "tool-section",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "The section `capsule:tool` of a component is not what it must be.",
    remedy: "Build the component again with the guest SDK.",
};
/// A directory cannot be granted.
pub const GRANT_DIRECTORY: Code = Code {
    id: "tool-grant-directory",
    kind: ErrorKind::Settings,
    meaning: "A directory of `capabilities.filesystem` cannot be granted.",
    remedy: "Create the directory, or correct `path` and `at` of the grant.",
};
/// An environment variable cannot be granted.
pub const GRANT_ENV: Code = Code {
    id: "tool-grant-env",
    kind: ErrorKind::Settings,
    meaning: "A name in `capabilities.env.allow` is not that of one environment variable.",
    remedy: "Spell each variable out; patterns are not known.",
};
/// A host cannot be granted.
pub const GRANT_NETWORK: Code = Code {
    id: "tool-grant-network",
    kind: ErrorKind::Settings,
    meaning: "An entry of `capabilities.network.allow` is not one that can be granted.",
    remedy: "Write `https://host`, `http://host:port`, `host` or `*.host`, without a path; an address that is never connected to cannot be \
             granted in any form.",
};
/// A secret cannot be granted.
pub const GRANT_SECRET: Code = Code {
    id: "tool-grant-secret",
    kind: ErrorKind::Settings,
    meaning: "A secret of `capabilities.secrets` cannot be attached to requests.",
    remedy: "Set the variable, give `header` as `Name: value` with `{}` for the secret, and name `https` hosts that `network.allow` covers.",
};
/// A tool's own grants are more than the capsule's.
pub const GRANT_WIDER: Code = Code {
    id: "tool-grant-wider",
    kind: ErrorKind::Settings,
    meaning: "A tool's own `capabilities` ask for more than the capsule grants.",
    remedy: "Grant it to the capsule in `capabilities`, or take it out of the tool's block, which can only narrow.",
};
/// A limit is out of range.
pub const LIMITS: Code = Code {
    id: "tool-limits",
    kind: ErrorKind::Settings,
    meaning: "A value of `capabilities.limits` is out of its range.",
    remedy: "Use a value in the range that the message gives.",
};
/// The sandbox cannot be made.
pub const SANDBOX: Code = Code {
    id: "tool-sandbox",
    kind: ErrorKind::ToolsUnavailable,
    meaning: "The sandbox could not be set up on this machine.",
    remedy: "Lower `capabilities.limits.concurrent_calls`, or raise the limit of address space (`ulimit -v`).",
};
/// All of them.
pub const ALL: &[&Code] = &[
    &NAME,
    &DUPLICATE,
    &FILE,
    &NOT_A_COMPONENT,
    &COMPILE,
    &IMPORTS,
    &EXPORT,
    &POOL,
    &SCHEMA,
    &FUNCTION,
    &SECTION,
    &GRANT_DIRECTORY,
    &GRANT_ENV,
    &GRANT_NETWORK,
    &GRANT_SECRET,
    &GRANT_WIDER,
    &LIMITS,
    &SANDBOX,
];

/// Warning: the compile cache, or one file of it, was not used.
pub const CACHE_UNUSED: &str = "tool-cache-unused";
/// Warning: an environment variable that is granted is not set.
pub const ENV_UNSET: &str = "tool-env-unset";
/// Warning in a run: a tool's code in the host panicked.
pub const PANICKED: &str = "tool-panicked";
/// Warning in a run: a tool streams more text than its output limit; the rest is dropped.
pub const STREAM_CUT: &str = "tool-stream-cut";
/// Warning: a tool's input schema is shown otherwise than it is written.
pub const SCHEMA_CURED: &str = "tool-schema-cured";
/// Warning: a tool's description is cut.
pub const DESCRIPTION_CUT: &str = "tool-description-cut";
/// Warning: no pool could be made, so that each call takes its memory from the system.
pub const POOL_UNAVAILABLE: &str = "tool-pool-unavailable";
