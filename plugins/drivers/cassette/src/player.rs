//! Plays the entries of a tape in order.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use capsule_api::{Bytes, Error, Playback, Recorded, Request};

use crate::{
    codes,
    shape::Shape,
    tape::{Entry, Tape},
};

/// A tape and where it is.
pub(crate) struct Player {
    tape: Tape,
    timed: bool,
    at: Mutex<usize>,
}

impl Player {
    pub(crate) fn new(tape: Tape, timed: bool) -> Self {
        Self {
            tape,
            timed,
            at: Mutex::new(0),
        }
    }
}

impl Playback for Player {
    fn next(&self, request: &Request) -> Result<Recorded, Error> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let shape = Shape::of(request);
        let entries = &self.tape.entries;
        // A new conversation plays the tape from its start, unless the tape goes on with one.
        let fits = |at: usize| entries.get(at).is_some_and(|entry| entry.shape().roles == shape.roles);
        if !fits(*at) && fits(0) {
            *at = 0;
        }
        let Some(entry) = entries.get(*at) else {
            let message = format!(
                "the tape has {} answers, and this is request {}",
                entries.len(),
                *at + 1
            );
            return Err(Error::new(&codes::EXHAUSTED, message));
        };
        let differences = entry.shape().differences(&shape);
        if !differences.is_empty() {
            let message = format!(
                "model request {} of the run is not the one on the tape: {}",
                *at + 1,
                differences.join("\n")
            );
            return Err(Error::new(&codes::DRIFT, message));
        }
        *at += 1;
        Ok(self.recorded(entry))
    }
}

impl Player {
    fn recorded(&self, entry: &Entry) -> Recorded {
        match entry {
            Entry::Response(entry) => Recorded::Response(entry.response.clone()),
            Entry::Stream(entry) => {
                let chunks = entry.chunks.iter();
                let chunks = chunks.map(|(ms, text)| (Duration::from_millis(*ms), Bytes::from(text.clone())));
                Recorded::Stream {
                    wire: entry.wire.clone(),
                    status: entry.status,
                    chunks: chunks.collect(),
                    timed: self.timed,
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "player_tests.rs"]
mod tests;
