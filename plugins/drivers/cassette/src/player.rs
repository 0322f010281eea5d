//! Plays the entries of a tape in order.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use capsule_api::{Bytes, Error, Playback, Recorded, Request, RequestShape, Secrets, Tape, TapeEntry};

use crate::{codes, settings::Drift, shape::differences};

/// A tape and where it is.
pub(crate) struct Player {
    tape: Tape,
    timed: bool,
    drift: Drift,
    /// What a recording does not show is not compared either.
    secrets: Arc<dyn Secrets>,
    at: Mutex<usize>,
}

impl Player {
    pub(crate) fn new(tape: Tape, timed: bool, drift: Drift, secrets: Arc<dyn Secrets>) -> Self {
        Self {
            tape,
            timed,
            drift,
            secrets,
            at: Mutex::new(0),
        }
    }
}

impl Playback for Player {
    fn next(&self, request: &Request) -> Result<Recorded, Error> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let shape = RequestShape::of(request).map_text(|text| self.secrets.redact(text).into_owned());
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
        let differences = differences(entry.shape(), &shape);
        // An answer to another conversation makes no sense in this one.
        let playable = entry.shape().roles == shape.roles && self.drift == Drift::Ignore;
        if !differences.is_empty() && !playable {
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
    fn recorded(&self, entry: &TapeEntry) -> Recorded {
        match entry {
            TapeEntry::Response(entry) => Recorded::Response(entry.response.clone()),
            TapeEntry::Stream(entry) => {
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
