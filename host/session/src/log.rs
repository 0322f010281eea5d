//! The event log of one task: numbered, bounded, read by any number of readers at their own pace.
//!
//! A writer never waits. Readers that must not lose anything ([`TaskLog::reader`]) hold back the *transport*, which awaits
//! [`TaskLog::room`] before it reads more from its peer. A writer that does not heed it overruns them: the oldest entries go, and the reader
//! is told how many it missed.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use capsule_api::{Error, Event, Input, Outcome, Residue, RunEvent};
use tokio::sync::{Notify, watch};

use crate::TaskState;

/// Entries kept at most.
const MAX_ENTRIES: usize = 8_192;
/// Bytes of text kept at most, beyond the newest entry.
const MAX_BYTES: usize = 16 << 20;

/// How a run began.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStart {
    /// The capsule's name and version.
    pub capsule: (String, String),
    /// The transport's name.
    pub transport: &'static str,
    /// In words, how it was chosen, where the capsule left that to the host.
    pub chosen_by: Option<String>,
    /// The kept context, if there is one.
    pub context: Option<String>,
    /// The task.
    pub input: Input,
}

/// What an entry says.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum What {
    /// First entry of a run.
    RunStart(RunStart),
    /// The task's state changed.
    State(TaskState),
    /// What the model did.
    Model(Event),
    /// What ran.
    Run(RunEvent),
    /// Last entry of a run.
    RunEnd {
        /// How the turn ended.
        outcome: Result<Outcome, Error>,
        /// What it left behind.
        residue: Residue,
        /// Events that came after the turn and were dropped.
        late: u64,
    },
}

/// One entry of the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Counted from 1 within the epoch, without gaps.
    pub seq: u64,
    /// Time of day.
    pub at: SystemTime,
    /// What happened.
    pub what: What,
}

/// What a reader gets.
#[derive(Clone, Debug)]
pub enum Read {
    /// The next entry.
    Entry(Arc<Entry>),
    /// So many entries are gone for this reader.
    Missed(u64),
}

/// The log of one task.
#[derive(Debug)]
pub struct TaskLog {
    task: String,
    epoch: u64,
    ring: Mutex<Ring>,
    head: watch::Sender<Head>,
    room: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
struct Head {
    next: u64,
    closed: bool,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<Arc<Entry>>,
    bytes: usize,
    next: u64,
    /// Cursors of the readers that hold the transport back.
    cursors: Vec<Weak<AtomicU64>>,
}

impl TaskLog {
    /// An empty log. `epoch` tells logs of the same task in different processes apart.
    pub fn new(task: impl Into<String>, epoch: u64) -> Arc<Self> {
        let ring = Mutex::new(Ring {
            next: 1,
            ..Ring::default()
        });
        let (head, _) = watch::channel(Head { next: 1, closed: false });
        Arc::new(Self {
            task: task.into(),
            epoch,
            ring,
            head,
            room: Notify::new(),
        })
    }

    /// The task's id.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// The log's epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Appends an entry and wakes the readers. Never waits.
    pub fn append(&self, at: SystemTime, what: What) {
        let mut ring = self.ring();
        let seq = ring.next;
        ring.next += 1;
        ring.bytes += weight(&what);
        ring.entries.push_back(Arc::new(Entry { seq, at, what }));
        while ring.entries.len() > MAX_ENTRIES || (ring.bytes > MAX_BYTES && ring.entries.len() > 1) {
            let Some(gone) = ring.entries.pop_front() else { break };
            ring.bytes -= weight(&gone.what);
        }
        drop(ring);
        self.head.send_modify(|head| head.next = seq + 1);
    }

    /// No more entries will come; readers end when they have read what there is.
    pub fn close(&self) {
        self.head.send_modify(|head| head.closed = true);
    }

    /// A reader from the oldest kept entry on, for which the transport is held back.
    pub fn reader(self: &Arc<Self>) -> Reader {
        let mut ring = self.ring();
        let first = ring.entries.front().map_or(ring.next, |entry| entry.seq);
        let cursor = Arc::new(AtomicU64::new(first));
        ring.cursors.push(Arc::downgrade(&cursor));
        drop(ring);
        Reader {
            log: self.clone(),
            head: self.head.subscribe(),
            cursor,
        }
    }

    /// Waits until every reader is less than half the log behind. Cancel-safe.
    pub async fn room(&self) {
        loop {
            let notified = self.room.notified();
            tokio::pin!(notified);
            // Registered before the look, so that a reader that moves in between is not missed.
            notified.as_mut().enable();
            if self.has_room() {
                return;
            }
            notified.await;
        }
    }

    fn has_room(&self) -> bool {
        let mut ring = self.ring();
        ring.cursors.retain(|cursor| cursor.strong_count() > 0);
        let slowest = ring
            .cursors
            .iter()
            .filter_map(Weak::upgrade)
            .map(|cursor| cursor.load(Ordering::Acquire))
            .min();
        let Some(slowest) = slowest else { return true };
        let unread = ring.entries.iter().rev().take_while(|entry| entry.seq >= slowest);
        let (count, bytes) = unread.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + weight(&entry.what)));
        count < MAX_ENTRIES / 2 && bytes < MAX_BYTES / 2
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // Every change of the ring leaves it consistent, so a panic elsewhere does not spoil it.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a log in order.
#[derive(Debug)]
pub struct Reader {
    log: Arc<TaskLog>,
    head: watch::Receiver<Head>,
    cursor: Arc<AtomicU64>,
}

impl Reader {
    /// The next entry, or how many were missed; `None` when the log is closed and read to its end. Cancel-safe.
    pub async fn next(&mut self) -> Option<Read> {
        loop {
            let head = *self.head.borrow_and_update();
            let at = self.cursor.load(Ordering::Acquire);
            if at < head.next {
                return Some(self.take(at));
            }
            if head.closed || self.head.changed().await.is_err() {
                return None;
            }
        }
    }

