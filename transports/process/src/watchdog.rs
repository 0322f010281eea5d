//! The limits of a turn in time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use capsule_api::{Clock, Limit};

/// An announced silence is believed for no longer: no CLI waits so long before it tries again.
const MOST_SILENCE: Duration = Duration::from_secs(3600);

/// What goes on besides the program's own output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// A tool call is under way: the program has every reason to be silent.
    pub busy: bool,
    /// When the last of the tool calls ended.
    pub ended: Option<Instant>,
    /// How long calls have waited for the caller so far; the wall clock does not count it.
    pub waited: Duration,
}

/// Watches a turn: time without a sign of life, and time in all.
pub struct Watchdog {
    clock: Arc<dyn Clock>,
    idle: Duration,
    wall: Option<Duration>,
    started: Instant,
    last: Instant,
}

impl Watchdog {
    /// Starts to watch.
    pub fn new(clock: Arc<dyn Clock>, idle: Duration, wall: Option<Duration>) -> Self {
        let now = clock.now();
        Self {
            clock,
            idle,
            wall,
            started: now,
            last: now,
        }
    }

    /// A sign of life.
    pub fn alive(&mut self) {
        self.last = self.last.max(self.clock.now());
    }

    /// A sign of life that announces silence: the idle clock starts when it is over, or after an hour of it.
    pub fn quiet_for(&mut self, announced: Duration) {
        self.last = self.clock.now() + announced.min(MOST_SILENCE);
    }

    /// How long ago the last sign of life was.
    pub fn silence(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.last)
    }

    /// Waits until a limit is reached. Cancel-safe.
    pub async fn expired(&mut self, life: impl Fn() -> Life) -> Limit {
        loop {
            let now = self.clock.now();
            let life = life();
            let call = if life.busy { Some(now) } else { life.ended };
            if let Some(sign) = call {
                self.last = self.last.max(sign);
            }
            let idle_at = self.last + self.idle;
            let wall_at = self.wall.map(|wall| self.started + wall + life.waited);
            if wall_at.is_some_and(|at| at <= now) {
                return Limit::Wall;
            }
            if idle_at <= now {
                return Limit::Idle;
            }
            let next = wall_at.map_or(idle_at, |at| at.min(idle_at));
            self.clock.sleep(next - now).await;
        }
    }
}
