//! A turn's way into the task's log, for the model's events and for the dispatch's alike. Dead after the turn.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use async_trait::async_trait;
use capsule_api::{BlockId, Clock, Event, EventSink, RunEvent, RunSink, ToolStatus, Usage};

use crate::{CallTracker, TaskLog, What};

/// What a turn added up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) usage: Usage,
    pub(crate) calls: u32,
    pub(crate) denied: u32,
}

pub(crate) struct TurnSink {
    log: Arc<TaskLog>,
    clock: Arc<dyn Clock>,
    alive: AtomicBool,
    late: AtomicU64,
    blocks: AtomicU32,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    calls: CallTracker,
    tally: Tally,
}

impl TurnSink {
    pub(crate) fn new(log: Arc<TaskLog>, clock: Arc<dyn Clock>) -> Arc<Self> {
        let (alive, late, blocks) = (AtomicBool::new(true), AtomicU64::new(0), AtomicU32::new(0));
        Arc::new(Self {
            log,
            clock,
            alive,
            late,
            blocks,
            inner: Mutex::default(),
        })
    }

    /// From now on events are counted and dropped. Calls of the dispatch still end in the log: they ran, whoever listens.
    pub(crate) fn end(&self) -> Tally {
        let tally = self.with(|inner| {
            let (held, _) = inner.calls.settle_all(self.clock.now());
            for event in held {
                self.append(What::Model(event));
            }
            inner.tally
        });
        self.alive.store(false, Ordering::Release);
        tally
    }

    /// Events that came too late.
    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Acquire)
    }

    fn append(&self, what: What) {
        self.log.append(self.clock.wall(), what);
    }

    /// The log keeps the order of the events only if it is written under the same lock that decides about them.
    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl EventSink for TurnSink {
    fn emit(&self, event: Event) {
        if !self.alive.load(Ordering::Acquire) {
            self.late.fetch_add(1, Ordering::AcqRel);
            return;
        }
        self.with(|inner| {
            let now = self.clock.now();
            let before = match &event {
                Event::Call { call, .. } | Event::CallAbandoned { call } => inner.calls.complete(call, now),
                _ => None,
            };
            let event = match event {
                Event::CallStarted { call, name } => inner.calls.start(&call, &name),
                Event::CallProgress { call, input_bytes } => inner.calls.report(&call, input_bytes, now),
                Event::Retrying { .. } => {
                    inner.calls.retry();
                    Some(event)
                }
                Event::Usage(usage) => {
                    inner.tally.usage = usage;
                    Some(event)
                }
                other => Some(other),
            };
            for event in before.into_iter().chain(event) {
                self.append(What::Model(event));
            }
        });
    }

    fn next_block(&self) -> BlockId {
        BlockId(self.blocks.fetch_add(1, Ordering::AcqRel))
    }

    async fn ready(&self) {
        self.log.room().await;
    }
}

impl RunSink for TurnSink {
    fn record(&self, event: RunEvent) {
        self.with(|inner| {
            if let RunEvent::Ended { call, reply, .. } = &event {
                inner.calls.result(call);
                inner.tally.calls += 1;
                inner.tally.denied += u32::from(reply.status == ToolStatus::Denied);
            }
            self.append(What::Run(event));
        });
    }
}
