//! Text, reasoning and usage.

use std::collections::BTreeSet;

use capsule_api::{BlockKind, Event};

use super::{ensure, same};
use crate::{Failure, Fixture, Item, Reply, Script, Stand, TestTurn};

const CHUNKS: [&str; 4] = ["One ", "small ", "answer, ", "in pieces."];
const TEXT: &str = "One small answer, in pieces.";

/// Runs one turn in which the model says [`TEXT`].
async fn answered(fixture: &dyn Fixture) -> Result<(TestTurn, String), Failure> {
    let stand = Stand::new(fixture, Script::of(Reply::say(CHUNKS))).await?;
    let mut talk = stand.open("text").await?;
    let turn = stand.turn();
    let text = turn.complete(talk.as_mut(), "Say something.").await?;
    Ok((turn, text))
}

pub(super) async fn the_answer_is_what_the_model_said(fixture: &dyn Fixture) -> Result<(), Failure> {
    let (turn, text) = answered(fixture).await?;
    same("the outcome's text", text.as_str(), TEXT)?;
    same(
        "the text that the events add up to",
        turn.log.fold().texts().concat().as_str(),
        TEXT,
    )?;
    let started = turn
        .log
        .events()
        .iter()
        .filter(|event| matches!(event, Event::Started { .. }))
        .count();
    same("`Started` events", &started, &1)
}

/// Deltas of text, and how many of them.
fn deltas(turn: &TestTurn, wanted: BlockKind) -> usize {
    let events = turn.log.events();
    events
        .iter()
        .filter(|event| matches!(event, Event::Delta { kind, .. } if *kind == wanted))
        .count()
}

pub(super) async fn declared_streaming_is_real(fixture: &dyn Fixture) -> Result<(), Failure> {
    let (turn, _) = answered(fixture).await?;
    let count = deltas(&turn, BlockKind::Text);
    ensure(count > 1, || {
        format!(
            "the instance declares `streams`, but an answer of {} chunks came in {count} delta(s)",
            CHUNKS.len()
        )
    })
}

pub(super) async fn undeclared_streaming_is_absent(fixture: &dyn Fixture) -> Result<(), Failure> {
    let (turn, _) = answered(fixture).await?;
    same(
        "deltas of an instance that does not declare `streams`",
        &deltas(&turn, BlockKind::Text),
        &0,
    )
}

pub(super) async fn every_block_is_whole_in_the_end(fixture: &dyn Fixture) -> Result<(), Failure> {
    let (turn, _) = answered(fixture).await?;
    let (mut open, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for event in turn.log.events() {
        match event {
            Event::Delta { block, .. } => {
                ensure(!ended.contains(&block), || {
                    format!("{block:?} got a delta after its end")
                })?;
                open.insert(block);
            }
            Event::Block { block, .. } | Event::Retracted { block } => {
                ensure(ended.insert(block), || format!("{block:?} ended twice"))?;
                open.remove(&block);
            }
            _ => {}
        }
    }
    ensure(open.is_empty(), || {
        format!("{open:?} got deltas, but neither `Block` nor `Retracted`")
    })?;
    ensure(!ended.is_empty(), || "the answer came in no `Block`".to_owned())
}

pub(super) async fn reasoning_is_reported_and_no_part_of_the_answer(fixture: &dyn Fixture) -> Result<(), Failure> {
    let reply = Reply::default()
        .and(Item::Think(vec!["Let me ".into(), "think.".into()]))
        .and(Item::Say(CHUNKS.map(str::to_owned).into()));
    let stand = Stand::new(fixture, Script::of(reply)).await?;
    let mut talk = stand.open("thinking").await?;
    let turn = stand.turn();
    let text = turn.complete(talk.as_mut(), "Think first.").await?;
    same("the outcome's text", text.as_str(), TEXT)?;
    same(
        "the reasoning",
        turn.log.fold().thinking().concat().as_str(),
        "Let me think.",
    )?;
    same("the text blocks", turn.log.fold().texts().concat().as_str(), TEXT)
}

pub(super) async fn requests_are_counted_from_one(fixture: &dyn Fixture) -> Result<(), Failure> {
    let (turn, _) = answered(fixture).await?;
    let requests = turn.log.events().into_iter().filter_map(|event| match event {
        Event::RequestStarted { n } => Some(("started", n)),
        Event::RequestEnded { n, .. } => Some(("ended", n)),
        _ => None,
    });
    let wanted = vec![("started", 1), ("ended", 1)];
    same(
        "the request events of an answer without tools",
        &requests.collect::<Vec<_>>(),
        &wanted,
    )
}

pub(super) async fn usage_is_reported(fixture: &dyn Fixture) -> Result<(), Failure> {
    let (turn, _) = answered(fixture).await?;
    let usage = turn.log.events().into_iter().rev().find_map(|event| match event {
        Event::Usage(usage) => Some(usage),
        _ => None,
    });
    match usage {
        Some(usage) => same("requests in the last `Usage`", &usage.requests, &1),
        None => Err(Failure::new("the instance declares `usage`, but no `Usage` came")),
    }
}