    /// What `next` would give at once; `None` where it would wait or end.
    pub fn try_next(&mut self) -> Option<Read> {
        let at = self.cursor.load(Ordering::Acquire);
        let head = self.log.ring().next;
        (at < head).then(|| self.take(at))
    }

    fn take(&self, at: u64) -> Read {
        let ring = self.log.ring();
        let first = ring.entries.front().map_or(ring.next, |entry| entry.seq);
        let (read, next) = if at < first {
            (Read::Missed(first - at), first)
        } else {
            let offset = usize::try_from(at - first).expect("an offset into a deque fits its index type");
            (Read::Entry(ring.entries[offset].clone()), at + 1)
        };
        drop(ring);
        self.cursor.store(next, Ordering::Release);
        self.log.room.notify_waiters();
        read
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A reader that is gone must not hold anybody back; its cursor counts until the last handle is dropped, which is this one.
        self.cursor.store(u64::MAX, Ordering::Release);
        self.log.room.notify_waiters();
    }
}

/// Roughly the bytes that an entry holds.
fn weight(what: &What) -> usize {
    let text = match what {
        What::Model(Event::Delta { text, .. } | Event::Block { text, .. }) => text.len(),
        What::Model(Event::Call { arguments, .. }) => json_weight(arguments),
        What::Run(RunEvent::Started { arguments, .. }) => json_weight(arguments),
        What::Run(RunEvent::Chunk { text, .. }) => text.len(),
        What::Run(RunEvent::Ended { reply, .. }) => reply.content.iter().map(content_weight).sum(),
        _ => 0,
    };
    text + 128
}

fn content_weight(content: &capsule_api::Content) -> usize {
    match content {
        capsule_api::Content::Text(text) => text.len(),
        capsule_api::Content::Image { data, .. } | capsule_api::Content::Audio { data, .. } => data.len(),
        capsule_api::Content::Resource(value) => json_weight(value),
        _ => 0,
    }
}

fn json_weight(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::String(text) => text.len() + 16,
        Value::Array(items) => items.iter().map(json_weight).sum::<usize>() + 16,
        Value::Object(map) => {
            map.iter()
                .map(|(key, value)| key.len() + json_weight(value))
                .sum::<usize>()
                + 16
        }
        _ => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capsule_api::{BlockId, BlockKind};
    use futures_util::FutureExt;

    fn delta(text: &str) -> What {
        What::Model(Event::Delta {
            block: BlockId(0),
            kind: BlockKind::Text,
            text: text.into(),
        })
    }

    fn text_of(read: Read) -> String {
        match read {
            Read::Entry(entry) => match &entry.what {
                What::Model(Event::Delta { text, .. }) => format!("{}:{text}", entry.seq),
                other => panic!("unexpected {other:?}"),
            },
            Read::Missed(n) => format!("missed {n}"),
        }
    }

    #[tokio::test]
    async fn every_reader_gets_every_entry_in_order_and_then_the_end() {
        let log = TaskLog::new("t", 1);
        let (mut early, now) = (log.reader(), SystemTime::UNIX_EPOCH);
        log.append(now, delta("a"));
        log.append(now, delta("b"));
        let mut late = log.reader();
        log.close();
        for reader in [&mut early, &mut late] {
            assert_eq!(text_of(reader.next().await.unwrap()), "1:a");
            assert_eq!(text_of(reader.next().await.unwrap()), "2:b");
            assert!(reader.next().await.is_none());
        }
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_woken_by_the_next_entry() {
        let log = TaskLog::new("t", 1);
        let mut reader = log.reader();
        let waiting = tokio::spawn(async move { text_of(reader.next().await.unwrap()) });
        tokio::task::yield_now().await;
        log.append(SystemTime::UNIX_EPOCH, delta("a"));
        assert_eq!(waiting.await.unwrap(), "1:a");
    }

    #[tokio::test]
    async fn an_overrun_reader_is_told_how_many_it_missed() {
        let log = TaskLog::new("t", 1);
        let mut reader = log.reader();
        for n in 0..MAX_ENTRIES + 3 {
            log.append(SystemTime::UNIX_EPOCH, delta(&n.to_string()));
        }
        assert_eq!(text_of(reader.next().await.unwrap()), "missed 3");
        assert_eq!(text_of(reader.next().await.unwrap()), "4:3");
    }

    #[tokio::test]
    async fn a_slow_reader_holds_the_transport_back_until_it_reads_or_leaves() {
        let log = TaskLog::new("t", 1);
        let mut reader = log.reader();
        for _ in 0..MAX_ENTRIES / 2 {
            log.append(SystemTime::UNIX_EPOCH, delta("x"));
        }
        assert_eq!(log.room().now_or_never(), None);
        reader.next().await;
        assert_eq!(log.room().now_or_never(), Some(()));
        log.append(SystemTime::UNIX_EPOCH, delta("x"));
        assert_eq!(log.room().now_or_never(), None);
        drop(reader);
        assert_eq!(log.room().now_or_never(), Some(()));
    }

    #[tokio::test]
    async fn large_entries_are_bounded_by_bytes() {
        let log = TaskLog::new("t", 1);
        let mut reader = log.reader();
        for _ in 0..3 {
            log.append(SystemTime::UNIX_EPOCH, delta(&"x".repeat(MAX_BYTES / 2)));
        }
        assert_eq!(text_of(reader.next().await.unwrap()), "missed 2");
    }
}
