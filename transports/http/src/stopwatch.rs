//! The time of a turn, without the time in which a call waits for the caller.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use capsule_api::{Clock, Progress, ProgressSink};
use tokio::sync::watch;

/// Runs from the moment it is made; stands still while any call waits for the caller.
pub(crate) struct Stopwatch {
    clock: Arc<dyn Clock>,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy)]
struct State {
    /// Calls that wait for the caller.
    waiting: usize,
    /// Time that ran before `since`.
    spent: Duration,
    /// Since when it runs; `None` while it stands still.
    since: Option<Instant>,
}

impl Stopwatch {
    pub(crate) fn start(clock: Arc<dyn Clock>) -> Arc<Self> {
        let state = State {
            waiting: 0,
            spent: Duration::ZERO,
            since: Some(clock.now()),
        };
        Arc::new(Self {
            clock,
            state: watch::Sender::new(state),
        })
    }

    /// Waits until it shows `limit`. Cancel-safe.
    pub(crate) async fn passed(&self, limit: Duration) {
        let mut changes = self.state.subscribe();
        loop {
            let state = *changes.borrow_and_update();
            let rest = state.since.map(|since| {
                let runs = self.clock.now().saturating_duration_since(since);
                limit.saturating_sub(state.spent + runs)
            });
            if rest == Some(Duration::ZERO) {
                return;
            }
            let sleep = async {
                match rest {
                    Some(rest) => self.clock.sleep(rest).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // The sender is `self`, so there is always one.
                _ = changes.changed() => {}
                () = sleep => {}
            }
        }
    }

    /// Follows one call: the watch stands still while that call waits.
    pub(crate) fn follow(self: &Arc<Self>) -> Followed {
        Followed(Arc::new(Call {
            watch: self.clone(),
            phase: Mutex::new(Phase::Works),
        }))
    }

    fn hold(&self) {
        let now = self.clock.now();
        self.state.send_modify(|state| {
            state.waiting += 1;
            if let Some(since) = state.since.take() {
                state.spent += now.saturating_duration_since(since);
            }
        });
    }

    fn go_on(&self) {
        let now = self.clock.now();
        self.state.send_modify(|state| {
            state.waiting = state.waiting.saturating_sub(1);
            if state.waiting == 0 && state.since.is_none() {
                state.since = Some(now);
            }
        });
    }
}

struct Call {
    watch: Arc<Stopwatch>,
    phase: Mutex<Phase>,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Works,
    Waits,
    Over,
}

impl Call {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        // The phase is one value, set as a whole: whoever panicked left it as it was.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self, progress: &Progress) {
        let mut phase = self.phase();
        match (*phase, progress) {
            (Phase::Works, Progress::WaitingForCaller) => {
                *phase = Phase::Waits;
                self.watch.hold();
            }
            (Phase::Waits, Progress::Resumed) => {
                *phase = Phase::Works;
                self.watch.go_on();
            }
            _ => {}
        }
    }
}

/// A call that is followed until this is dropped, also where the call never says that its answer came.
pub(crate) struct Followed(Arc<Call>);

impl Followed {
    /// Where the call's progress goes.
    pub(crate) fn sink(&self) -> ProgressSink {
        let call = self.0.clone();
        Arc::new(move |progress| call.progress(&progress))
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let mut phase = self.0.phase();
        if *phase == Phase::Waits {
            self.0.watch.go_on();
        }
        *phase = Phase::Over;
    }
}

#[cfg(test)]
mod tests {
    use capsule_api::async_trait;
    use futures_util::FutureExt as _;
    use std::time::SystemTime;

    use super::*;

    /// Time that the test moves; sleeps look at it whenever they are polled.
    struct Still(Instant, Mutex<Duration>);

    impl Still {
        fn pass(&self, seconds: u64) {
            *self.1.lock().unwrap() += Duration::from_secs(seconds);
        }
    }

    #[async_trait]
    impl Clock for Still {
        fn now(&self) -> Instant {
            self.0 + *self.1.lock().unwrap()
        }

        fn wall(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        async fn sleep(&self, duration: Duration) {
            let until = self.now() + duration;
            std::future::poll_fn(|_| {
                if self.now() >= until {
                    std::task::Poll::Ready(())
                } else {
                    std::task::Poll::Pending
                }
            })
            .await;
        }
    }

    #[tokio::test]
    async fn time_in_which_a_call_waits_for_the_caller_does_not_count() {
        let clock = Arc::new(Still(Instant::now(), Mutex::default()));
        let watch = Stopwatch::start(clock.clone());
        let mut passed = Box::pin(watch.passed(Duration::from_secs(10)));
        let (one, two) = (watch.follow(), watch.follow());

        clock.pass(4);
        one.sink()(Progress::WaitingForCaller);
        one.sink()(Progress::WaitingForCaller);
        two.sink()(Progress::WaitingForCaller);
        clock.pass(100);
        one.sink()(Progress::Resumed);
        clock.pass(100);
        assert_eq!(passed.as_mut().now_or_never(), None, "the other one waits still");

        // It ends without an answer.
        drop(two);
        clock.pass(5);
        assert_eq!(passed.as_mut().now_or_never(), None, "nine seconds");
        clock.pass(1);
        passed.await;
    }
}
