//! Cancel at every moment of a turn, and what the conversation is like after it.

use capsule_api::{
    Cancel, CancelReason, Event, Health, Outcome, RunEvent, ToolStatus,
    serde_json::{Value, json},
};
use capsule_fakes::{Answer, Position, Reply, Script};

use crate::{
    log::Entry,
    stand::{Stand, completed},
};

fn user(texts: &[&str]) -> Value {
    let blocks: Vec<_> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    json!({"role": "user", "content": blocks})
}

#[tokio::test]
async fn a_cancel_before_the_first_byte_drops_the_request() {
    let script = Script::new()
        .then(Reply::text("late").hang())
        .then(Reply::text("on time"));
    let mut stand = Stand::new(script).await;
    let cancel = Cancel::new();
    let running = stand.start("one", cancel.clone());
    stand.provider.wait_for_requests(1).await;

    cancel.cancel(CancelReason::Caller);

    assert_eq!(stand.end(running).await.unwrap(), Outcome::Cancelled);
    stand.provider.wait_for_dropped(1).await;
    // What the user said was never answered; the next message joins it.
    assert_eq!(stand.turn("two").await.unwrap(), completed("on time"));
    assert_eq!(stand.messages(1), json!([user(&["one", "two"])]));
}

#[tokio::test]
async fn a_cancel_in_the_middle_of_an_answer_keeps_the_partial_text_and_abandons_the_calls() {
    let reply = Reply::text(["Once ", "upon"]).call("a", "greet", json!({"name": "Ada"}));
    // message_start, ping, the text's start, delta, delta, stop, the call's start.
    let script = Script::new()
        .then(reply.stall(Position::Events(7)))
        .then(Reply::text("ok"));
    let mut stand = Stand::new(script).await;
    let cancel = Cancel::new();
    let running = stand.start("one", cancel.clone());
    stand
        .log
        .wait_for(|entry| matches!(entry, Entry::Model(Event::CallStarted { .. })))
        .await;

    cancel.cancel(CancelReason::Deadline);

    assert_eq!(stand.end(running).await.unwrap(), Outcome::Cancelled);
    let fold = stand.log.fold();
    assert_eq!((fold.texts(), fold.calls().len()), (vec!["Once upon"], 0));
    assert!(
        stand
            .log
            .events()
            .iter()
            .any(|event| matches!(event, Event::CallAbandoned { .. }))
    );
    assert_eq!(stand.conversation.as_ref().unwrap().health(), Health::Ready);
    assert_eq!(stand.turn("two").await.unwrap(), completed("ok"));
    stand.provider.assert_clean();
}

#[tokio::test]
async fn t_09_a_cancel_in_the_middle_of_a_tool_leaves_a_result_for_every_call() {
    let calls = Reply::new()
        .call("a", "greet", json!({"name": "Ada"}))
        .call("b", "hang", json!({}));
    let script = Script::new().then(calls).then(Reply::text("ok"));
    let mut stand = Stand::new(script).await;
    let cancel = Cancel::new();
    let running = stand.start("one", cancel.clone());
    let ended = |entry: &Entry, name: &str| matches!(entry, Entry::Ran(RunEvent::Ended { name: n, .. }) if n == name);
    let started = |entry: &Entry| matches!(entry, Entry::Ran(RunEvent::Started { name, .. }) if name == "hang");
    stand.log.wait_for(|entry| ended(entry, "greet")).await;
    stand.log.wait_for(started).await;

    cancel.cancel(CancelReason::Caller);

    assert_eq!(stand.end(running).await.unwrap(), Outcome::Cancelled);
    let hung = stand.log.fold().calls()[1].result.clone().unwrap();
    assert_eq!(hung.0, ToolStatus::Cancelled);
    assert_eq!(stand.turn("two").await.unwrap(), completed("ok"));
    stand.provider.assert_clean();
    let results = stand.messages(1)[2]["content"].clone();
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    assert_eq!(
        results[0],
        json!({"type": "tool_result", "tool_use_id": "a", "content": text("Hello, Ada!")})
    );
    assert_eq!(
        results[1],
        json!({"type": "tool_result", "tool_use_id": "b", "content": text("cancelled"), "is_error": true})
    );
    assert_eq!(results[2], json!({"type": "text", "text": "two"}));
}

#[tokio::test]
async fn t_09_a_turn_that_was_dropped_in_the_middle_of_a_tool_can_be_gone_on_from() {
    let script = Script::new()
        .then(Reply::new().call("a", "hang", json!({})))
        .then(Reply::text("ok"));
    let mut stand = Stand::new(script).await;
    let mut conversation = stand.conversation.take().unwrap();
    let log = crate::log::Log::new();
    let io = capsule_api::TurnIo {
        events: capsule_api::Events::new(log.clone()),
        tools: crate::log::Tools::new(log.clone()),
        caller: std::sync::Arc::new(capsule_api::NobodyThere),
        cancel: Cancel::new(),
    };
    tokio::select! {
        ended = conversation.turn(capsule_api::Input::text("one"), io) => panic!("the tool hangs, but: {ended:?}"),
        () = log.wait_for(|entry| matches!(entry, Entry::Ran(RunEvent::Started { .. }))) => {}
    }

    // The call ended with the future.
    assert_eq!(log.fold().calls()[0].result.clone().unwrap().0, ToolStatus::Cancelled);
    assert_eq!(conversation.health(), Health::Reopen);
    let mut spec = crate::stand::spec();
    spec.resume = conversation.resume_state();
    stand.conversation = Some(stand.transport.open(spec).await.unwrap());
    assert_eq!(stand.turn("two").await.unwrap(), completed("ok"));
    stand.provider.assert_clean();
}

#[tokio::test]
async fn h_07_a_cancel_ends_the_wait_for_a_retry() {
    let script = Script::new().then(Answer::rate_limited(30)).then(Reply::text("ok"));
    let mut stand = Stand::new(script).await;
    let cancel = Cancel::new();
    let running = stand.start("one", cancel.clone());
    stand
        .log
        .wait_for(|entry| matches!(entry, Entry::Model(Event::Retrying { .. })))
        .await;

    cancel.cancel(CancelReason::Shutdown);

    // The clock stands still.
    assert_eq!(stand.end(running).await.unwrap(), Outcome::Cancelled);
    assert_eq!(stand.provider.requests().len(), 1);
}

#[tokio::test]
async fn a_turn_that_is_cancelled_before_it_starts_asks_nothing() {
    let mut stand = Stand::new(Script::new().then(Reply::text("ok"))).await;
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::Caller);
    let running = stand.start("one", cancel);
    assert_eq!(stand.end(running).await.unwrap(), Outcome::Cancelled);
    assert_eq!(stand.provider.requests().len(), 0);
}
