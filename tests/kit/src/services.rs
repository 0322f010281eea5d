//! Services for tests: a clock that the test owns, and stand-ins for what must not be used.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use async_trait::async_trait;
use capsule_api::{Bytes, Clock, Code, Error, ErrorKind, HttpBody, HttpClient, Secret, Secrets, Services, http};
use tokio::sync::watch;

/// A clock that stands still until the test moves it. Cheap to clone; all clones are the same clock.
#[derive(Clone, Debug)]
pub struct ManualClock {
    started: (Instant, SystemTime),
    state: Arc<watch::Sender<State>>,
}

#[derive(Debug, Default)]
struct State {
    elapsed: Duration,
    next: u64,
    /// When each sleeper that is not yet due wants to wake up.
    sleepers: BTreeMap<u64, Duration>,
}

impl ManualClock {
    /// A clock at its start. Its time of day starts at the Unix epoch, so that records compare as whole values.
    pub fn new() -> Self {
        Self {
            started: (Instant::now(), SystemTime::UNIX_EPOCH),
            state: Arc::new(watch::Sender::new(State::default())),
        }
    }

    /// Moves time forward and wakes whoever is due.
    pub fn advance(&self, by: Duration) {
        self.state.send_modify(|state| {
            state.elapsed += by;
            let now = state.elapsed;
            state.sleepers.retain(|_, due| *due > now);
        });
    }

    /// How far the clock was moved.
    pub fn elapsed(&self) -> Duration {
        self.state.borrow().elapsed
    }

    /// Waits until at least `count` sleeps are under way, so that a test advances the clock only when its subject waits for it.
    pub async fn sleepers(&self, count: usize) {
        let mut state = self.state.subscribe();
        let waiting = state.wait_for(|state| state.sleepers.len() >= count);
        waiting.await.expect("`self` keeps the sender");
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

/// Takes a dropped sleep out of the count.
struct Sleeper<'a>(&'a ManualClock, u64);

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.0
            .state
            .send_if_modified(|state| state.sleepers.remove(&self.1).is_some());
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.started.0 + self.elapsed()
    }

    fn wall(&self) -> SystemTime {
        self.started.1 + self.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        if duration.is_zero() {
            return;
        }
        let mut state = self.state.subscribe();
        let (mut id, mut due) = (0, Duration::ZERO);
        self.state.send_modify(|state| {
            (id, due) = (state.next, state.elapsed + duration);
            state.next += 1;
            state.sleepers.insert(id, due);
        });
        let _sleeper = Sleeper(self, id);
        let waiting = state.wait_for(|state| state.elapsed >= due);
        waiting.await.expect("`self` keeps the sender");
    }
}

/// Resolves no name and knows no secret: a text with `${` in it is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSecrets;

const NO_SECRETS: Code = Code {
    id: "kit-no-secrets",
    kind: ErrorKind::Settings,
    meaning: "A test without secrets was asked for one.",
    remedy: "Write the value into the fixture's settings, or give the stage services of its own.",
};

const NO_HTTP: Code = Code {
    id: "kit-no-http",
    kind: ErrorKind::Network,
    meaning: "A test without a network was asked for a connection.",
    remedy: "Give the stage services of its own.",
};

impl Secrets for NoSecrets {
    fn expand(&self, text: &str) -> Result<String, Error> {
        if text.contains("${") {
            return Err(Error::new(&NO_SECRETS, "this test has no `${NAME}` to expand"));
        }
        Ok(text.to_owned())
    }

    fn protect(&self, _: &Secret) {}

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }
}

/// Refuses every request.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHttp;

#[async_trait]
impl HttpClient for NoHttp {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Box<dyn HttpBody>>, Error> {
        let message = format!("this test has no network, but {} was asked for", request.uri());
        Err(Error::new(&NO_HTTP, message))
    }
}

/// Services with this clock, [`NoSecrets`] and [`NoHttp`].
pub fn services(clock: impl Clock + 'static) -> Services {
    Services::new(Arc::new(clock), Arc::new(NoSecrets), Arc::new(NoHttp))
}

#[cfg(test)]
mod tests {
    use super::*;
    use capsule_api::timeout;

    #[tokio::test]
    async fn a_sleep_ends_when_the_test_says_so_and_not_before() {
        let clock = ManualClock::new();
        let sleeping = tokio::spawn({
            let clock = clock.clone();
            async move {
                clock.sleep(Duration::from_secs(10)).await;
                clock.elapsed()
            }
        });
        clock.sleepers(1).await;
        clock.advance(Duration::from_secs(9));
        clock.sleepers(1).await;
        clock.advance(Duration::from_secs(1));
        assert_eq!(sleeping.await.unwrap(), Duration::from_secs(10));
    }

    #[tokio::test]
    async fn a_dropped_sleep_no_longer_counts() {
        let clock = ManualClock::new();
        let work = clock.sleepers(1);
        assert_eq!(timeout(&clock, Duration::from_secs(1), work).await, Ok(()));
        assert!(clock.state.borrow().sleepers.is_empty());
    }
}
