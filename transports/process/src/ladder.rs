//! The time of a turn that is stopped: one budget, divided among its steps.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use capsule_api::{Clock, Elapsed, timeout};

/// From the cancel on, nothing of a turn is left after so long, whatever the program does: the steps' shares add up to no more.
pub const GONE_WITHIN: Duration = Duration::from_secs(5);
/// The running tool calls' share, before the interrupt is sent without them.
pub const CALLS: Duration = Duration::from_millis(500);
/// What the program has to end after the interrupt, and again after `SIGTERM`.
pub const STEP: Duration = Duration::from_millis(1500);
/// What the kernel has to end the group after `SIGKILL`.
pub const KILL: Duration = Duration::from_secs(1);
/// The share of the calls that are left when the program is gone.
pub const REST: Duration = Duration::from_millis(500);
/// How long the end of what a program wrote may take once it has exited.
pub(crate) const DRAIN: Duration = Duration::from_millis(500);

/// Calls, interrupt, `SIGTERM`, `SIGKILL`, calls.
const STOPPED: [Duration; 5] = [CALLS, STEP, STEP, KILL, REST];
/// A turn that is cancelled while its program exits by itself: the rest of that, `SIGTERM`, `SIGKILL`, stderr, calls.
const AT_THE_END: [Duration; 5] = [STEP, STEP, KILL, DRAIN, REST];

const _: () = assert!(sum(STOPPED) <= GONE_WITHIN.as_millis());
const _: () = assert!(sum(AT_THE_END) <= GONE_WITHIN.as_millis());

const fn sum(shares: [Duration; 5]) -> u128 {
    let [a, b, c, d, e] = shares;
    a.as_millis() + b.as_millis() + c.as_millis() + d.as_millis() + e.as_millis()
}

/// Waits for `work` until a moment of this clock; not at all where that has passed. Steps that share a time are given the same moment.
///
/// # Errors
/// The moment came first; the work is dropped.
pub async fn until<T>(clock: &dyn Clock, moment: Instant, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    timeout(clock, moment.saturating_duration_since(clock.now()), work).await
}
