//! One call of a component: wait for a place, run under deadline and cancel, turn what happened into a reply.

use std::{collections::BTreeMap, fmt::Display, sync::Arc, time::Duration};

use async_trait::async_trait;
use capsule_api::{CancelReason, Clock, Tool, ToolContext, ToolReply, ToolSpec};
use serde_json::Value;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, watch};
use wasmtime::{
    Store,
    component::{ResourceTable, ResourceTableError},
};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, p2::pipe::MemoryInputPipe};
use wasmtime_wasi_http::WasiHttpCtx;

use super::{
    Sandbox,
    directory::Directory,
    fixed,
    host::{Guest, Speech, ToolResult},
    http::Policy,
    limits::Limiter,
    program::Program,
    record::{CallRecord, LimitHit, Waiting},
    registry::{self, Asks},
    reply::{self, Ended, NotStarted},
    stdio::{Stderr, Stdout},
};
use crate::grants::{Checked, Mode};

/// Handles of host resources that a call may hold: files, streams, requests. Each costs the host memory, and a file a descriptor.
const RESOURCES: usize = 1024;

/// A component that was bound and can be called.
pub(crate) struct ComponentTool {
    spec: ToolSpec,
    job: Job,
}

/// What a tool's calls are given.
#[derive(Clone, Debug)]
pub(crate) struct Equipment {
    pub(crate) grants: Arc<Checked>,
    /// Read by `wasi:config/store`.
    pub(crate) config: Arc<BTreeMap<String, String>>,
}

impl ComponentTool {
    pub(crate) fn new(spec: ToolSpec, program: Program, equipment: Equipment, sandbox: Arc<Sandbox>) -> Self {
        let job = Job {
            name: spec.name.clone(),
            program,
            equipment,
            sandbox,
        };
        Self { spec, job }
    }
}

#[async_trait]
impl Tool for ComponentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, arguments: Value, context: ToolContext) -> ToolReply {
        let record = Arc::new(CallRecord::new(Arc::clone(&self.job.sandbox.clock)));
        let limits = self.job.equipment.grants.limits;
        let ended = self.job.clone().run(arguments, context, None, &record).await;
        reply::reply(&self.spec.name, ended, &record, &limits)
    }
}

/// What a call runs, with what, and where.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) program: Program,
    pub(super) equipment: Equipment,
    pub(super) sandbox: Arc<Sandbox>,
}

impl Job {
    async fn place(&self, depth: u32) -> Result<OwnedSemaphorePermit, AcquireError> {
        match self.program.is_script() {
            true => self.sandbox.places.take_for_script().await,
            false => self.sandbox.places.take(depth).await,
        }
    }

    /// Runs the guest until it returns, or until a cancel or the deadline ends it. With `speech`, it speaks for the model.
    pub(super) async fn run(
        self,
        arguments: Value,
        context: ToolContext,
        speech: Option<Speech>,
        record: &Arc<CallRecord>,
    ) -> Ended {
        let _over = CloseOnDrop(Arc::clone(record));
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
        let sandbox = Arc::clone(&self.sandbox);
        let limit = match self.program.is_script() {
            true => Duration::MAX,
            false => self.equipment.grants.limits.deadline,
        };
        let guest = GuestCall {
            job: self,
            record: Arc::clone(record),
            context,
            speech,
            asks,
        };
        let waiting = record.waiting();
        let work = sandbox.runtime.run(Box::pin(guest.run(arguments, place)));
        tokio::select! {
            biased;
            ended = work => match ended {
                Ok(Ok(result)) => Ended::Returned(result),
                Ok(Err(cause)) => Ended::Stopped(cause),
                Err(_) => Ended::Cancelled(CancelReason::Shutdown),
            },
            reason = cancel.cancelled() => Ended::Cancelled(reason),
            () = deadline(&*sandbox.clock, limit, waiting) => Ended::TimedOut,
            never = nested => match never {},
        }
    }
}

/// Waits until the call has taken `limit`, not counting the time in which it waits for the caller.
async fn deadline(clock: &dyn Clock, limit: Duration, mut waiting: watch::Receiver<Waiting>) {
    let start = clock.now();
    loop {
        until(&mut waiting, |waiting| waiting.since.is_none()).await;
        // Counted anew each time: a wait may come and go before anybody looks.
        let (now, state) = (clock.now(), *waiting.borrow());
        let waits = state
            .since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let taken = now
            .saturating_duration_since(start)
            .saturating_sub(state.before + waits);
        let left = limit.saturating_sub(taken);
        if left.is_zero() {
            return;
        }
        tokio::select! {
            () = until(&mut waiting, |waiting| waiting.since.is_some()) => {}
            () = clock.sleep(left) => {}
        }
    }
}

