//! What the host lends a plugin: all I/O that a policy governs goes through here.

use std::{
    borrow::Cow,
    fmt,
    future::Future,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};

use crate::{Components, Error, Recorder};

/// Lent to [`crate::TransportDescriptor::build`] and [`crate::DriverDescriptor::build`]. Cheap to clone.
#[derive(Clone)]
#[non_exhaustive]
pub struct Services {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// `${NAME}` and redaction.
    pub secrets: Arc<dyn Secrets>,
    /// Outgoing HTTP under the host's address policy.
    pub http: Arc<dyn HttpClient>,
    /// Takes every exchange with a model, where a transport owns its loop and the run is recorded.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// Runs drivers that are components; `None` where the host has no sandbox.
    pub components: Option<Arc<dyn Components>>,
}

impl Services {
    /// The services of a process.
    pub fn new(clock: Arc<dyn Clock>, secrets: Arc<dyn Secrets>, http: Arc<dyn HttpClient>) -> Self {
        Self {
            clock,
            secrets,
            http,
            recorder: None,
            components: None,
        }
    }

    /// The same, recorded.
    #[must_use]
    pub fn recorded_by(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// The same with a sandbox for drivers that are components.
    #[must_use]
    pub fn with_components(mut self, components: Arc<dyn Components>) -> Self {
        self.components = Some(components);
        self
    }
}

/// Time, so that tests own it. (A runtime's paused clock and real sockets do not go together: its time-outs fire at once.)
#[async_trait]
pub trait Clock: Send + Sync {
    /// Monotonic time.
    fn now(&self) -> Instant;
    /// Time of day, for records.
    fn wall(&self) -> SystemTime;
    /// Sleeps. Cancel-safe.
    async fn sleep(&self, duration: Duration);
}

/// The real clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// [`timeout`] gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

/// Waits for `work`, but no longer than `limit` on this clock. The work is dropped when time is up; it goes first in a tie.
pub async fn timeout<T>(clock: &dyn Clock, limit: Duration, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    tokio::select! {
        biased;
        value = work => Ok(value),
        () = clock.sleep(limit) => Err(Elapsed),
    }
}

/// A value that must not be seen. `Debug` and `Display` say `[redacted]`; there is no `Serialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a value in.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value itself: for the header, environment variable or file it belongs in, nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// Resolves `${NAME}` and keeps what must not be shown.
pub trait Secrets: Send + Sync {
    /// Expands `${NAME}` and `${NAME:-default}` in `text`, once; `$${` stands for `${`. Names come from the environment, else from the
    /// `.env` file beside the manifest. Fails for an unset name without a default.
    fn expand(&self, text: &str) -> Result<String, Error>;

    /// Remembers a value, so that [`Secrets::redact`] finds it from now on.
    fn protect(&self, secret: &Secret);

    /// `text` with every protected value replaced by `[redacted]`.
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

/// Outgoing HTTP. The host's address policy applies: https, or http on loopback; the resolved address is checked; redirects are
/// returned, not followed.
#[async_trait]
pub trait HttpClient: Send + Sync {
    /// Sends a request and waits for the head of the response. Headers that hold a secret are marked sensitive.
    ///
    /// Time-outs are the caller's. Dropping the future closes the connection.
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Box<dyn HttpBody>>, Error>;
}

/// A response body that arrives in pieces. Dropping it closes the connection.
#[async_trait]
pub trait HttpBody: Send {
    /// The next piece, as it came from the wire; `None` at a clean end. Cancel-safe.
    async fn chunk(&mut self) -> Result<Option<Bytes>, Error>;
}

impl fmt::Debug for dyn HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpBody")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nothing() {
        let secret = Secret::new("sk-very-secret");
        assert_eq!(
            format!("{secret} {secret:?} {:?}", Some(&secret)),
            "[redacted] [redacted] Some([redacted])"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_is_ready_wins_over_a_time_out_of_zero() {
        assert_eq!(timeout(&SystemClock, Duration::ZERO, async { 7 }).await, Ok(7));
        assert_eq!(
            timeout(&SystemClock, Duration::from_secs(600), std::future::pending::<()>()).await,
            Err(Elapsed)
        );
    }
}
