//! The calls that a model is writing: each started once, its progress at a bearable pace. Time is an argument everywhere.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use capsule_api::{CallId, Event};

/// At most one progress event per call in this time.
const INTERVAL: Duration = Duration::from_millis(250);

/// A call whose writing is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The call.
    pub call: CallId,
    /// The tool's declared name.
    pub name: String,
}

#[derive(Debug)]
struct Writing {
    call: CallId,
    name: String,
    largest: u64,
    written: u64,
    last: Option<Instant>,
}

/// Filters `CallStarted` and `CallProgress` of one task attempt (stream-events, rule 4). Holds one entry per call of the task.
#[derive(Debug, Default)]
pub struct CallTracker {
    /// In the order in which they started.
    writing: Vec<Writing>,
    settled: HashSet<CallId>,
}

impl CallTracker {
    /// The model begins to write a call. Accepted once per id; `None` for an empty id, one being written and one already settled.
    pub fn start(&mut self, call: &CallId, name: &str) -> Option<Event> {
        if call.as_str().is_empty()
            || self.settled.contains(call)
            || self.writing.iter().any(|writing| writing.call == *call)
        {
            return None;
        }
        let writing = Writing {
            call: call.clone(),
            name: name.to_owned(),
            largest: 0,
            written: 0,
            last: None,
        };
        self.writing.push(writing);
        Some(Event::CallStarted {
            call: call.clone(),
            name: name.to_owned(),
        })
    }

    /// So many bytes are written. Sizes that do not grow are ignored; others are passed on at once or held until the interval is over.
    pub fn report(&mut self, call: &CallId, bytes: u64, now: Instant) -> Option<Event> {
        let writing = self.writing.iter_mut().find(|writing| writing.call == *call)?;
        if bytes <= writing.largest {
            return None;
        }
        writing.largest = bytes;
        let due = writing
            .last
            .is_none_or(|last| now.saturating_duration_since(last) >= INTERVAL);
        due.then(|| writing.flush(now)).flatten()
    }

    /// The call is complete: its held size is passed on and nothing more is accepted for it. Also settles an id that never started.
    pub fn complete(&mut self, call: &CallId, now: Instant) -> Option<Event> {
        self.settled.insert(call.clone());
        let at = self.writing.iter().position(|writing| writing.call == *call)?;
        self.writing.remove(at).flush(now)
    }

    /// The call has a result: what is held for it is dropped.
    pub fn result(&mut self, call: &CallId) {
        self.settled.insert(call.clone());
        self.writing.retain(|writing| writing.call != *call);
    }

    /// Every call still being written is complete, in the order in which they started.
    pub fn settle_all(&mut self, now: Instant) -> (Vec<Event>, Vec<Settled>) {
        let mut events = Vec::new();
        let mut settled = Vec::new();
        for mut writing in self.writing.drain(..) {
            events.extend(writing.flush(now));
            self.settled.insert(writing.call.clone());
            settled.push(Settled {
                call: writing.call,
                name: writing.name,
            });
        }
        (events, settled)
    }

    /// The model request is made again: calls that were being written never were, and the same ids may start anew.
    pub fn retry(&mut self) {
        self.writing.clear();
    }
}

impl Writing {
    fn flush(&mut self, now: Instant) -> Option<Event> {
        if self.largest == self.written {
            return None;
        }
        self.written = self.largest;
        self.last = Some(now);
        Some(Event::CallProgress {
            call: self.call.clone(),
            input_bytes: self.written,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> CallId {
        CallId::new(text)
    }

    fn progress(call: &str, input_bytes: u64) -> Option<Event> {
        Some(Event::CallProgress {
            call: id(call),
            input_bytes,
        })
    }

    #[test]
    fn a_call_starts_once_and_an_empty_id_never() {
        let mut calls = CallTracker::default();
        let started = Event::CallStarted {
            call: id("a"),
            name: "read".into(),
        };
        assert_eq!(calls.start(&id("a"), "read"), Some(started));
        assert_eq!(calls.start(&id("a"), "read"), None);
        assert_eq!(calls.start(&id(""), "read"), None);
        calls.complete(&id("a"), Instant::now());
        assert_eq!(calls.start(&id("a"), "read"), None);
    }

    #[test]
    fn progress_is_paced_and_the_held_size_comes_with_the_end() {
        let mut calls = CallTracker::default();
        let t0 = Instant::now();
        let at = |ms| t0 + Duration::from_millis(ms);
        assert_eq!(calls.report(&id("a"), 5, t0), None);
        calls.start(&id("a"), "read");
        assert_eq!(calls.report(&id("a"), 0, at(0)), None);
        assert_eq!(calls.report(&id("a"), 10, at(0)), progress("a", 10));
        assert_eq!(calls.report(&id("a"), 20, at(100)), None);
        assert_eq!(calls.report(&id("a"), 15, at(300)), None);
        assert_eq!(calls.report(&id("a"), 30, at(300)), progress("a", 30));
        assert_eq!(calls.report(&id("a"), 40, at(301)), None);
        assert_eq!(calls.complete(&id("a"), at(302)), progress("a", 40));
        assert_eq!(calls.report(&id("a"), 50, at(900)), None);
        assert_eq!(calls.complete(&id("a"), at(901)), None);
    }

    #[test]
    fn settling_all_names_the_calls_in_the_order_they_started() {
        let mut calls = CallTracker::default();
        let t0 = Instant::now();
        for (call, name) in [("b", "two"), ("a", "one"), ("c", "three")] {
            calls.start(&id(call), name);
            calls.report(&id(call), 1, t0);
        }
        calls.report(&id("a"), 9, t0);
        calls.result(&id("c"));
        let (events, settled) = calls.settle_all(t0);
        assert_eq!(events, [progress("a", 9).unwrap()]);
        let named = |call: &str, name: &str| Settled {
            call: id(call),
            name: name.into(),
        };
        assert_eq!(settled, [named("b", "two"), named("a", "one")]);
    }

    #[test]
    fn a_call_that_completed_without_starting_is_settled_all_the_same() {
        let mut calls = CallTracker::default();
        assert_eq!(calls.complete(&id("a"), Instant::now()), None);
        assert_eq!(calls.start(&id("a"), "read"), None);
    }

    #[test]
    fn a_retried_request_may_start_the_same_ids_again() {
        let mut calls = CallTracker::default();
        calls.start(&id("a"), "read");
        calls.retry();
        assert!(calls.start(&id("a"), "read").is_some());
    }
}
