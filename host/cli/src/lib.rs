//! The `capsule` command line as a library.
//!
//! A program with plugins of its own names them and calls [`main`]:
//!
//! ```ignore
//! use my_transport as _;
//!
//! fn main() -> std::process::ExitCode {
//!     capsule::main()
//! }
//! ```
//!
//! From the manifest to the sandbox: `assemble` reads the manifest, loads the tools and builds the transport; `commands` runs what was
//! asked; `view` shows the task's log.
#![warn(missing_docs)]

mod args;
mod asking;
mod assemble;
mod candidates;
mod catalog;
mod child;
mod closed;
mod commands;
mod exit;
mod failure;
mod grants;
mod links;
mod not_set_up;
mod program;
mod rehearsal;
mod script;
mod select;
mod signals;
mod sources;
mod templates;
mod view;

use std::{io, process::ExitCode};

use clap::Parser as _;
use tracing_subscriber::EnvFilter;

pub use assemble::{Assembled, Choice, Environment, Surroundings, assemble, assemble_in, assemble_recorded};
pub use catalog::{error_table, transports};
pub use failure::Failure;

/// Runs the command line of this process to its exit code.
pub fn main() -> ExitCode {
    let cli = args::Cli::parse();
    let filter = EnvFilter::try_from_env("CAPSULE_LOG").unwrap_or_else(|_| EnvFilter::new("off"));
    // Set once per process; a host program that has its own subscriber keeps it.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .try_init();
    let as_json = cli.command.as_json();
    // Before anything runs whose answer would be lost.
    let done = match closed::stdout() {
        true => Err(failure::closed().into()),
        false => commands::execute(cli.command),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            if as_json {
                failure.show_json();
            }
            failure.show(&mut anstream::stderr());
            failure.exit_code()
        }
    }
}
