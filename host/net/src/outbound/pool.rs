//! Connections kept for the next request to the same origin.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use tokio::task::JoinHandle;

use super::address::Origin;

/// An open connection. Dropping it closes it.
pub(super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    /// Held so that the connection ends with this.
    pub(super) _driver: Driver,
}

/// The task that moves a connection's bytes; ends with its owner.
pub(super) struct Driver(pub(super) JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

const PER_ORIGIN: usize = 4;
const ORIGINS: usize = 16;
const LONGEST_IDLE: Duration = Duration::from_secs(30);

/// Idle connections: at most 4 for each of at most 16 origins, for at most 30 s. One more than that is closed instead of kept.
#[derive(Default)]
pub(super) struct Pool(Mutex<HashMap<Origin, Vec<(Instant, Connection)>>>);

impl Pool {
    fn idle(&self) -> MutexGuard<'_, HashMap<Origin, Vec<(Instant, Connection)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that seems usable; the most recently used one.
    pub(super) fn take(&self, origin: &Origin, now: Instant) -> Option<Connection> {
        let mut idle = self.idle();
        sweep(&mut idle, now);
        let (_, connection) = idle.get_mut(origin)?.pop()?;
        Some(connection)
    }

    /// Keeps a connection whose last response was read to its end.
    pub(super) fn put(&self, origin: Origin, connection: Connection, now: Instant) {
        let mut idle = self.idle();
        sweep(&mut idle, now);
        let room = idle.len() < ORIGINS || idle.contains_key(&origin);
        if room && !connection.sender.is_closed() {
            let kept = idle.entry(origin).or_default();
            if kept.len() < PER_ORIGIN {
                kept.push((now, connection));
            }
        }
    }
}

fn sweep(idle: &mut HashMap<Origin, Vec<(Instant, Connection)>>, now: Instant) {
    idle.retain(|_, kept| {
        kept.retain(|(since, connection)| {
            !connection.sender.is_closed() && now.saturating_duration_since(*since) < LONGEST_IDLE
        });
        !kept.is_empty()
    });
}
