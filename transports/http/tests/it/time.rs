//! Time that tests own.

use std::{
    sync::Mutex,
    time::{Duration, Instant, SystemTime},
};

use capsule_api::{Clock, async_trait};
use tokio::sync::watch;

/// A clock that stands still until it is told otherwise.
pub(crate) struct ManualClock {
    start: Instant,
    passed: watch::Sender<Duration>,
    sleeping: watch::Sender<Vec<Duration>>,
    wall: Mutex<SystemTime>,
}

impl ManualClock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            passed: watch::Sender::new(Duration::ZERO),
            sleeping: watch::Sender::new(Vec::new()),
            wall: Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)),
        }
    }

    /// Waits until somebody begins to sleep for exactly this long, then lets it pass. Others, such as time-outs of the HTTP client, sleep on.
    pub(crate) async fn pass(&self, duration: Duration) {
        self.pass_part(duration, duration).await;
    }

    /// Waits until somebody begins to sleep for exactly `sleep`, then lets `part` of it pass.
    pub(crate) async fn pass_part(&self, sleep: Duration, part: Duration) {
        let mut sleeping = self.sleeping.subscribe();
        let now = *self.passed.borrow();
        let wakes = now + sleep;
        sleeping.wait_for(|sleeping| sleeping.contains(&wakes)).await.unwrap();
        self.passed.send_modify(|passed| *passed = now + part);
    }
}

struct Sleeper<'a>(&'a ManualClock, Duration);

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.0.sleeping.send_modify(|wakes| {
            let at = wakes.iter().position(|at| *at == self.1).unwrap();
            wakes.swap_remove(at);
        });
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.start + *self.passed.borrow()
    }

    fn wall(&self) -> SystemTime {
        *self.wall.lock().unwrap() + *self.passed.borrow()
    }

    async fn sleep(&self, duration: Duration) {
        let mut passed = self.passed.subscribe();
        let wakes = *passed.borrow() + duration;
        self.sleeping.send_modify(|sleeping| sleeping.push(wakes));
        let _sleeper = Sleeper(self, wakes);
        passed.wait_for(|passed| *passed >= wakes).await.unwrap();
    }
}
