//! Cancel and drop.

use capsule_api::{CancelReason, Conversation, Event, Health, Outcome, RunEvent, SystemClock, ToolStatus, timeout};
use serde_json::json;

use super::{ensure, same};
use crate::{Entry, Failure, Fixture, Reply, Script, Stand, Stop, TestTurn};

fn hanging() -> Reply {
    Reply::say(["This ", "never "]).stop(Stop::Hang)
}

/// Runs a turn, cancels it once `reached` resolves, and wants it to end in time.
async fn cancelled(
    stand: &Stand,
    talk: &mut dyn Conversation,
    turn: &TestTurn,
    reached: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let mut running = std::pin::pin!(talk.turn(turn.input("Take your time."), turn.io()));
    tokio::select! {
        early = &mut running => return Err(Failure::new(format!("the turn ended before it was cancelled: {early:?}"))),
        reached = timeout(&SystemClock, stand.patience, reached) => {
            reached.map_err(|_| Failure::new("the turn never got as far as to be cancelled"))?;
        }
    }
    turn.cancel.cancel(CancelReason::Caller);
    // As much again for a machine that is busy with other tests.
    let ended = timeout(&SystemClock, 2 * stand.descriptor.stops_within, running).await;
    let within = stand.descriptor.stops_within;
    let outcome =
        ended.map_err(|_| Failure::new(format!("the turn went on for more than {within:?} after the cancel")))?;
    turn.log.close();
    match outcome {
        Ok(Outcome::Cancelled) => {}
        other => {
            return Err(Failure::new(format!(
                "a cancelled turn ends as `Cancelled`, not as {other:?}"
            )));
        }
    }
    same("tool calls that still run", &turn.tools.live(), &0)?;
    same("events after the end", &turn.log.late(), &0)
}

/// The model is at work: something of it was seen, or where nothing can be seen, its request was sent.
async fn writing(stand: &Stand, turn: &TestTurn) {
    let streams = stand.capabilities().streams;
    let begun = |entry: &Entry| match entry {
        Entry::Model(Event::Delta { .. }) => true,
        Entry::Model(Event::Started { .. } | Event::RequestStarted { .. }) => !streams,
        _ => false,
    };
    turn.log.wait_for(begun).await;
}

pub(super) async fn a_cancel_stops_a_model_that_writes(fixture: &dyn Fixture) -> Result<(), Failure> {
    let stand = Stand::new(fixture, Script::of(hanging())).await?;
    let mut talk = stand.open("cancel").await?;
    let turn = stand.turn();
    cancelled(&stand, talk.as_mut(), &turn, writing(&stand, &turn)).await?;
    healthy(&stand, talk.as_ref())
}

/// Health after a cancel fits what is declared.
fn healthy(stand: &Stand, talk: &dyn Conversation) -> Result<(), Failure> {
    let health = talk.health();
    if stand.capabilities().interrupts {
        return same(
            "health after a cancel of an instance that declares `interrupts`",
            &health,
            &Health::Ready,
        );
    }
    let resumable = health != Health::Reopen || !stand.capabilities().resumes || talk.resume_state().is_some();
    ensure(resumable, || {
        "health is `Reopen`, but there is no resume state".to_owned()
    })
}

pub(super) async fn a_turn_that_is_cancelled_already_does_nothing(fixture: &dyn Fixture) -> Result<(), Failure> {
    let reply = Reply::call("echo", json!({"text": "too late"}));
    let stand = Stand::new(fixture, Script::of(reply)).await?;
    let mut talk = stand.open("already").await?;
    let turn = stand.turn();
    turn.cancel.cancel(CancelReason::Caller);
    match turn.run(talk.as_mut(), "Too late.").await? {
        Ok(Outcome::Cancelled) => {}
        other => {
            return Err(Failure::new(format!(
                "a turn that was cancelled before it began ended as {other:?}"
            )));
        }
    }
    same("tool calls of such a turn", &turn.log.fold().calls().len(), &0)
}

pub(super) async fn a_cancel_stops_a_running_tool(fixture: &dyn Fixture) -> Result<(), Failure> {
    let stand = Stand::new(fixture, Script::of(Reply::call("sleep", json!({})))).await?;
    let mut talk = stand.open("cancel").await?;
    let turn = stand.turn();
    cancelled(&stand, talk.as_mut(), &turn, turn.tools.live_calls(1)).await?;
    let ended = turn.log.entries().into_iter().filter_map(|entry| match entry {
        Entry::Run(RunEvent::Ended { reply, .. }) => Some(reply.status),
        _ => None,
    });
    same(
        "how the call ended",
        &ended.collect::<Vec<_>>(),
        &vec![ToolStatus::Cancelled],
    )?;
    healthy(&stand, talk.as_ref())
}

pub(super) async fn a_cancel_works_while_the_reader_is_slow(fixture: &dyn Fixture) -> Result<(), Failure> {
    let stand = Stand::new(fixture, Script::of(hanging())).await?;
    let mut talk = stand.open("slow").await?;
    let turn = stand.turn();
    turn.log.stall(true);
    let begun = turn.log.wait_for(|entry| matches!(entry, Entry::Model(_)));
    cancelled(&stand, talk.as_mut(), &turn, begun).await
}

pub(super) async fn a_cancelled_conversation_goes_on(fixture: &dyn Fixture) -> Result<(), Failure> {
    let stand = Stand::new(fixture, Script::new([hanging(), Reply::say(["Here ", "again."])])).await?;
    let mut talk = stand.open("go-on").await?;
    let turn = stand.turn();
    cancelled(&stand, talk.as_mut(), &turn, writing(&stand, &turn)).await?;
    same("health", &talk.health(), &Health::Ready)?;
    let text = stand.turn().complete(talk.as_mut(), "Still there?").await?;
    same("the next answer", text.as_str(), "Here again.")
}

pub(super) async fn a_dropped_turn_leaves_nothing_running(fixture: &dyn Fixture) -> Result<(), Failure> {
    let script = Script::new([Reply::call("sleep", json!({})), Reply::say(["Back."])]);
    let stand = Stand::new(fixture, script).await?;
    let mut talk = stand.open("drop").await?;
    let turn = stand.turn();
    {
        let mut running = std::pin::pin!(talk.turn(turn.input("Wait."), turn.io()));
        tokio::select! {
            early = &mut running => return Err(Failure::new(format!("the turn ended by itself: {early:?}"))),
            reached = timeout(&SystemClock, stand.patience, turn.tools.live_calls(1)) => {
                reached.map_err(|_| Failure::new("the tool was never called"))?;
            }
        }
    }
    // A bridge notices from another task that its turn is gone.
    let gone = timeout(&SystemClock, stand.descriptor.stops_within, turn.tools.live_calls(0)).await;
    gone.map_err(|_| Failure::new("a tool call outlived its dropped turn"))?;
    if talk.health() == Health::Ready {
        let text = stand.turn().complete(talk.as_mut(), "Still there?").await;
        let text = text.map_err(|failure| Failure::new(format!("health is `Ready` after a drop, but: {failure}")))?;
        same("the next answer", text.as_str(), "Back.")?;
    }
    Ok(())
}
