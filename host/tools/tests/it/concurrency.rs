//! Many calls at once, and calls that nobody waits for any more.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use capsule_api::{CancelReason, ToolReply, ToolStatus};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{
    guests,
    support::{Capsule, SlowCaller, said},
};

#[tokio::test]
async fn sixteen_calls_overlap() {
    let capsule = Capsule::with("asks", guests::asks().build());
    let caller = SlowCaller::new();
    let turn = capsule.turn_with(caller.clone());
    let mut calls = JoinSet::new();
    for _ in 0..16 {
        calls.spawn(turn.call("asks", json!({})));
    }
    // All of them are inside the guest at once.
    assert_eq!(caller.asked(16).await.len(), 16);
    caller.answer(Ok(json!({"n": 1})));
    assert_eq!(calls.join_all().await, vec![ToolReply::text(r#"{"n":1}"#); 16]);
}

#[tokio::test]
async fn a_call_over_the_limit_waits_without_losing_time_and_can_be_cancelled() {
    let mut capsule = Capsule::with("asks", guests::asks().build()).tool("echo", guests::echo().build());
    capsule.grants.limits.concurrent_calls = 1;
    let caller = SlowCaller::new();
    let turn = capsule.turn_with(caller.clone());
    let first = tokio::spawn(turn.call("asks", json!({})));
    caller.asked(1).await;
    let mut second = pin!(turn.call("echo", json!({})));
    assert!(
        second
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    capsule.clock.advance(24 * capsule.grants.limits.deadline);
    {
        let mut dropped = Box::pin(turn.call("echo", json!({})));
        assert!(
            dropped
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }
    caller.answer(Ok(json!("yes")));
    assert_eq!(first.await.unwrap(), ToolReply::text("yes"));
    assert_eq!(second.await, ToolReply::text("{}"));
    let (started, ended) = turn.log.ends();
    assert_eq!(
        (started, ended),
        (3, vec![ToolStatus::Cancelled, ToolStatus::Passed, ToolStatus::Passed])
    );
}

#[tokio::test]
async fn a_cancel_reaches_calls_that_wait_for_a_place() {
    let mut capsule = Capsule::with("asks", guests::asks().build());
    capsule.grants.limits.concurrent_calls = 1;
    let caller = SlowCaller::new();
    let turn = capsule.turn_with(caller.clone());
    let (first, second) = (turn.call("asks", json!({})), turn.call("asks", json!({})));
    let both = tokio::spawn(async move { tokio::join!(first, second) });
    caller.asked(1).await;
    turn.cancel.cancel(CancelReason::Caller);
    let cancelled = ToolReply::new(ToolStatus::Cancelled, "tool 'asks' was cancelled");
    assert_eq!(both.await.unwrap(), (cancelled.clone(), cancelled));
}

#[tokio::test]
async fn w_05_a_thousand_dropped_calls_are_recorded_once_each_and_leave_every_place_free() {
    let capsule = Capsule::with("sleep", guests::sleep().build())
        .tool("spin", guests::spin().build())
        .tool("echo", guests::echo().build());
    let turn = capsule.turn();
    for n in 0..1000 {
        let name = if n % 100 == 0 { "spin" } else { "sleep" };
        let mut call = Box::pin(turn.call(name, json!({})));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let (started, ended) = turn.log.ends();
    assert_eq!((started, ended), (1000, vec![ToolStatus::Cancelled; 1000]));
    let mut calls = JoinSet::new();
    for _ in 0..64 {
        calls.spawn(turn.call("echo", json!({})));
    }
    assert_eq!(calls.join_all().await, vec![ToolReply::text("{}"); 64]);
}

/// One thread for the host. Guests that shared it would yield every 10 ms, and its timers and sockets be looked at once in 61 yields: they
/// would be done computing before the host has waited twenty times.
#[tokio::test(flavor = "current_thread")]
async fn two_spinning_guests_stop_neither_the_host_s_timers_nor_its_sockets() {
    let capsule = Capsule::with("computes", guests::computes().build()).tool("echo", guests::echo().build());
    let turn = capsule.turn();
    let spinners = [(); 2].map(|()| tokio::spawn(turn.call("computes", json!({}))));
    capsule.clock.sleepers(2).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut peer, _) = listener.accept().await.unwrap();
        peer.write_all(b"hello").await.unwrap();
    });
    let mut received = String::new();
    TcpStream::connect(address)
        .await
        .unwrap()
        .read_to_string(&mut received)
        .await
        .unwrap();
    server.await.unwrap();
    assert_eq!(received, "hello");
    assert_eq!(turn.ask("echo").await, said(ToolStatus::Passed, "{}"));
    assert!(
        spinners.iter().all(|spinner| !spinner.is_finished()),
        "a guest ended before the host's work did"
    );
    turn.cancel.cancel(CancelReason::Caller);
    for spinner in spinners {
        assert_eq!(spinner.await.unwrap().status, ToolStatus::Cancelled);
    }
}

#[test]
fn calls_in_flight_end_when_the_tools_are_shut_down() {
    let capsule = Capsule::with("sleep", guests::sleep().build());
    let turn = capsule.turn();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let tools = Arc::clone(&turn.tools);
    let call = runtime.spawn(turn.call("sleep", json!({})));
    runtime.block_on(capsule.clock.sleepers(1));
    turn.toolbox.shut_down(Duration::from_secs(10));
    let reply = runtime.block_on(call).unwrap();
    let text = "tool 'sleep' was cancelled: the host is ending";
    assert_eq!(reply, ToolReply::new(ToolStatus::Cancelled, text));
    drop(tools);
}
