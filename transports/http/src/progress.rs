//! Whether an answer still goes on. Pure: it is told the time.

use std::time::{Duration, Instant};

use capsule_api::{Error, HumanDuration, Retry};

use crate::codes;

/// How many times the idle time-out a provider may send signs of life alone: pings, comments, events that are not known here.
const SIGNS_OF_LIFE: u32 = 10;

/// When an answer last went on. A provider that only shows that it lives is waited for longer than a silent one, but not for ever.
pub(crate) struct Progress {
    idle: Duration,
    size: usize,
    at: Instant,
}

impl Progress {
    pub(crate) fn new(idle: Duration, now: Instant) -> Self {
        Self { idle, size: 0, at: now }
    }

    pub(crate) fn grown_to(&mut self, size: usize, now: Instant) {
        if size > self.size {
            (self.size, self.at) = (size, now);
        }
    }

    /// How long the next bytes may take.
    ///
    /// # Errors
    /// The answer has not gone on for too long, whatever else came.
    pub(crate) fn wait(&self, now: Instant) -> Result<Duration, Error> {
        let longest = self.idle.saturating_mul(SIGNS_OF_LIFE);
        let left = longest.saturating_sub(now.saturating_duration_since(self.at));
        if left.is_zero() {
            return Err(silent("the provider sent nothing that belongs to its answer", longest));
        }
        Ok(self.idle.min(left))
    }
}

/// The error about a provider that kept `what` back for so long.
pub(crate) fn silent(what: &str, time: Duration) -> Error {
    let message = format!("{what} for {}", HumanDuration(time));
    Error::new(&codes::IDLE, message).retry(Retry::Later)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(60);

    #[test]
    fn signs_of_life_are_enough_for_ten_times_the_idle_time_out() {
        let start = Instant::now();
        let mut progress = Progress::new(IDLE, start);
        for (seconds, left) in [(0, 60), (59, 60), (540, 60), (570, 30), (599, 1)] {
            let now = start + Duration::from_secs(seconds);
            progress.grown_to(0, now);
            assert_eq!(progress.wait(now).unwrap(), Duration::from_secs(left), "{seconds}");
        }
        let error = progress.wait(start + 10 * IDLE).unwrap_err();
        assert_eq!((error.code, error.retry), ("http-idle", Retry::Later));
        assert_eq!(
            error.message,
            "the provider sent nothing that belongs to its answer for 10m"
        );
    }

    #[test]
    fn an_answer_that_grows_begins_the_time_anew_and_one_that_does_not_grow_does_not() {
        let start = Instant::now();
        let later = start + 9 * IDLE;
        let mut progress = Progress::new(IDLE, start);
        progress.grown_to(1, later);
        assert_eq!(progress.wait(later + 9 * IDLE).unwrap(), IDLE);
        progress.grown_to(1, later + 9 * IDLE);
        assert_eq!(progress.wait(later + 10 * IDLE).unwrap_err().code, "http-idle");
    }
}
