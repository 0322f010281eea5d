//! Limits: each ends its call alone, and says which one it was.

use std::time::Duration;

use capsule_api::{CancelReason, Content, RunEvent, ToolReply, ToolStatus};
use serde_json::json;

use crate::{
    guests::{self, guest},
    support::{Capsule, said},
};

#[tokio::test]
async fn w_04_a_memory_balloon_is_told_which_limit_it_met() {
    let mut capsule = Capsule::with("balloon", guests::balloon().build());
    capsule.grants.limits.memory = 16 << 20;
    assert_eq!(
        capsule.turn().ask("balloon").await,
        said(
            ToolStatus::Trapped,
            "tool 'balloon' was stopped: it ran into the memory limit of 16MiB (`limits.memory`)"
        )
    );
}

#[tokio::test]
async fn w_04_a_flood_of_standard_output_is_cut_off() {
    let mut capsule = Capsule::with(
        "flood",
        guests::writes("stdout", true).build_with_data(&"x".repeat(900)),
    );
    capsule.grants.limits.output = 64 << 10;
    assert_eq!(
        capsule.turn().ask("flood").await,
        said(
            ToolStatus::Trapped,
            "tool 'flood' was stopped: it ran into the limit of 64KiB on standard output (`limits.output`)"
        )
    );
}

#[tokio::test]
async fn endless_recursion_ends_the_call() {
    let turn = Capsule::with("deep", guests::recursion().build()).turn();
    let (status, text) = turn.ask("deep").await;
    assert_eq!(status, ToolStatus::Trapped);
    assert_eq!(text, "tool 'deep' trapped: call stack exhausted (endless recursion?)");
}

#[tokio::test]
async fn w_01_the_deadline_ends_a_guest_that_waits_in_the_host_and_frees_its_place() {
    let mut capsule = Capsule::with("sleep", guests::sleep().build()).tool("echo", guests::echo().build());
    capsule.grants.limits.concurrent_calls = 1;
    let turn = capsule.turn();
    let call = tokio::spawn(turn.call("sleep", json!({})));
    capsule.clock.sleepers(1).await;
    capsule.clock.advance(Duration::from_secs(60));
    let text = "tool 'sleep' timed out after 1m (`limits.deadline`)";
    assert_eq!(call.await.unwrap(), ToolReply::new(ToolStatus::TimedOut, text));
    assert_eq!(turn.ask("echo").await, said(ToolStatus::Passed, "{}"));
}

#[tokio::test]
async fn the_deadline_ends_a_guest_that_computes_for_ever() {
    let mut capsule = Capsule::with("spin", guests::spin().build()).tool("echo", guests::echo().build());
    capsule.grants.limits.concurrent_calls = 1;
    let turn = capsule.turn();
    let call = tokio::spawn(turn.call("spin", json!({})));
    capsule.clock.sleepers(1).await;
    capsule.clock.advance(Duration::from_secs(60));
    assert_eq!(call.await.unwrap().status, ToolStatus::TimedOut);
    assert_eq!(turn.ask("echo").await, said(ToolStatus::Passed, "{}"));
}

#[tokio::test]
async fn a_cancel_ends_a_running_call_with_its_reason() {
    let capsule = Capsule::with("spin", guests::spin().build());
    let turn = capsule.turn();
    let call = tokio::spawn(turn.call("spin", json!({})));
    capsule.clock.sleepers(1).await;
    turn.cancel.cancel(CancelReason::Shutdown);
    let text = "tool 'spin' was cancelled: the host is ending";
    assert_eq!(call.await.unwrap(), ToolReply::new(ToolStatus::Cancelled, text));
}

#[tokio::test]
async fn a_long_result_is_cut_at_a_character_and_says_so() {
    let mut capsule = Capsule::with("long", guests::says(0).build_with_data(&"é".repeat(300)));
    // An odd limit would cut the two bytes of a character apart.
    capsule.grants.limits.output = 1025;
    let mut turn = capsule.turn();
    assert_eq!(turn.ask("long").await, said(ToolStatus::Passed, &"é".repeat(300)));
    let body = "(memory.fill (i32.const 8192) (i32.const 0x78) (i32.const 3000))
        (i32.store16 (i32.const 9216) (i32.const 0xa9c3)) (call $ret (i32.const 0) (i32.const 8192) (i32.const 3000))";
    capsule.sources.clear();
    capsule = capsule.tool("long", guest(body).build());
    turn = capsule.turn();
    let reply = turn.call("long", json!({})).await;
    let text = format!(
        "{}\n[cut: the first 1024 of 3000 bytes; `limits.output` is 1025B]",
        "x".repeat(1024)
    );
    assert_eq!(
        reply,
        ToolReply {
            content: vec![Content::Text(text)],
            full_bytes: Some(3000),
            ..ToolReply::text("")
        }
    );
}

#[tokio::test]
async fn text_that_is_streamed_over_the_limit_is_dropped_with_one_warning() {
    let mut capsule = Capsule::with(
        "long",
        guests::streams("murmur:stream/events@0.1.0").build_with_data(&"x".repeat(900)),
    );
    capsule.grants.limits.output = 1024;
    let turn = capsule.turn();
    assert_eq!(turn.ask("long").await.0, ToolStatus::Passed);
    let shown: Vec<_> = turn
        .log
        .events()
        .iter()
        .map(|event| format!("{event:?}").chars().take(7).collect::<String>())
        .collect();
    assert_eq!(shown, ["Started", "Chunk {", "Warning", "Ended {"]);
}

#[tokio::test]
async fn w_04_pieces_of_no_text_count_too() {
    let empty = "(local $left i32) (local.set $left (i32.const 100000))
        (loop $again
          (call $text (i32.const 64) (i32.const 0))
          (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (call $ret (i32.const 0) (i32.const 64) (global.get $data))";
    let emit = r#"(import "murmur:stream/events@0.1.0" "emit-chunk" (func $text (param i32 i32)))"#;
    let flood = guest(empty).imports("murmur:stream/events@0.1.0", emit).build();
    let mut capsule = Capsule::with("flood", flood);
    capsule.grants.limits.output = 1024;
    let turn = capsule.turn();
    assert_eq!(turn.ask("flood").await, said(ToolStatus::Passed, "some text"));
    let events = turn.log.events();
    let chunks = events
        .iter()
        .filter(|event| matches!(event, RunEvent::Chunk { .. }))
        .count();
    // The start, the warning and the end are the others.
    assert_eq!((chunks, events.len()), (32, 35));
}
