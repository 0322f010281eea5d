//! Library of the CLI transports: what every run of a foreign agent program needs, whatever its dialect.
//!
//! - [`Program`] and [`Child`]: a program in its own process group, with an environment from nothing, bounded output, and an end that is
//!   always reached and reaped.
//! - [`Line`] and [`LineReader`]: its output, line by line.
//! - [`Watchdog`]: the idle and the wall-clock limit of a turn.
//! - [`RunDir`]: its private directories and files.
//! - [`Bridge`]: the capsule's tools as an MCP server on loopback, for one conversation.
//!
//! This crate is not a transport and registers none. A transport adds its dialect: arguments, files, the reader of its events.
#![warn(missing_docs)]

mod bridge;
mod child;
pub mod codes;
mod group;
mod lines;
mod program;
mod rundir;
mod spawner;
mod watchdog;

pub use bridge::{AttachedTurn, Bridge, SlotDispatch};
pub use capsule_mcp::{Generations, Listed, Options as BridgeOptions, ToolMeta};
pub use child::{Child, STDERR_TAIL};
pub use group::{Exit, Stop};
pub use lines::{Line, LineReader, LineSplitter, MAX_LINE};
pub use program::Program;
pub use rundir::{RunDir, private_dir};
pub use watchdog::{Life, Watchdog};
