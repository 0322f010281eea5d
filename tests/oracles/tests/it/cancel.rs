//! Cancelled and dropped turns leave nothing.

use capsule_api::{Event, Health, Input, Outcome};
use capsule_fakes::{Reply, Script};
use capsule_transport_kit::Entry;
use serde_json::json;

use crate::{
    cli::{Cli, of_each_cli},
    support::Under,
    watch::processes,
};

of_each_cli!(
    p_11_a_cancel_in_the_middle_of_a_tool_call_ends_both,
    a_cancel_in_the_middle_of_text_ends_the_turn_and_a_kept_context_goes_on,
    t_09_a_kept_context_goes_on_after_a_cancel_in_the_middle_of_a_tool_call,
    a_dropped_turn_leaves_no_process_and_says_so,
);

async fn p_11_a_cancel_in_the_middle_of_a_tool_call_ends_both(cli: &Cli) {
    let script = Script::new().then(Reply::new().call("call-1", "sleep", json!({})));
    let Some(scene) = cli.scene(script).await else { return };
    let mut talk = scene.open(scene.spec()).await;
    let under = talk.cancelled_in_calls("Sleep.", 1).await;
    assert_eq!((under.tools.live(), processes(&scene)), (0, vec![]));
    talk.close().await;
}

async fn a_cancel_in_the_middle_of_text_ends_the_turn_and_a_kept_context_goes_on(cli: &Cli) {
    let stalled = Reply::text(["half ", "an answer"]).stall(cli.first_piece());
    let script = Script::new().then(stalled).then(Reply::text("Here again."));
    let Some(scene) = cli.scene(script).await else { return };
    let mut talk = scene.open(scene.kept(None)).await;
    let (under, io) = Under::new();
    let stop = async {
        let delta = |entry: &Entry| matches!(entry, Entry::Model(Event::Delta { .. }));
        under.log.wait_for(delta).await;
        under.cancel();
    };
    let (outcome, ()) = tokio::join!(talk.0.turn(Input::text("Write."), io), stop);
    assert_eq!(outcome.unwrap(), Outcome::Cancelled);
    assert_eq!(processes(&scene), Vec::<u32>::new());
    assert_eq!(talk.turn("And now?").await.answer(), "Here again.");
    talk.close().await;
}

async fn t_09_a_kept_context_goes_on_after_a_cancel_in_the_middle_of_a_tool_call(cli: &Cli) {
    let script = Script::new()
        .then(Reply::new().call("call-1", "sleep", json!({})))
        .then(Reply::text("Here again."));
    let Some(scene) = cli.scene(script).await else { return };
    let mut talk = scene.open(scene.kept(None)).await;
    talk.cancelled_in_calls("Sleep.", 1).await;
    assert_eq!(scene.provider.requests().len(), 1, "the model is not asked again");
    assert_eq!(talk.turn("And now?").await.answer(), "Here again.");
    talk.close().await;
    // A request in which the call had no result would have been refused.
    scene.provider.assert_clean();
    let results = cli.results(&scene.request(1));
    let ids: Vec<_> = results.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["call-1"], "{results:?}");
}

async fn a_dropped_turn_leaves_no_process_and_says_so(cli: &Cli) {
    let script = Script::new().then(Reply::new().call("call-1", "sleep", json!({})));
    let Some(scene) = cli.scene(script).await else { return };
    let mut talk = scene.open(scene.kept(None)).await;
    let (under, io) = Under::new();
    tokio::select! {
        outcome = talk.0.turn(Input::text("Sleep."), io) => panic!("{outcome:?}"),
        () = under.tools.live_calls(1) => {}
    }
    assert_eq!(talk.0.health(), Health::Reopen);
    // The call is dropped with the turn; the processes are killed at once, and their end is waited for here.
    under.tools.live_calls(0).await;
    while !processes(&scene).is_empty() {
        tokio::task::yield_now().await;
    }
    talk.close().await;
}
