//! Cancelled and dropped turns of codex leave nothing.

use std::time::Duration;

use capsule_api::{Event, Input, Outcome};
use capsule_fakes::{Position, Reply, Script};
use capsule_transport_kit::Entry;
use serde_json::json;

use crate::{
    cancel::{Random, descriptors, processes},
    codex_tools::scene,
    support::{Under, alone, codex, names_in},
};

#[tokio::test]
async fn p_11_codex_a_cancel_in_the_middle_of_a_tool_call_ends_both() {
    let Some(cli) = codex() else { return };
    let scene = scene(
        &cli,
        Script::new().then(Reply::new().call("call-1", "sleep", json!({}))),
    )
    .await;
    let mut talk = scene.open(scene.spec()).await;
    let (under, io) = Under::new();
    let stop = async {
        under.tools.live_calls(1).await;
        under.cancel();
    };
    let (outcome, ()) = tokio::join!(talk.0.turn(Input::text("Sleep."), io), stop);
    assert_eq!(outcome.unwrap(), Outcome::Cancelled);
    assert_eq!((under.tools.live(), processes(&scene)), (0, Vec::<String>::new()));
    talk.close().await;
}

#[tokio::test]
async fn codex_a_cancel_in_the_middle_of_text_ends_the_turn_and_a_kept_context_goes_on() {
    let Some(cli) = codex() else { return };
    let stalled = Reply::text(["half ", "an answer"]).stall(Position::Events(5));
    let scene = scene(&cli, Script::new().then(stalled).then(Reply::text("Here again."))).await;
    let mut talk = scene.open(scene.kept(None)).await;
    let (under, io) = Under::new();
    let stop = async {
        under
            .log
            .wait_for(|entry| matches!(entry, Entry::Model(Event::Delta { .. })))
            .await;
        under.cancel();
    };
    let (outcome, ()) = tokio::join!(talk.0.turn(Input::text("Write."), io), stop);
    assert_eq!(outcome.unwrap(), Outcome::Cancelled);
    assert_eq!(processes(&scene), Vec::<String>::new());
    assert_eq!(talk.turn("And now?").await.answer(), "Here again.");
    talk.close().await;
}

#[tokio::test]
async fn codex_a_dropped_turn_leaves_no_process_and_says_so() {
    let Some(cli) = codex() else { return };
    let scene = scene(
        &cli,
        Script::new().then(Reply::new().call("call-1", "sleep", json!({}))),
    )
    .await;
    let mut talk = scene.open(scene.kept(None)).await;
    let (under, io) = Under::new();
    tokio::select! {
        outcome = talk.0.turn(Input::text("Sleep."), io) => panic!("{outcome:?}"),
        () = under.tools.live_calls(1) => {}
    }
    assert_eq!(talk.0.health(), capsule_api::Health::Reopen);
    // The call is dropped with the turn; the processes are killed at once, and their end is waited for here.
    under.tools.live_calls(0).await;
    while !processes(&scene).is_empty() {
        tokio::task::yield_now().await;
    }
    talk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p_11_codex_fifty_cancels_at_random_moments_leave_no_process_descriptor_or_file() {
    let Some(cli) = codex() else { return };
    if !alone("codex_cancel::p_11_codex_fifty_cancels_at_random_moments_leave_no_process_descriptor_or_file") {
        return;
    }
    let seed = std::env::var("CAPSULE_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    let mut random = Random(seed);
    let script = Script::new()
        .then(Reply::text(["a ", "b ", "c"]).call("call-1", "echo", json!({"text": "a"})))
        .then(Reply::text("d").call("call-2", "sleep", json!({})))
        .forever();
    let scene = scene(&cli, script).await;
    // The first turn starts the threads and caches that stay.
    let mut before = None;
    for n in 0..50 {
        let moment = Duration::from_millis(random.below(900));
        let mut talk = scene.open(scene.spec()).await;
        let (under, io) = Under::new();
        let stop = async {
            // The moment is the stimulus here, not a wait for something.
            tokio::time::sleep(moment).await;
            under.cancel();
        };
        let (outcome, ()) = tokio::join!(talk.0.turn(Input::text("Go."), io), stop);
        assert_eq!(
            outcome.unwrap(),
            Outcome::Cancelled,
            "seed {seed}, cancel {n} after {moment:?}"
        );
        assert_eq!(
            (under.tools.live(), processes(&scene)),
            (0, Vec::new()),
            "seed {seed}, cancel {n} after {moment:?}"
        );
        talk.close().await;
        assert_eq!(names_in(&scene.run_dir()), Vec::<String>::new());
        if n == 0 {
            before = Some(descriptors());
        }
    }
    scene.provider.shutdown().await;
    assert!(
        descriptors() <= before.unwrap(),
        "{} descriptors, {before:?} before",
        descriptors()
    );
}
