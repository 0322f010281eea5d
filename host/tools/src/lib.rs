//! Tool catalogue, dispatch chain and the WebAssembly sandbox.
//!
//! ```text
//! Toolbox::load(sources, grants, options)     once: read, check, compile (or from the cache), bind
//! toolbox.dispatch(bindings)                  once per turn: Arc<dyn ToolDispatch>
//! dispatch.call(call)                         validate -> gate -> execute -> record
//!   a component                               a fresh store: polled once here, then on the sandbox's own runtime
//! ```
//!
//! Components export `murmur:tool/run@0.1.0` (see `wit/`), functions on plain values, or `wasi:cli/run`. They get WASI 0.2 and `wasi:http` under [`Grants`],
//! and the capsule's own interfaces. Nothing is kept between calls.
#![warn(missing_docs)]

mod alias;
mod catalogue;
pub mod codes;
mod components;
mod dispatch;
#[doc(hidden)]
pub mod fuzzing;
mod grants;
mod report;
mod sandbox;
mod schema;
mod section;
mod skill;
mod source;
mod toolbox;
mod values;

pub use components::SandboxComponents;
pub use dispatch::Bindings;
pub use grants::{ClockGrant, Grants, Limits, Mode, NarrowedLimits, Narrowing, Preopen, RandomGrant, SecretGrant};
pub use report::{Profile, ToolReport};
pub use source::{CommandInput, FileKind, ToolSource};
pub use toolbox::{EnvLookup, Options, Toolbox, Warning};
