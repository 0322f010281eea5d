//! The log of one turn, as tests read it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use async_trait::async_trait;
use capsule_api::{BlockId, Event, EventSink, Fold, RunEvent, RunSink};
use tokio::sync::watch;

/// Events kept at most; later ones are counted as `lost`, so that a transport that never stops does not take the test's memory.
const CAPACITY: usize = 10_000;

/// One entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// What the model did, as the transport says.
    Model(Event),
    /// What ran, as the dispatch says.
    Run(RunEvent),
}

/// Records a turn: the transport's events and the dispatch's, in one order.
#[derive(Debug)]
pub struct Recorder {
    log: watch::Sender<Vec<Entry>>,
    blocks: AtomicU32,
    closed: AtomicBool,
    late: AtomicUsize,
    lost: AtomicUsize,
    room: watch::Sender<bool>,
}

impl Recorder {
    /// A log that always has room.
    pub fn new() -> Self {
        Self {
            log: watch::Sender::new(Vec::new()),
            blocks: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            late: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            room: watch::Sender::new(true),
        }
    }

    /// From now on [`EventSink::ready`] waits, as it does for a reader that has stopped; until it is called with `false`.
    pub fn stall(&self, stalled: bool) {
        self.room.send_replace(!stalled);
    }

    /// Ends the turn: whatever comes later is counted, not recorded.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Events that came after the end.
    pub fn late(&self) -> usize {
        self.late.load(Ordering::SeqCst)
    }

    /// Events that were too many to keep.
    pub fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }

    /// Everything so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.log.borrow().clone()
    }

    /// The transport's events so far.
    pub fn events(&self) -> Vec<Event> {
        let log = self.log.borrow();
        let events = log.iter().filter_map(|entry| match entry {
            Entry::Model(event) => Some(event.clone()),
            Entry::Run(_) => None,
        });
        events.collect()
    }

    /// The fold of everything so far.
    pub fn fold(&self) -> Fold {
        let mut fold = Fold::default();
        for entry in self.log.borrow().iter() {
            match entry {
                Entry::Model(event) => fold.event(event),
                Entry::Run(event) => fold.run(event),
            }
        }
        fold
    }

    /// Waits until an entry like this was recorded. Cancel-safe.
    pub async fn wait_for(&self, wanted: impl Fn(&Entry) -> bool) {
        let mut log = self.log.subscribe();
        let waiting = log.wait_for(|log| log.iter().any(&wanted));
        waiting.await.expect("`self` keeps the sender");
    }

    fn push(&self, entry: Entry) {
        if self.closed.load(Ordering::SeqCst) {
            self.late.fetch_add(1, Ordering::SeqCst);
        } else if self.log.borrow().len() >= CAPACITY {
            self.lost.fetch_add(1, Ordering::SeqCst);
        } else {
            self.log.send_modify(|log| log.push(entry));
        }
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl EventSink for Recorder {
    fn emit(&self, event: Event) {
        self.push(Entry::Model(event));
    }

    fn next_block(&self) -> BlockId {
        BlockId(self.blocks.fetch_add(1, Ordering::SeqCst))
    }

    async fn ready(&self) {
        let mut room = self.room.subscribe();
        room.wait_for(|room| *room).await.expect("`self` keeps the sender");
    }
}

impl RunSink for Recorder {
    fn record(&self, event: RunEvent) {
        self.push(Entry::Run(event));
    }
}