async fn until(waiting: &mut watch::Receiver<Waiting>, wanted: impl Fn(&Waiting) -> bool) {
    if waiting.wait_for(|waiting| wanted(waiting)).await.is_err() {
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
    job: Job,
    record: Arc<CallRecord>,
    context: ToolContext,
    speech: Option<Speech>,
    asks: Asks,
}

impl GuestCall {
    /// Runs the guest in a fresh store. The place is given back after the store, so that the pool always has room for a permit.
    async fn run(self, arguments: Value, place: OwnedSemaphorePermit) -> wasmtime::Result<ToolResult> {
        let _place = place;
        let _ticking = self.job.sandbox.ticker.start();
        let program = self.job.program.clone();
        let (call, arguments, wasi) = self.prepared(arguments).await?;
        let mut store = call.store(wasi);
        let (record, limits) = (Arc::clone(&store.data().record), store.data().policy.grants.limits);
        let ended = program.run(&mut store, &arguments).await;
        if let Err(cause) = &ended {
            // The engine counts these itself; instances in words alone.
            if cause.root_cause().to_string().contains("instance count too high") {
                record.hit(LimitHit::Instances(limits.instances));
            }
            if matches!(cause.downcast_ref(), Some(ResourceTableError::Full)) {
                record.hit(LimitHit::Handles(RESOURCES));
            }
        }
        ended
    }

    /// The call and what it has of WASI. Directories are opened where a file system that hangs holds up no other call.
    async fn prepared(self, arguments: Value) -> wasmtime::Result<(Self, Value, WasiCtx)> {
        let no_directories = self.job.equipment.grants.filesystem.is_empty();
        let open = move || {
            let wasi = self.wasi(&arguments)?;
            Ok((self, arguments, wasi))
        };
        if no_directories {
            return open();
        }
        match tokio::task::spawn_blocking(open).await {
            Ok(opened) => opened,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(NotStarted("the sandbox is ending".into()).into()),
            },
        }
    }

    fn store(self, wasi: WasiCtx) -> Store<Guest> {
        let limits = self.job.equipment.grants.limits;
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES);
        let Job {
            program,
            equipment,
            sandbox,
            ..
        } = self.job;
        let record = self.record;
        let guest = Guest {
            wasi,
            table,
            http: WasiHttpCtx::new(),
            policy: Policy {
                record: Arc::clone(&record),
                grants: equipment.grants,
                net: Arc::clone(&sandbox.net),
                clock: Arc::clone(&sandbox.clock),
                open: Arc::default(),
                driver: self.speech.is_some(),
            },
            limiter: Limiter::new(Arc::clone(&record), &limits),
            record,
            context: self.context,
            speech: self.speech,
            asks: self.asks,
            config: equipment.config,
            output_limit: limits.output,
        };
        let mut store = Store::new(program.engine(), guest);
        store.limiter(|guest| &mut guest.limiter);
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        store
    }

    /// What the guest has of WASI: the granted directories and variables, the arguments of a command, no sockets, no names.
    fn wasi(&self, arguments: &Value) -> wasmtime::Result<WasiCtx> {
        let grants = &self.job.equipment.grants;
        let mut wasi = WasiCtxBuilder::new();
        wasi.allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .stdout(Stdout {
                record: Arc::clone(&self.record),
                limit: grants.limits.output,
                keep: self.job.program.command().is_some(),
            })
            .stderr(Stderr {
                record: Arc::clone(&self.record),
            });
        if let Some(command) = self.job.program.command() {
            wasi.stdin(MemoryInputPipe::new(command.stdin(arguments)));
            wasi.arg(&self.job.name).args(&command.argv(arguments));
        }
        for (name, value) in &grants.env {
            wasi.env(name, value.expose());
        }
        for grant in &grants.filesystem {
            let perms = match grant.mode {
                Mode::Ro => FsPerms::ReadOnly,
                Mode::Rw => FsPerms::ReadWrite,
            };
            let failed = |cause: &dyn Display| {
                let path = grant.host.display();
                NotStarted(format!("the granted directory {path} cannot be opened: {cause}"))
            };
            let directory = Directory::open(&grant.host).map_err(|cause| failed(&cause))?;
            let opened = wasi.preopened_dir(directory.path(), &grant.guest, perms);
            opened.map_err(|cause| failed(cause.root_cause()))?;
        }
        fixed::apply(grants, &mut wasi);
        Ok(wasi.build())
    }
}
