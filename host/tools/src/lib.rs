//! Tool catalogue, dispatch chain and the WebAssembly sandbox.
//!
//! ```text
//! Toolbox::load(sources, grants, options)     once: read, check, compile (or from the cache), bind
//! toolbox.dispatch(bindings)                  once per turn: Arc<dyn ToolDispatch>
//! dispatch.call(call)                         validate -> gate -> execute -> record
//!   a component                               a fresh store: polled once here, then on the sandbox's own runtime
//! ```
//!
//! Components export `murmur:tool/run@0.1.0` (see `wit/`). They get WASI 0.2 under [`Grants`], `wasi:http` with every request refused,
//! and the capsule's own interfaces. Nothing is kept between calls.
#![warn(missing_docs)]

pub mod codes;
mod dispatch;
mod grants;
mod sandbox;
mod schema;
mod section;
mod source;
mod toolbox;

pub use dispatch::Bindings;
pub use grants::{Grants, Limits, Mode, Preopen};
pub use source::ToolSource;
pub use toolbox::{EnvLookup, Options, Toolbox, Warning};
