//! `capsule completions`: what a shell completes.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use crate::{Failure, args::Cli, failure};

pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    // Made in memory: the generator does not tell of a failure to write.
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "capsule", &mut script);
    let written = io::stdout().lock().write_all(&script);
    written.map_err(|error| failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}
