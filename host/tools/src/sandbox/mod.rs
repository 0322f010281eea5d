//! The wasmtime sandbox: its engines, one runtime, and a fresh store for every call.

mod cache;
mod call;
mod config;
mod directory;
mod driver;
mod engine;
mod exports;
mod fixed;
mod host;
mod http;
mod http_body;
mod limits;
mod linker;
mod places;
mod prepare;
mod program;
mod record;
mod registry;
mod reply;
mod runtime;
mod stdio;

pub(crate) use call::{ComponentTool, Equipment};
pub(crate) use driver::DriverComponent;
pub(crate) use prepare::{Made, Prepared, prepare_all};

use std::{sync::Arc, time::Duration};

use capsule_api::{Clock, Error};
use capsule_net::NetClient;
use wasmtime::{Engine, component::Linker};

use crate::{Options, Warning, codes, grants::Checked};
use engine::Ticker;
use host::Guest;
use places::Places;
use runtime::GuestRuntime;

/// What all components of a capsule share.
pub(crate) struct Sandbox {
    /// The engine with the pool, unless the machine has no room for it.
    pooled: Option<Bench>,
    /// For what does not fit the pool: each call takes its memory from the system.
    on_demand: Bench,
    ticker: Ticker,
    runtime: GuestRuntime,
    /// What the capsule grants; a tool may have less.
    grants: Arc<Checked>,
    net: Arc<NetClient>,
    places: Places,
    clock: Arc<dyn Clock>,
}

/// An engine, and what it offers to components.
struct Bench {
    engine: Engine,
    linker: Linker<Guest>,
}

impl Bench {
    fn new(engine: Engine) -> wasmtime::Result<Self> {
        let linker = linker::linker(&engine)?;
        Ok(Self { engine, linker })
    }
}

impl Sandbox {
    /// Sets the sandbox up. A pool that cannot be reserved is a warning.
    ///
    /// # Errors
    /// The interfaces cannot be offered, or a thread cannot be started.
    pub(crate) fn new(grants: Checked, options: &Options, warnings: &mut Vec<Warning>) -> Result<Self, Error> {
        let failed = |what: &str, cause: &dyn std::fmt::Display| {
            Error::new(
                &codes::SANDBOX,
                format!("the sandbox cannot be set up: {what}: {cause}"),
            )
        };
        let no_engine = |cause: wasmtime::Error| failed("its engine", &cause.root_cause());
        let pool = engine::pooled(&grants.limits).map_err(|cause| {
            let calls = grants.limits.concurrent_calls;
            let message = format!(
                "no pool could be reserved for {calls} calls, so each call takes its memory from the system, which is slower: {}",
                cause.root_cause()
            );
            warnings.push(Warning::new(codes::POOL_UNAVAILABLE, message));
        });
        let pooled = pool.ok().map(Bench::new).transpose().map_err(no_engine)?;
        let on_demand = engine::on_demand().and_then(Bench::new).map_err(no_engine)?;
        let mut engines = vec![on_demand.engine.clone()];
        engines.extend(pooled.as_ref().map(|bench| bench.engine.clone()));
        let ticker = Ticker::new(engines).map_err(|cause| failed("the epoch thread", &cause))?;
        let runtime = GuestRuntime::new().map_err(|cause| failed("its runtime", &cause))?;
        let places = Places::new(&grants.limits);
        Ok(Self {
            pooled,
            on_demand,
            ticker,
            runtime,
            grants: Arc::new(grants),
            net: Arc::new(NetClient::with_options(Arc::clone(&options.clock), options.net.clone())),
            places,
            clock: Arc::clone(&options.clock),
        })
    }

    /// The engines that a component may be compiled for, the better one first.
    fn benches(&self) -> impl Iterator<Item = &Bench> {
        self.pooled.iter().chain([&self.on_demand])
    }

    /// Ends the runtime of the guests; blocks for up to `grace`.
    pub(crate) fn shut_down(&self, grace: Duration) {
        self.runtime.shut_down(grace);
    }
}

#[cfg(test)]
mod tests;
