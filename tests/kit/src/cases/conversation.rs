//! Conversations: several turns, several objects, several at once, and the end.

use capsule_api::{Health, Limits};
use serde_json::json;

use super::{ensure, same};
use crate::{Failure, Fixture, Meeting, Reply, Script, Stand};

/// Two words that no prompt or tool of the kit contains.
const FIRST: (&str, &str) = ("Remember heliotrope.", "Noted: vermilion.");

/// The latest request knows both sides of the first turn.
fn remembers(stand: &Stand) -> Result<(), Failure> {
    let Some(seen) = stand.seen() else { return Ok(()) };
    let last = seen.last().map_or("", String::as_str);
    for word in ["heliotrope", "vermilion"] {
        ensure(last.contains(word), || {
            format!("the first turn's `{word}` is not in the latest request")
        })?;
    }
    Ok(())
}

pub(super) async fn a_second_turn_knows_the_first(fixture: &dyn Fixture) -> Result<(), Failure> {
    let stand = Stand::new(fixture, Script::new([Reply::say([FIRST.1]), Reply::say(["Yes."])])).await?;
    let mut talk = stand.open("two-turns").await?;
    stand.turn().complete(talk.as_mut(), FIRST.0).await?;
    let mut talk = match talk.health() {
        Health::Ready => talk,
        Health::Lost => return Err(Failure::new("the conversation is lost after a completed turn")),
        Health::Reopen => {
            let resume = talk.resume_state();
            ensure(resume.is_some(), || {
                "health is `Reopen`, but there is no resume state".to_owned()
            })?;
            stand.open_with("two-turns", Limits::default(), resume).await?
        }
    };
    let text = stand.turn().complete(talk.as_mut(), "Do you remember?").await?;
    same("the second answer", text.as_str(), "Yes.")?;
    remembers(&stand)
}

pub(super) async fn a_conversation_resumes_in_another_object(fixture: &dyn Fixture) -> Result<(), Failure> {
    let stand = Stand::new(fixture, Script::new([Reply::say([FIRST.1]), Reply::say(["Yes."])])).await?;
    let mut talk = stand.open("resume").await?;
    stand.turn().complete(talk.as_mut(), FIRST.0).await?;
    let Some(state) = talk.resume_state() else {
        return Err(Failure::new(
            "the instance declares `resumes`, but a completed turn has no resume state",
        ));
    };
    same(
        "the resume state's transport",
        state.transport.as_str(),
        stand.descriptor.name,
    )?;
    let _ = talk.close(stand.patience).await;
    let mut talk = stand.open_with("resume", Limits::default(), Some(state)).await?;
    let text = stand.turn().complete(talk.as_mut(), "Do you remember?").await?;
    same("the second answer", text.as_str(), "Yes.")?;
    remembers(&stand)
}

pub(super) async fn two_conversations_do_not_mix(fixture: &dyn Fixture) -> Result<(), Failure> {
    // Each calls a tool that waits for the other's call, so both are under way at once and neither gets both calls.
    let meet = || Reply::call("meet", json!({}));
    let done = || Reply::say(["Done."]);
    let stand = Stand::new(fixture, Script::new([meet(), meet(), done(), done()])).await?;
    let (mut left, mut right) = (stand.open("left").await?, stand.open("right").await?);
    let meeting = Meeting::new();
    let turns = [stand.turn_meeting_at(meeting.clone()), stand.turn_meeting_at(meeting)];
    let (one, other) = tokio::join!(
        turns[0].complete(left.as_mut(), "Meet the other."),
        turns[1].complete(right.as_mut(), "Meet the other.")
    );
    for (text, turn) in [one, other].into_iter().zip(&turns) {
        same("the outcome's text", text?.as_str(), "Done.")?;
        let fold = turn.log.fold();
        same("the text of a conversation's own events", &fold.texts(), &vec!["Done."])?;
        same("a conversation's own calls", &fold.calls().len(), &1)?;
    }
    Ok(())
}

pub(super) async fn nothing_is_said_or_left_after_the_end(fixture: &dyn Fixture) -> Result<(), Failure> {
    let stand = Stand::new(fixture, Script::of(Reply::say(["The ", "end."]))).await?;
    let mut talk = stand.open("end").await?;
    let turn = stand.turn();
    turn.complete(talk.as_mut(), "Finish.").await?;
    let residue = talk.close(stand.patience).await;
    ensure(residue.is_empty(), || format!("the conversation left {residue:?}"))?;
    same("events after the turn", &turn.log.late(), &0)?;
    same("events beyond what a log keeps", &turn.log.lost(), &0)
}
