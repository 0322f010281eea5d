//! `capsule.yaml`: parsed with positions, validated, typed.
//!
//! ```text
//! text ── tree (values with line and column) ── overrides of flags ──┐
//! base schema + each transport's own schema grafted in ──────────────┴── all violations, in words and with places ── serde ── Manifest
//! ```
//!
//! The crate knows no transport: their schemas come from outside ([`TransportSchemas`]), and so does the name of the default one.
//! A manifest is either a [`Loaded`] or a [`Report`] of everything that is wrong with it.
//!
//! `${NAME}` stays as it is in a manifest; [`EnvSecrets`] expands it where a value is used.
#![warn(missing_docs)]

mod capabilities;
mod capabilities_schema;
mod checks;
pub mod codes;
mod dotenv;
mod family;
mod files;
mod load;
mod loaded;
mod manifest;
mod overrides;
mod places;
mod redact;
mod report;
mod schema;
mod secrets;
mod tree;
mod violations;
mod words;

pub use capabilities::{
    AllowList, CallLimits, DirectoryGrant, Grants, Mode, RandomGrant, SecretGrant, SecretSource, ToolGrants, ToolLimits,
};
pub use family::{DIALECT, Transports};
pub use load::{FILE_NAME, Model, Options, load, parse};
pub use loaded::{Chosen, Loaded};
pub use manifest::{Block, Capture, CommandInput, Context, Inference, Manifest, ToolEntry, ToolFile, Trace};
pub use overrides::Override;
pub use report::{Origin, Problem, Report};
pub use schema::{COMMON_KEYS, TransportSchemas, schema};
pub use secrets::EnvSecrets;
pub use tree::Position;
