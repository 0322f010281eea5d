//! One call of a component: wait for a place, run under deadline and cancel, turn what happened into a reply.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use capsule_api::{CancelReason, Clock, Tool, ToolContext, ToolReply, ToolSpec};
use serde_json::Value;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, watch};
use wasmtime::{Store, component::ResourceTable};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, p2::pipe::MemoryInputPipe};
use wasmtime_wasi_http::WasiHttpCtx;

use super::{
    Sandbox,
    host::{Guest, ToolResult},
    http::DenyAll,
    limits::Limiter,
    program::Program,
    record::CallRecord,
    registry::{self, Asks},
    reply::{self, Ended, NotStarted},
    stdio::{Stderr, Stdout},
};
use crate::grants::Mode;

/// A component that was bound and can be called.
pub(crate) struct ComponentTool {
    spec: ToolSpec,
    program: Program,
    sandbox: Arc<Sandbox>,
}

impl ComponentTool {
    pub(crate) fn new(spec: ToolSpec, program: Program, sandbox: Arc<Sandbox>) -> Self {
        Self { spec, program, sandbox }
    }
}

#[async_trait]
impl Tool for ComponentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, arguments: Value, context: ToolContext) -> ToolReply {
        let limits = self.sandbox.grants.limits;
        let record = Arc::new(CallRecord::new());
        let _over = CloseOnDrop(Arc::clone(&record));
        let ended = self.supervise(arguments, context, &record).await;
        reply::reply(&self.spec.name, ended, &record, &limits)
    }
}

impl ComponentTool {
    async fn place(&self, depth: u32) -> Result<OwnedSemaphorePermit, AcquireError> {
        match self.program.is_script() {
            true => self.sandbox.places.take_for_script().await,
            false => self.sandbox.places.take(depth).await,
        }
    }

    /// Runs the guest until it returns, or until a cancel or the deadline ends it.
    async fn supervise(&self, arguments: Value, context: ToolContext, record: &Arc<CallRecord>) -> Ended {
        let cancel = context.cancel.clone();
        let place = tokio::select! {
            biased;
            reason = cancel.cancelled() => return Ended::Cancelled(reason),
            place = self.place(context.depth) => place,
        };
        // They are never closed; if they were, the sandbox would be gone.
        let Ok(place) = place else {
            return Ended::Cancelled(CancelReason::Shutdown);
        };
        let (asks, asked) = registry::channel();
        let nested = registry::serve(asked, context.clone(), Arc::clone(record));
        let guest = GuestCall {
            name: self.spec.name.clone(),
            program: self.program.clone(),
            sandbox: Arc::clone(&self.sandbox),
            record: Arc::clone(record),
            context,
            asks,
        };
        let waiting = record.waiting();
        let work = self.sandbox.runtime.run(Box::pin(guest.run(arguments, place)));
        let limit = match self.program.is_script() {
            true => Duration::MAX,
            false => self.sandbox.grants.limits.deadline,
        };
        tokio::select! {
            biased;
            ended = work => match ended {
                Ok(Ok(result)) => Ended::Returned(result),
                Ok(Err(cause)) => Ended::Stopped(cause),
                Err(_) => Ended::Cancelled(CancelReason::Shutdown),
            },
            reason = cancel.cancelled() => Ended::Cancelled(reason),
            () = deadline(&*self.sandbox.clock, limit, waiting) => Ended::TimedOut,
            never = nested => match never {},
        }
    }
}

/// Waits until the call has taken `limit`, not counting the time in which it waits for the caller.
async fn deadline(clock: &dyn Clock, limit: Duration, mut waiting: watch::Receiver<bool>) {
    let mut left = limit;
    loop {
        until(&mut waiting, false).await;
        let since = clock.now();
        tokio::select! {
            () = until(&mut waiting, true) => {}
            () = clock.sleep(left) => return,
        }
        left = left.saturating_sub(clock.now().saturating_duration_since(since));
    }
}

async fn until(waiting: &mut watch::Receiver<bool>, wanted: bool) {
    if waiting.wait_for(|now| *now == wanted).await.is_err() {
        // The record outlives the call, so its sender is there; without one nothing would change any more.
        std::future::pending().await
    }
}

/// Silences a guest whose call is over, whether it ended or was dropped.
struct CloseOnDrop(Arc<CallRecord>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// All that a running guest owns.
struct GuestCall {
    name: String,
    program: Program,
    sandbox: Arc<Sandbox>,
    record: Arc<CallRecord>,
    context: ToolContext,
    asks: Asks,
}

impl GuestCall {
    /// Runs the guest in a fresh store. The place is given back after the store, so that the pool always has room for a permit.
    async fn run(self, arguments: Value, place: OwnedSemaphorePermit) -> wasmtime::Result<ToolResult> {
        let _place = place;
        let _ticking = self.sandbox.ticker.start();
        let program = self.program.clone();
        let mut store = self.store(&arguments)?;
        program.run(&mut store, &arguments).await
    }

    fn store(self, arguments: &Value) -> wasmtime::Result<Store<Guest>> {
        let limits = self.sandbox.grants.limits;
        let wasi = self.wasi(arguments)?;
        let record = self.record;
        let guest = Guest {
            wasi,
            table: ResourceTable::new(),
            http: WasiHttpCtx::new(),
            policy: DenyAll {
                record: Arc::clone(&record),
            },
            limiter: Limiter::new(Arc::clone(&record), limits.memory),
            record,
            context: self.context,
            asks: self.asks,
            output_limit: limits.output,
        };
        let mut store = Store::new(self.program.engine(), guest);
        store.limiter(|guest| &mut guest.limiter);
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        Ok(store)
    }

    /// What the guest has of WASI: the granted directories and variables, the arguments of a command, no sockets, no names.
    fn wasi(&self, arguments: &Value) -> wasmtime::Result<WasiCtx> {
        let grants = &self.sandbox.grants;
        let mut wasi = WasiCtxBuilder::new();
        wasi.allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .stdout(Stdout {
                record: Arc::clone(&self.record),
                limit: grants.limits.output,
                keep: self.program.command().is_some(),
            })
            .stderr(Stderr {
                record: Arc::clone(&self.record),
            });
        if let Some(command) = self.program.command() {
            wasi.stdin(MemoryInputPipe::new(command.stdin(arguments)));
            wasi.arg(&self.name).args(&command.argv(arguments));
        }
        for (name, value) in &grants.env {
            wasi.env(name, value.expose());
        }
        for grant in &grants.filesystem {
            let perms = match grant.mode {
                Mode::Ro => FsPerms::ReadOnly,
                Mode::Rw => FsPerms::ReadWrite,
            };
            let opened = wasi.preopened_dir(&grant.host, &grant.guest, perms);
            opened.map_err(|cause| {
                NotStarted(format!(
                    "the granted directory {} cannot be opened: {}",
                    grant.host.display(),
                    cause.root_cause()
                ))
            })?;
        }
        Ok(wasi.build())
    }
}
