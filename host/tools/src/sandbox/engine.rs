//! The engines: one with a pool of places for the calls that may run at once, one for what does not fit a place.

use std::{
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::places::Places;
use crate::Limits;

/// How long a guest may compute before it yields its thread.
const TICK: Duration = Duration::from_millis(10);
/// Ticks without a call after which the ticker rests, so that calls in a row do not wake it each time.
const LINGER: u32 = 20;

/// What one component may need. Generous for Rust (4 core instances) and JavaScript (11, with 3 memories).
const CORE_INSTANCES: u32 = 64;
const MEMORIES: u32 = 4;
const TABLES: u32 = 64;
/// What stays mapped when a place is given back. Measured: with the page map scan, small calls take a fifth of the time.
const KEEP_RESIDENT: usize = 128 << 10;
const KEEP_TABLES: usize = 64 << 10;

/// What both engines have in common. How memory is allocated is no part of it, so both run the same compiled code.
fn config() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true).memory_init_cow(true);
    config
}

/// An engine whose calls take their memory from the system, each for itself.
pub(super) fn on_demand() -> wasmtime::Result<Engine> {
    Engine::new(&config())
}

/// An engine with a pool for `limits.concurrent_calls` calls, and for the calls that they may make.
pub(super) fn pooled(limits: &Limits) -> wasmtime::Result<Engine> {
    let calls = Places::all(limits);
    let memory = usize::try_from(limits.memory)?;
    let table_elements = usize::try_from(limits.table_elements)?;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls * CORE_INSTANCES)
        .total_memories(calls * MEMORIES)
        .total_tables(calls * TABLES)
        .total_stacks(calls)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_memory_size(memory)
        .table_elements(table_elements)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(KEEP_TABLES)
        .pagemap_scan(Enabled::Auto);
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

/// Advances the epoch of every engine while calls run; rests, without a single wake-up, while none does.
pub(super) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

struct Shared {
    running: AtomicUsize,
    resting: AtomicBool,
    stop: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Ticker {
    pub(super) fn new(engines: Vec<Engine>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            running: AtomicUsize::new(0),
            resting: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("capsule-epoch".into())
            .spawn(move || theirs.tick(&engines))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Ticks until the guard is dropped.
    pub(super) fn start(&self) -> Ticking {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        // Either this load sees that the ticker rests, or the ticker's own check, made after it said so, sees the call.
        if self.shared.resting.load(Ordering::SeqCst) {
            self.shared.notify();
        }
        Ticking(Arc::clone(&self.shared))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.notify();
        if let Some(thread) = self.thread.take() {
            // It was just woken, so this does not wait; a panic in it has nothing left to harm.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn notify(&self) {
        let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.wake.notify_one();
    }

    fn idle(&self) -> bool {
        self.running.load(Ordering::SeqCst) == 0 && !self.stop.load(Ordering::SeqCst)
    }

    fn tick(&self, engines: &[Engine]) {
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unused = 0;
        while !self.stop.load(Ordering::SeqCst) {
            if unused < LINGER {
                let waited = self.wake.wait_timeout(held, TICK);
                held = waited.unwrap_or_else(PoisonError::into_inner).0;
                engines.iter().for_each(Engine::increment_epoch);
                unused = if self.idle() { unused + 1 } else { 0 };
                continue;
            }
            self.resting.store(true, Ordering::SeqCst);
            while self.idle() {
                held = self.wake.wait(held).unwrap_or_else(PoisonError::into_inner);
            }
            self.resting.store(false, Ordering::SeqCst);
            unused = 0;
        }
    }
}

/// A call that runs.
pub(super) struct Ticking(Arc<Shared>);

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ticker_rests_without_calls_and_wakes_for_one() {
        let ticker = Ticker::new(vec![on_demand().unwrap(), pooled(&Limits::default()).unwrap()]).unwrap();
        let rests = || ticker.shared.resting.load(Ordering::SeqCst);
        while !rests() {
            thread::yield_now();
        }
        let call = ticker.start();
        while rests() {
            thread::yield_now();
        }
        drop(call);
        while !rests() {
            thread::yield_now();
        }
    }

    #[test]
    fn code_compiled_for_one_engine_is_code_for_the_other() {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let hash = |engine: Engine| {
            let mut hasher = DefaultHasher::new();
            engine.precompile_compatibility_hash().hash(&mut hasher);
            hasher.finish()
        };
        assert_eq!(hash(pooled(&Limits::default()).unwrap()), hash(on_demand().unwrap()));
    }

    #[test]
    fn the_largest_pool_can_be_reserved() {
        let limits = Limits {
            concurrent_calls: 1024,
            memory: 4 << 30,
            ..Limits::default()
        };
        assert!(limits.check().is_empty());
        pooled(&limits).unwrap();
    }
}
