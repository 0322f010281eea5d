//! What goes wrong is told as what it is.

use capsule_api::{Error, ErrorKind, Event, Outcome, TransportDescriptor};
use serde_json::json;

use super::{ensure, same};
use crate::{Failure, Fault, Fixture, Item, Reply, Script, Stand, Stop, TestTurn};

async fn ended(fixture: &dyn Fixture, script: Script) -> Result<(TestTurn, Result<Outcome, Error>), Failure> {
    let stand = Stand::new(fixture, script).await?;
    let mut talk = stand.open("failures").await?;
    let turn = stand.turn();
    let result = turn.run(talk.as_mut(), "Do your best.").await?;
    Ok((turn, result))
}

/// The error, with a code that its owner declares.
fn declared(result: Result<Outcome, Error>, descriptor: &TransportDescriptor) -> Result<Error, Failure> {
    let error = match result {
        Ok(outcome) => return Err(Failure::new(format!("a failure ended as {outcome:?}"))),
        Err(error) => error,
    };
    // A transport that is made of drivers passes their codes on; those are prefixed by the driver.
    let prefix = format!("{}-", descriptor.name);
    let owned = !error.code.starts_with(&prefix) || descriptor.codes.iter().any(|code| code.id == error.code);
    ensure(owned, || {
        format!("the code `{}` is not among the descriptor's codes", error.code)
    })?;
    ensure(!error.hint.is_empty(), || {
        format!("the error `{}` does not say what to do", error.code)
    })?;
    Ok(error)
}

pub(super) async fn a_refused_credential_is_an_error(fixture: &dyn Fixture) -> Result<(), Failure> {
    let (_, result) = ended(fixture, Script::of(Reply::fault(Fault::Auth))).await?;
    let error = declared(result, fixture.descriptor())?;
    same("the error's kind", &error.kind, &ErrorKind::Auth)
}

pub(super) async fn a_cut_stream_is_no_answer(fixture: &dyn Fixture) -> Result<(), Failure> {
    // In the middle of a turn: neither the earlier request nor the half of this one may pass for an answer.
    let cut = Reply::say(["Half an "]).stop(Stop::Fault(Fault::Cut));
    let script = Script::new([Reply::call("echo", json!({"text": "x"})), cut]);
    let (_, result) = ended(fixture, script).await?;
    declared(result, fixture.descriptor()).map(drop)
}

pub(super) async fn a_dead_peer_is_no_answer(fixture: &dyn Fixture) -> Result<(), Failure> {
    let crash = Reply::say(["Half an "]).stop(Stop::Fault(Fault::Crash));
    let (_, result) = ended(fixture, Script::of(crash)).await?;
    declared(result, fixture.descriptor()).map(drop)
}

pub(super) async fn an_overloaded_provider_is_tried_again_or_reported(fixture: &dyn Fixture) -> Result<(), Failure> {
    let script = Script::new([Reply::fault(Fault::Overloaded), Reply::say(["Now ", "it works."])]);
    let (turn, result) = ended(fixture, script).await?;
    match result {
        Ok(Outcome::Completed { text }) => {
            same("the outcome's text", text.as_str(), "Now it works.")?;
            let told = turn
                .log
                .events()
                .iter()
                .any(|event| matches!(event, Event::Retrying { .. }));
            ensure(told, || {
                "a request was made again without a `Retrying` event".to_owned()
            })
        }
        other => {
            let error = declared(other, fixture.descriptor())?;
            same("the error's kind", &error.kind, &ErrorKind::Overloaded)
        }
    }
}

pub(super) async fn a_refusal_is_no_answer(fixture: &dyn Fixture) -> Result<(), Failure> {
    let refusal = Reply::say(["I will not."]).stop(Stop::Refusal);
    match ended(fixture, Script::of(refusal)).await?.1 {
        Ok(Outcome::Refused { .. }) => Ok(()),
        other => Err(Failure::new(format!("a refusal ended as {other:?}"))),
    }
}

pub(super) async fn a_truncated_reply_is_no_answer(fixture: &dyn Fixture) -> Result<(), Failure> {
    let long = Item::Say(vec!["Once ".into(), "upon a".into()]);
    let cut = Reply::default().and(long).stop(Stop::MaxTokens);
    match ended(fixture, Script::of(cut)).await?.1 {
        Ok(Outcome::Truncated { .. }) => Ok(()),
        other => Err(Failure::new(format!("a truncated reply ended as {other:?}"))),
    }
}
