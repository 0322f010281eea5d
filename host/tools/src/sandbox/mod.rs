//! The wasmtime sandbox: one engine and one runtime per process, a fresh store for every call.

mod cache;
mod call;
mod engine;
mod host;
mod http;
mod limits;
mod linker;
mod prepare;
mod record;
mod reply;
mod runtime;
mod stdio;

pub(crate) use prepare::prepare_all;

use std::{sync::Arc, time::Duration};

use capsule_api::{Clock, Error};
use tokio::sync::Semaphore;
use wasmtime::{Engine, component::Linker};

use crate::{codes, grants::Checked};
use engine::Ticker;
use host::Guest;
use runtime::GuestRuntime;

/// What all components of a capsule share.
pub(crate) struct Sandbox {
    engine: Engine,
    linker: Linker<Guest>,
    ticker: Ticker,
    runtime: GuestRuntime,
    grants: Checked,
    /// One permit per place in the pool. A call holds its permit until its store is gone.
    places: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
}

impl Sandbox {
    /// Sets the sandbox up.
    ///
    /// # Errors
    /// The pool cannot be reserved, or a thread cannot be started.
    pub(crate) fn new(grants: Checked, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let failed = |what: &str, cause: &dyn std::fmt::Display| {
            Error::new(
                &codes::SANDBOX,
                format!("the sandbox cannot be set up: {what}: {cause}"),
            )
        };
        let engine = engine::engine(&grants.limits).map_err(|cause| {
            let calls = grants.limits.concurrent_calls;
            failed(&format!("the pool for {calls} calls"), &cause.root_cause())
        })?;
        let linker = linker::linker(&engine).map_err(|cause| failed("its interfaces", &cause))?;
        let ticker = Ticker::new(engine.clone()).map_err(|cause| failed("the epoch thread", &cause))?;
        let runtime = GuestRuntime::new().map_err(|cause| failed("its runtime", &cause))?;
        let places = usize::try_from(grants.limits.concurrent_calls).unwrap_or(1);
        Ok(Self {
            engine,
            linker,
            ticker,
            runtime,
            grants,
            places: Arc::new(Semaphore::new(places)),
            clock,
        })
    }

    /// Ends the runtime of the guests; blocks for up to `grace`.
    pub(crate) fn shut_down(&self, grace: Duration) {
        self.runtime.shut_down(grace);
    }
}
