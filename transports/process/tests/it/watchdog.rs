//! Limits in time, on a clock that the test owns.

use std::{cell::Cell, sync::Arc, time::Duration};

use capsule_api::{Clock as _, Limit};
use capsule_transport_kit::ManualClock;
use capsule_transport_process::{Life, Watchdog};

const IDLE: Duration = Duration::from_secs(60);

fn quiet() -> Life {
    Life::default()
}

/// Advances the clock whenever the watchdog sleeps; returns the limit and when it was reached, in seconds.
async fn watch(clock: &ManualClock, watchdog: &mut Watchdog, life: impl Fn() -> Life) -> (Limit, u64) {
    let advance = async {
        loop {
            clock.sleepers(1).await;
            clock.advance(Duration::from_secs(10));
        }
    };
    tokio::select! {
        biased;
        limit = watchdog.expired(life) => (limit, clock.elapsed().as_secs()),
        () = advance => unreachable!(),
    }
}

#[tokio::test]
async fn p_04_silence_ends_a_turn_and_a_sign_of_life_puts_it_off() {
    let clock = ManualClock::new();
    let mut watchdog = Watchdog::new(Arc::new(clock.clone()), IDLE, None);
    clock.advance(Duration::from_secs(50));
    watchdog.alive();
    assert_eq!(watch(&clock, &mut watchdog, quiet).await, (Limit::Idle, 110));
    assert_eq!(watchdog.silence(), IDLE);
}

#[tokio::test]
async fn p_04_a_running_call_is_life_and_an_announced_silence_is_waited_out() {
    let clock = ManualClock::new();
    let mut watchdog = Watchdog::new(Arc::new(clock.clone()), IDLE, None);
    let busy_until_100 = || Life {
        busy: clock.elapsed() < Duration::from_secs(100),
        ..Life::default()
    };
    assert_eq!(watch(&clock, &mut watchdog, busy_until_100).await, (Limit::Idle, 120));
    watchdog.quiet_for(Duration::from_secs(200));
    assert_eq!(watch(&clock, &mut watchdog, quiet).await, (Limit::Idle, 380));
    watchdog.quiet_for(Duration::from_secs(1_000_000));
    assert_eq!(watch(&clock, &mut watchdog, quiet).await, (Limit::Idle, 4040));
}

#[tokio::test]
async fn p_04_the_silence_after_a_call_begins_with_the_calls_end() {
    let clock = ManualClock::new();
    let end = clock.now() + Duration::from_secs(50);
    let mut watchdog = Watchdog::new(Arc::new(clock.clone()), IDLE, None);
    let life = || Life {
        busy: clock.now() < end,
        ended: (clock.now() >= end).then_some(end),
        ..Life::default()
    };
    assert_eq!(watch(&clock, &mut watchdog, life).await, (Limit::Idle, 110));
}

#[tokio::test]
async fn the_wall_clock_does_not_count_waiting_for_the_caller() {
    let clock = ManualClock::new();
    let mut watchdog = Watchdog::new(Arc::new(clock.clone()), IDLE, Some(Duration::from_secs(90)));
    let waited = Cell::new(Duration::from_secs(20));
    let life = || Life {
        busy: true,
        waited: waited.get(),
        ..Life::default()
    };
    assert_eq!(watch(&clock, &mut watchdog, life).await, (Limit::Wall, 110));
}
