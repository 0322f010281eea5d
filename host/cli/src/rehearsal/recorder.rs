//! Collects the exchanges of a run.

use std::sync::{Mutex, MutexGuard, PoisonError};

use capsule_api::{Error, Recorder, Tape, TapeEntry};

use crate::failure::codes;

/// Holds at most what a tape may hold; after that it is full and keeps nothing more.
#[derive(Default)]
pub(crate) struct TapeRecorder(Mutex<Recorded>);

#[derive(Default)]
struct Recorded {
    entries: Vec<TapeEntry>,
    bytes: usize,
    full: bool,
}

impl TapeRecorder {
    /// What was recorded so far. The recorder is empty afterwards.
    ///
    /// # Errors
    /// `cli-tape-full`: there was more than a tape may hold, and a tape that misses its end would be taken for a whole one.
    pub(crate) fn take(&self, capsule: &str) -> Result<Tape, Error> {
        let recorded = std::mem::take(&mut *self.recorded());
        if recorded.full {
            let message = format!("the run is longer than a tape of {} MiB", Tape::MAX_BYTES >> 20);
            return Err(Error::new(&codes::TAPE_FULL, message));
        }
        Ok(Tape::new(capsule, recorded.entries))
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder for TapeRecorder {
    fn record(&self, entry: TapeEntry) {
        let mut recorded = self.recorded();
        recorded.bytes = recorded.bytes.saturating_add(entry.weight());
        recorded.full |= recorded.bytes > Tape::MAX_BYTES;
        if recorded.full {
            recorded.entries = Vec::new();
        } else {
            recorded.entries.push(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use capsule_api::{RequestShape, TapedStream};

    use super::*;

    fn entry(bytes: usize) -> TapeEntry {
        TapeEntry::Stream(TapedStream {
            request: RequestShape::default(),
            wire: "w".to_owned(),
            status: 200,
            chunks: vec![(0, "x".repeat(bytes))],
        })
    }

    #[test]
    fn more_than_a_tape_holds_is_an_error_and_takes_no_memory() {
        let recorder = TapeRecorder::default();
        recorder.record(entry(10));
        assert_eq!(recorder.take("a").unwrap(), Tape::new("a", vec![entry(10)]));
        recorder.record(entry(Tape::MAX_BYTES));
        recorder.record(entry(10));
        assert_eq!(recorder.recorded().entries.len(), 0);
        assert_eq!(recorder.take("a").unwrap_err().code, "cli-tape-full");
    }
}
