//! Library of the CLI transports: what every run of a foreign agent program needs, whatever its dialect.
//!
//! - [`Program`] and [`Child`]: a program in its own process group, with an environment from nothing, bounded output, and an end that is
//!   always reached and reaped.
//! - [`Line`] and [`LineReader`]: its output, line by line.
//! - [`Watchdog`]: the idle and the wall-clock limit of a turn.
//! - [`RunDir`]: its private directories and files.
//! - [`Bridge`]: the capsule's tools as an MCP server on loopback, for one conversation.
//! - [`Locate`], [`ask`] and [`report`]: which binary it is, what it says about itself, and what is told about it without a model request.
//! - [`SettingsOf`] and [`CliSettings`]: the settings that all of them have.
//! - [`Proxies`]: the proxy of the host's environment, where the settings pass it on.
//! - [`Lent`] and [`Turn`]: a conversation and its turns, as far as they are the same for all.
//! - [`Credential`] and [`Loan`]: who pays, and how a person's own login is lent to the program.
//!
//! This crate is not a transport and registers none. A transport adds its dialect: arguments, files, the reader of its events.
#![warn(missing_docs)]

mod bridge;
mod child;
pub mod codes;
mod escaped;
mod group;
mod ladder;
mod limits;
mod lines;
mod locate;
mod login;
mod probe;
mod program;
mod proxies;
mod rundir;
mod settings;
mod spawner;
mod talk;
mod turn;
mod watchdog;

pub use bridge::{AttachedTurn, Bridge, SlotDispatch};
#[doc(hidden)]
pub use capsule_api::{Code, ErrorKind};
pub use capsule_mcp::{Generations, Listed, Options as BridgeOptions, ToolMeta};
pub use child::{Child, STDERR_TAIL};
pub use group::{Exit, Stop};
pub use ladder::{CALLS, GONE_WITHIN, KILL, REST, STEP, until};
pub use limits::{call_limit, largest_result};
pub use lines::{Line, LineReader, LineSplitter, MAX_LINE};
pub use locate::{Identity, Known, Locate};
pub use login::{Credential, Format, Grant, Loan, Login, Original, Settled, Stamp};
pub use probe::{Said, Versions, ask, report};
pub use program::{MOST_OUTPUT, Program};
pub use proxies::Proxies;
pub use rundir::{RunDir, private_dir};
pub use settings::{CliSettings, SettingsOf};
pub use talk::{Borrow, Lent, advised, close, health_after, resumed, text_of};
pub use turn::{Ending, Finished, Halt, Turn, TurnCodes, TurnParts};
pub use watchdog::{Life, Watchdog};
