//! What happened during one call, kept outside its store: whoever ends the call early can still read it.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use capsule_api::{ByteSize, Clock};
use tokio::sync::watch;

/// Bytes of standard error that are kept: the last ones.
const STDERR_TAIL: usize = 8 << 10;

/// A limit that refused something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitHit {
    Memory(u64),
    Tables(usize),
    Output(u64),
    HttpBody(u64),
    Instances(u32),
    Handles(usize),
}

impl fmt::Display for LimitHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(limit) => write!(f, "the memory limit of {} (`limits.memory`)", ByteSize(*limit)),
            Self::Tables(limit) => write!(f, "the limit of {limit} table elements (`limits.table_elements`)"),
            Self::HttpBody(limit) => write!(
                f,
                "the limit of {} on an HTTP body (`limits.http_body`)",
                ByteSize(*limit)
            ),
            Self::Handles(limit) => write!(
                f,
                "the limit of {limit} handles of host resources (files, streams, requests)"
            ),
            Self::Instances(limit) => write!(f, "the limit of {limit} core instances (`limits.instances`)"),
            Self::Output(limit) => write!(
                f,
                "the limit of {} on standard output (`limits.output`)",
                ByteSize(*limit)
            ),
        }
    }
}

/// How long a call has waited for the caller.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    /// Since when it waits, if it does now.
    pub(super) since: Option<Instant>,
    /// All that it waited before.
    pub(super) before: Duration,
}

/// Facts of one call.
pub(super) struct CallRecord {
    limit: OnceLock<LimitHit>,
    denied: OnceLock<String>,
    stderr: Mutex<VecDeque<u8>>,
    stdout: AtomicU64,
    /// Standard output of a command: its result. Bounded by the limit that the stream counts against.
    printed: Mutex<Vec<u8>>,
    streamed: AtomicU64,
    clock: Arc<dyn Clock>,
    waiting: watch::Sender<Waiting>,
    /// Whether the call may still be heard of: a guest that is being ended computes on until its next yield.
    over: Mutex<bool>,
}

impl CallRecord {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            limit: OnceLock::new(),
            denied: OnceLock::new(),
            stderr: Mutex::default(),
            stdout: AtomicU64::new(0),
            printed: Mutex::default(),
            streamed: AtomicU64::new(0),
            waiting: watch::Sender::new(Waiting::default()),
            over: Mutex::new(false),
        }
    }

    /// Remembers the first limit that refused something.
    pub(super) fn hit(&self, limit: LimitHit) {
        let _ = self.limit.set(limit);
    }

    pub(super) fn limit(&self) -> Option<LimitHit> {
        self.limit.get().copied()
    }

    /// Remembers the first thing that was denied: a sentence that says what, why, and what would grant it.
    pub(super) fn deny(&self, what: String) {
        let _ = self.denied.set(what);
    }

    pub(super) fn denied(&self) -> Option<&str> {
        self.denied.get().map(String::as_str)
    }

    pub(super) fn stderr(&self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(STDERR_TAIL)..];
        let mut tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let excess = (tail.len() + bytes.len()).saturating_sub(STDERR_TAIL);
        tail.drain(..excess);
        tail.extend(bytes);
    }

    /// The tail of standard error as text, without white space around it.
    pub(super) fn stderr_tail(&self) -> String {
        let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// Counts bytes on standard output; answers the sum.
    pub(super) fn stdout(&self, bytes: usize) -> u64 {
        add(&self.stdout, bytes)
    }

    /// Keeps bytes of standard output.
    pub(super) fn print(&self, bytes: &[u8]) {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.extend_from_slice(bytes);
    }

    /// The standard output that was kept, as text.
    pub(super) fn printed(&self) -> String {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&printed).into_owned()
    }

    /// Counts bytes of streamed text; answers the sum before and after.
    pub(super) fn streamed(&self, bytes: usize) -> (u64, u64) {
        let after = add(&self.streamed, bytes);
        (after - bytes as u64, after)
    }

    /// Reports something, unless the call is over. What it does must not block.
    pub(super) fn report(&self, report: impl FnOnce()) {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        if !*over {
            report();
        }
    }

    /// From now on, nothing is reported.
    pub(super) fn close(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Says whether the call waits for the caller: its deadline stops meanwhile.
    pub(super) fn set_waiting(&self, waiting: bool) {
        let now = self.clock.now();
        self.waiting.send_modify(|state| {
            let since = state.since.take().unwrap_or(now);
            match waiting {
                true => state.since = Some(since),
                false => state.before += now.saturating_duration_since(since),
            }
        });
    }

    pub(super) fn waiting(&self) -> watch::Receiver<Waiting> {
        self.waiting.subscribe()
    }
}

fn add(counter: &AtomicU64, bytes: usize) -> u64 {
    counter.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_heard_of_a_call_that_is_over() {
        let (record, mut heard) = (CallRecord::new(Arc::new(capsule_api::SystemClock)), 0);
        record.report(|| heard += 1);
        record.close();
        record.report(|| heard += 1);
        assert_eq!(heard, 1);
    }

    #[test]
    fn the_end_of_standard_error_is_kept() {
        let record = CallRecord::new(Arc::new(capsule_api::SystemClock));
        record.stderr(&[b'x'; STDERR_TAIL]);
        record.stderr(b"the reason\n");
        let tail = record.stderr_tail();
        assert!(tail.ends_with("xthe reason"), "{tail}");
        assert_eq!(tail.len(), STDERR_TAIL - 1);
        record.stderr(&[b'y'; 3 * STDERR_TAIL]);
        assert_eq!(record.stderr_tail(), "y".repeat(STDERR_TAIL));
    }
}
