//! Plays the entries of a tape in order.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use capsule_api::{Bytes, Code, Error, Playback, Recorded, Request, RequestShape, Secrets, Tape, TapeEntry};

use crate::{
    codes,
    settings::Drift,
    shape::{calls, differences, other_input},
};

/// A tape and where it is.
pub(crate) struct Player {
    tape: Tape,
    /// Where the tape comes from, for messages.
    file: String,
    timed: bool,
    drift: Drift,
    /// What a recording does not show is not compared either.
    secrets: Arc<dyn Secrets>,
    at: Mutex<usize>,
}

impl Player {
    pub(crate) fn new(tape: Tape, file: String, timed: bool, drift: Drift, secrets: Arc<dyn Secrets>) -> Self {
        Self {
            tape,
            file,
            timed,
            drift,
            secrets,
            at: Mutex::new(0),
        }
    }
}

impl Playback for Player {
    fn remark(&self, request: &Request) -> Option<(&'static Code, String)> {
        let shape = self.shape(request);
        let at = self.position(*self.at.lock().unwrap_or_else(PoisonError::into_inner), &shape);
        let message = other_input(self.tape.entries.get(at)?.shape(), &shape)?;
        Some((&codes::OTHER_INPUT, message))
    }

    fn next(&self, request: &Request) -> Result<Recorded, Error> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let shape = self.shape(request);
        let entries = &self.tape.entries;
        *at = self.position(*at, &shape);
        let Some(entry) = entries.get(*at) else {
            let message = format!(
                "the tape {} has {} answers, and this is request {}",
                self.file,
                entries.len(),
                *at + 1
            );
            return Err(Error::new(&codes::EXHAUSTED, message));
        };
        let differences = differences(entry.shape(), &shape, &calls(request, self.secrets.as_ref()));
        // An answer to another conversation makes no sense in this one.
        let same_course = entry.shape().roles == shape.roles;
        if !(differences.is_empty() || same_course && self.drift == Drift::Ignore) {
            let message = format!(
                "model request {} of the run is not the one on the tape {}: {}",
                *at + 1,
                self.file,
                differences.join("\n")
            );
            let error = Error::new(&codes::DRIFT, message);
            return Err(if same_course {
                error
            } else {
                error.hint(codes::OTHER_COURSE)
            });
        }
        *at += 1;
        Ok(self.recorded(entry))
    }
}

impl Player {
    fn shape(&self, request: &Request) -> RequestShape {
        RequestShape::of(request).map_text(|text| self.secrets.redact(text).into_owned())
    }

    /// Where a request of this shape is played from, when the tape is at `at`. A new conversation plays the tape from its start, unless the
    /// tape goes on with one.
    fn position(&self, at: usize, shape: &RequestShape) -> usize {
        let entries = &self.tape.entries;
        let fits = |at: usize| entries.get(at).is_some_and(|entry| entry.shape().roles == shape.roles);
        if !fits(at) && fits(0) { 0 } else { at }
    }

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
