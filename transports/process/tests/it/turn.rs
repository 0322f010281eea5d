//! How a turn that does not end by itself is ended.

use std::{future::pending, sync::Arc, time::Duration};

use capsule_api::{Cancel, CancelReason, Clock, Error};
use capsule_transport_kit::ManualClock;
use capsule_transport_process::{
    Child, Ending, GONE_WITHIN, Halt, Program, STEP, Turn, TurnCodes, TurnParts, Watchdog, turn_codes,
};

use crate::{script, slot};

static CODES: TurnCodes = turn_codes!("test");

async fn begin(program: Program, clock: &ManualClock) -> (Turn, Cancel) {
    let (_, io) = slot::turn();
    let clock: Arc<dyn Clock> = Arc::new(clock.clone());
    let cancel = io.cancel.clone();
    let turn = Turn::new(TurnParts {
        child: Child::spawn(program).await.unwrap(),
        io,
        calls: None,
        watchdog: Watchdog::new(clock.clone(), Duration::from_secs(600), None),
        clock,
        loan: None,
        codes: &CODES,
    });
    (turn, cancel)
}

/// A program that has said that it is up, and ignores every signal that can be ignored.
async fn deaf(clock: &ManualClock) -> (Turn, Cancel) {
    let program = script("trap '' INT TERM; echo up; while :; do sleep 1; done");
    let (mut turn, cancel) = begin(program, clock).await;
    assert_eq!(turn.next_line(pending()).await.unwrap().as_deref(), Some("up"));
    (turn, cancel)
}

/// The time of each step, as the clock is asked for it.
async fn pass(clock: &ManualClock, step: Duration) {
    clock.sleepers(1).await;
    clock.advance(step);
}

#[tokio::test]
async fn what_the_interrupt_took_of_its_time_is_not_given_again() {
    let clock = ManualClock::new();
    let (mut turn, _) = deaf(&clock).await;
    let started = clock.now();
    let ends = turn.interrupt_ends();
    clock.advance(Duration::from_secs(1));
    let ladder = tokio::spawn(async move { turn.end(ends).await });
    pass(&clock, Duration::from_millis(500)).await;
    pass(&clock, STEP).await;
    let exit = ladder.await.unwrap().unwrap();
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
    assert_eq!(clock.now() - started, STEP * 2, "interrupt and SIGTERM");
}

#[tokio::test]
async fn a_cancel_while_the_program_exits_leaves_it_no_more_time_than_an_interrupt() {
    let clock = ManualClock::new();
    let (mut turn, cancel) = deaf(&clock).await;
    let end = tokio::spawn(async move { turn.finish().await });
    pass(&clock, Duration::from_secs(1)).await;
    let cancelled = clock.now();
    cancel.cancel(CancelReason::Caller);
    // The wait that was is given up before the one that counts from the cancel.
    tokio::task::yield_now().await;
    pass(&clock, STEP).await;
    pass(&clock, STEP).await;
    let finished = end.await.unwrap();
    assert_eq!(finished.ending, Ending::Stayed);
    assert!(clock.now() - cancelled <= GONE_WITHIN);
}

#[tokio::test]
async fn a_program_that_writes_more_than_it_may_ends_the_turn_with_that_as_the_reason() {
    let clock = ManualClock::new();
    let (mut turn, _) = begin(script("exec yes").most_output(1 << 20), &clock).await;
    let halt = loop {
        if let Err(halt) = turn.next_line(pending()).await {
            break halt;
        }
    };
    let Halt::Stop(Err(error)) = halt else {
        panic!("{halt:?}")
    };
    let told: fn(&Error) -> (&str, &str) = |error| (error.code, &error.message);
    let message = "the CLI does not stop writing to its standard output: there is more of it than 1048576 bytes";
    assert_eq!(told(&error), ("process-output-limit", message));
    assert!(error.hint.contains("`max_turns`"), "{}", error.hint);
    let ends = turn.interrupt_ends();
    let exit = tokio::spawn(async move { turn.end(ends).await });
    pass(&clock, STEP).await;
    assert_eq!(exit.await.unwrap().unwrap().signal, Some(15));
}
