//! What a tool call is held against: wasmtime alone, with the settings of the sandbox.
//!
//! The settings (engine, pool, store, WASI, epochs) are those of `host/tools/src/sandbox`, written down again: what is compared must not
//! run the code that it is compared with.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use capsule_tools::Limits;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store, StoreLimits,
    StoreLimitsBuilder,
    component::{Component, HasSelf, Linker, ResourceTable},
};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView};

use crate::Result;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package capsule:bench;
            world tool {
                include murmur:worlds/imports@0.1.0;
                export murmur:tool/run@0.1.0;
            }
        ",
        world: "capsule:bench/tool",
        imports: { "murmur:task/task.request-input": async | trappable },
        exports: { default: async },
    });
}

use bindings::{
    Tool, ToolPre,
    exports::murmur::tool::run::{Status, ToolInput},
    murmur,
};

const TICK: Duration = Duration::from_millis(10);
const CORE_INSTANCES: u32 = 64;
const MEMORIES: u32 = 4;
const TABLES: u32 = 64;
const HANDLES: usize = 1024;

/// What a call owns.
struct Guest {
    wasi: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    policy: DenyAll,
    limits: StoreLimits,
}

/// A component, bound; its epochs advance until it is dropped.
pub(crate) struct Bare {
    engine: Engine,
    pre: ToolPre<Guest>,
    limits: Limits,
    input: ToolInput,
    stop: Arc<AtomicBool>,
    ticker: Option<JoinHandle<()>>,
}

impl Bare {
    /// Compiles and binds a component that is to be called with this text.
    pub(crate) fn new(component: &[u8], input: &str) -> Result<Self> {
        let limits = Limits::default();
        let engine = engine(&limits)?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
        Tool::add_to_linker::<_, HasSelf<_>>(&mut linker, |guest: &mut Guest| guest)?;
        let component = Component::from_binary(&engine, component)?;
        let pre = ToolPre::new(linker.instantiate_pre(&component)?)?;
        let input = ToolInput {
            data: Some(input.to_owned()),
            log_path: None,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let ticker = tick(engine.clone(), Arc::clone(&stop));
        Ok(Self {
            engine,
            pre,
            limits,
            input,
            stop,
            ticker: Some(ticker),
        })
    }

    /// One call in a fresh store: what the guest returned, unless it says that it failed.
    pub(crate) async fn call(&self) -> Result<Option<String>> {
        let mut store = self.store();
        let instance = self.pre.instantiate_async(&mut store).await?;
        let result = instance.murmur_tool_run().call_run(&mut store, &self.input).await?;
        match result.status {
            Status::Passed => Ok(result.data),
            Status::Failed | Status::Error => Err("the bare guest failed".into()),
        }
    }

    fn store(&self) -> Store<Guest> {
        let mut wasi = WasiCtxBuilder::new();
        wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        let size = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        let limits = StoreLimitsBuilder::new()
            .memory_size(size(self.limits.memory))
            .table_elements(size(self.limits.table_elements.into()))
            .instances(size(self.limits.instances.into()));
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES);
        let guest = Guest {
            wasi: wasi.build(),
            table,
            http: WasiHttpCtx::new(),
            policy: DenyAll,
            limits: limits.build(),
        };
        let mut store = Store::new(&self.engine, guest);
        store.limiter(|guest| &mut guest.limits);
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        store
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(ticker) = self.ticker.take() {
            // It only counts, so there is no panic to pass on.
            let _ = ticker.join();
        }
    }
}

fn tick(engine: Engine, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            thread::sleep(TICK);
            engine.increment_epoch();
        }
    })
}

fn engine(limits: &Limits) -> Result<Engine> {
    // The sandbox keeps places for calls inside calls, a quarter as many at each depth, and one for a script.
    let nested = limits.registry_depth.saturating_sub(1) * limits.concurrent_calls.div_ceil(4);
    let calls = limits.concurrent_calls + nested + 1;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls * CORE_INSTANCES)
        .total_memories(calls * MEMORIES)
        .total_tables(calls * TABLES)
        .total_stacks(calls)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_memory_size(usize::try_from(limits.memory)?)
        .table_elements(usize::try_from(limits.table_elements)?)
        .linear_memory_keep_resident(128 << 10)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .memory_init_cow(true)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Ok(Engine::new(&config)?)
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.policy,
            table: &mut self.table,
            ctx: &mut self.http,
        }
    }
}

/// What comes of a request while its body is still sent.
type Sending = Box<dyn Future<Output = std::result::Result<(), Error>> + Send>;
/// What comes of a request.
type Answer = Box<dyn Future<Output = wasmtime_wasi_http::Result<(http::Response<WasiBody>, Sending)>> + Send>;

struct DenyAll;

impl WasiHttpHooks for DenyAll {
    fn send_request(&mut self, _: http::Request<WasiBody>, _: Option<RequestOptions>, _: Sending) -> Answer {
        Box::new(std::future::ready(Err(Error::HttpRequestDenied)))
    }
}

// The guests that are measured call none of these.

impl murmur::stream::events::Host for Guest {
    fn emit_chunk(&mut self, _: String) {}

    fn emit_thinking_chunk(&mut self, _: String) {}

    fn tool_call_started(&mut self, _: String, _: String) {}

    fn tool_call_input_bytes(&mut self, _: String, _: u64) {}
}

impl murmur::text::chunks::Host for Guest {
    fn emit_chunk(&mut self, _: String) {}

    fn emit_thinking_chunk(&mut self, _: String) {}
}

impl murmur::task::task::Host for Guest {
    async fn request_input(&mut self, _: String) -> wasmtime::Result<String> {
        Err(wasmtime::Error::msg("nobody is asked here"))
    }
}

impl murmur::tool::run::Host for Guest {
    fn run(&mut self, _: murmur::tool::run::ToolInput) -> murmur::tool::run::ToolResult {
        murmur::tool::run::ToolResult {
            status: murmur::tool::run::Status::Error,
            summary: None,
            data: None,
            data_path: None,
            truncated: false,
            metadata: Vec::new(),
        }
    }
}

impl murmur::tool_registry::invoke::Host for Guest {
    fn invoke(
        &mut self,
        _: String,
        _: murmur::tool::run::ToolInput,
    ) -> std::result::Result<murmur::tool::run::ToolResult, String> {
        Err("no tool is called here".to_owned())
    }
}
