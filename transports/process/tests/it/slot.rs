//! Calls run inside a turn, and nowhere else.

use std::{sync::Arc, time::Duration};

use capsule_api::{
    CallId, Cancel, CancelReason, Events, NobodyThere, ToolCall, ToolDispatch, ToolReply, ToolStatus, TurnIo,
};
use capsule_transport_kit::{ManualClock, Recorder, TestTools};
use capsule_transport_process::SlotDispatch;
use serde_json::json;

pub(crate) fn turn() -> (Arc<TestTools>, TurnIo) {
    let log = Arc::new(Recorder::new());
    let tools = Arc::new(TestTools::new(log.clone()));
    let io = TurnIo {
        events: Events::new(log),
        tools: tools.clone(),
        caller: Arc::new(NobodyThere),
        cancel: Cancel::new(),
    };
    (tools, io)
}

fn slot() -> Arc<SlotDispatch> {
    slot_at(&ManualClock::new())
}

fn slot_at(clock: &ManualClock) -> Arc<SlotDispatch> {
    Arc::new(SlotDispatch::new(TestTools::offered(), None, Arc::new(clock.clone())))
}

fn echo(id: &str) -> ToolCall {
    ToolCall::new(CallId::new(id), "kit-echo", json!({"text": "hello"}))
}

fn sleep(id: &str) -> ToolCall {
    ToolCall::new(CallId::new(id), "kit-sleep", json!({}))
}

#[tokio::test]
async fn a_call_outside_a_turn_is_answered_with_an_error() {
    let slot = slot();
    let nobody = ToolReply::new(ToolStatus::Failed, "no turn is running");
    assert_eq!(slot.call(echo("1")).await, nobody);
    let (_, io) = turn();
    let attached = slot.attach(&io);
    assert_eq!(slot.call(echo("2")).await, ToolReply::text("hello"));
    assert_eq!(
        (attached.saw(&CallId::new("1")), attached.saw(&CallId::new("2"))),
        (false, true)
    );
    let told = [CallId::new("2")].into();
    assert_eq!(attached.beside(&[].into()), [CallId::new("2")]);
    assert_eq!(attached.beside(&told), []);
    assert!(attached.life().ended.is_some() && !attached.life().busy);
    drop(attached);
    assert_eq!(slot.call(echo("3")).await, nobody);
}

#[tokio::test]
async fn finishing_a_turn_cancels_its_calls_waits_for_them_and_keeps_their_results_from_a_cli_that_would_go_on() {
    let clock = ManualClock::new();
    let slot = slot_at(&clock);
    let (tools, io) = turn();
    let attached = slot.attach(&io);
    let call = tokio::spawn({
        let slot = slot.clone();
        async move { slot.call(sleep("1")).await }
    });
    tools.live_calls(1).await;
    assert!(attached.life().busy);
    attached.finish(CancelReason::Caller).await;
    assert_eq!((tools.live(), attached.life().busy), (0, false));
    clock.sleepers(1).await;
    assert!(!call.is_finished());
    clock.advance(Duration::from_secs(5));
    assert_eq!(call.await.unwrap().status, ToolStatus::Cancelled);
    assert_eq!(
        slot.call(echo("2")).await.status,
        ToolStatus::Failed,
        "a finished turn takes no further call"
    );
    assert!(
        !io.cancel.is_cancelled(),
        "the turn's own signal is not the slot's to fire"
    );
}

#[tokio::test]
async fn a_dropped_turn_cancels_its_calls() {
    let clock = ManualClock::new();
    let slot = slot_at(&clock);
    let (tools, io) = turn();
    let attached = slot.attach(&io);
    let call = tokio::spawn({
        let slot = slot.clone();
        async move { slot.call(sleep("1")).await }
    });
    tools.live_calls(1).await;
    drop(attached);
    tools.live_calls(0).await;
    clock.sleepers(1).await;
    clock.advance(Duration::from_secs(5));
    assert_eq!(call.await.unwrap().status, ToolStatus::Cancelled);
}

#[tokio::test]
async fn a_new_turn_does_not_lose_its_place_to_the_one_before() {
    let slot = slot();
    let (_, first) = turn();
    let (tools, second) = turn();
    let before = slot.attach(&first);
    let _now = slot.attach(&second);
    drop(before);
    assert_eq!(slot.call(echo("1")).await, ToolReply::text("hello"));
    assert_eq!(tools.live(), 0);
}
