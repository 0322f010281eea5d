//! One file a command.

mod build;
mod completions;
mod doctor;
mod explain;
mod mcp;
mod new;
mod run;
mod schema;
mod test;
mod tool;
mod transports;

use std::process::ExitCode;

use tokio::runtime::{Builder, Runtime};

use crate::{Failure, args::Command, failure};

/// How long a thread that is stuck in the file system may hold up the end of the program.
const RUNTIME_GRACE: std::time::Duration = std::time::Duration::from_millis(500);

pub(crate) fn execute(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(run) => run::run(&run),
        Command::Test(test) => test::test(&test),
        Command::Tool(tool) => tool::tool(tool.command),
        Command::Mcp(mcp) => mcp::mcp(&mcp),
        Command::Transports(transports) => transports::transports(&transports),
        Command::Doctor(doctor) => doctor::doctor(&doctor),
        Command::New(new) => new::new(&new),
        Command::Build(build) => build::build(&build),
        Command::Schema => schema::schema(),
        Command::Explain(explain) => explain::explain(&explain),
        Command::Completions { shell } => completions::completions(shell),
    }
}

/// Runs `work` on a runtime that ends with it.
pub(crate) fn on_runtime<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(RUNTIME_GRACE);
    Ok(done)
}

fn runtime() -> Result<Runtime, Failure> {
    let built = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .thread_name("capsule")
        .build();
    built.map_err(|error| failure::internal("start the runtime", &error).into())
}
