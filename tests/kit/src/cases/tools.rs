//! Tool calls.

use capsule_api::{CallId, Event, FoldedCall, Limit, Limits, Outcome, RunEvent, ToolStatus};
use serde_json::{Value, json};

use super::{ensure, same};
use crate::{Entry, Failure, Fixture, Reply, Script, Stand, TestTurn};

/// What the model called, as the transport reports it.
fn reported(turn: &TestTurn) -> Vec<(CallId, String, Value)> {
    let calls = turn.log.events().into_iter().filter_map(|event| match event {
        Event::Call { call, name, arguments } => Some((call, name, arguments)),
        _ => None,
    });
    calls.collect()
}

/// What reached the dispatch.
fn ran(turn: &TestTurn) -> Vec<(CallId, String, Value)> {
    let calls = turn.log.entries().into_iter().filter_map(|entry| match entry {
        Entry::Run(RunEvent::Started { call, name, arguments }) => Some((call, name, arguments)),
        _ => None,
    });
    calls.collect()
}

pub(super) async fn a_call_runs_once_and_its_result_goes_back(fixture: &dyn Fixture) -> Result<(), Failure> {
    // Arguments with everything that a careless copy changes: key order, escapes, a large number, an empty object. (Peers in JavaScript hold no integer above 2^53.)
    let arguments =
        json!({"text": "a \"quoted\" \u{1f980}\nline", "z": {"b": [1, 9_007_199_254_740_991_u64], "a": {}}});
    let script = Script::new([Reply::call("echo", arguments.clone()), Reply::say(["It ", "said so."])]);
    let stand = Stand::new(fixture, script).await?;
    let mut talk = stand.open("tools").await?;
    let turn = stand.turn();
    let text = turn.complete(talk.as_mut(), "Use the tool.").await?;
    same("the outcome's text", text.as_str(), "It said so.")?;
    let (reported, ran) = (reported(&turn), ran(&turn));
    same("calls that reached the dispatch", &ran.len(), &1)?;
    same(
        "calls that the transport reports, against those that ran",
        &reported,
        &ran,
    )?;
    let result = arguments["text"].as_str().unwrap_or_default().to_owned();
    let wanted = FoldedCall {
        name: "kit-echo".into(),
        arguments: arguments.clone(),
        result: Some((ToolStatus::Passed, result)),
    };
    same("the call", &turn.log.fold().calls(), &vec![&wanted])?;
    // `Value` compares objects without regard to order; the text does not.
    same("the arguments' text", &ran[0].2.to_string(), &arguments.to_string())?;
    if let Some(seen) = stand.seen() {
        same("model requests", &seen.len(), &2)?;
        ensure(seen[1].contains("quoted"), || {
            "the tool's result is not in the second request".to_owned()
        })?;
    }
    Ok(())
}

pub(super) async fn calls_of_one_reply_overlap(fixture: &dyn Fixture) -> Result<(), Failure> {
    let both = Reply::call("meet", json!({})).and_call("meet", json!({}));
    let stand = Stand::new(fixture, Script::new([both, Reply::say(["They met."])])).await?;
    let mut talk = stand.open("parallel").await?;
    let turn = stand.turn();
    let text = turn.complete(talk.as_mut(), "Let them meet.").await;
    let text = text.map_err(|failure| Failure::new(format!("two calls never ran at once: {failure}")))?;
    same("the outcome's text", text.as_str(), "They met.")?;
    let ids: std::collections::BTreeSet<_> = ran(&turn).into_iter().map(|(id, ..)| id).collect();
    same("different ids of two calls", &ids.len(), &2)
}

pub(super) async fn a_tool_that_fails_does_not_end_the_turn(fixture: &dyn Fixture) -> Result<(), Failure> {
    let script = Script::new([
        Reply::call("fail", json!({})),
        Reply::call("denied", json!({})),
        Reply::say(["Neither ", "worked."]),
    ]);
    let stand = Stand::new(fixture, script).await?;
    let mut talk = stand.open("failing").await?;
    let turn = stand.turn();
    let text = turn.complete(talk.as_mut(), "Try both.").await?;
    same("the outcome's text", text.as_str(), "Neither worked.")?;
    let fold = turn.log.fold();
    let statuses: Vec<_> = fold
        .calls()
        .iter()
        .map(|call| call.result.as_ref().map(|(status, _)| *status))
        .collect();
    same(
        "how the calls ended",
        &statuses,
        &vec![Some(ToolStatus::Failed), Some(ToolStatus::Denied)],
    )?;
    if let Some(seen) = stand.seen() {
        let told = seen.len() == 3 && seen[1].contains("kit-fail always fails") && seen[2].contains("lacks a grant");
        ensure(told, || "the model was not told why the calls failed".to_owned())?;
    }
    Ok(())
}

pub(super) async fn an_unknown_tool_does_not_end_the_turn(fixture: &dyn Fixture) -> Result<(), Failure> {
    let script = Script::new([Reply::call("no_such_tool", json!({})), Reply::say(["Sorry."])]);
    let stand = Stand::new(fixture, script).await?;
    let mut talk = stand.open("unknown").await?;
    let turn = stand.turn();
    let text = turn.complete(talk.as_mut(), "Use what is not there.").await?;
    same("the outcome's text", text.as_str(), "Sorry.")?;
    // A peer may answer such a call itself, so it need not reach the dispatch; but nothing may have passed.
    let fold = turn.log.fold();
    let passed = |call: &&FoldedCall| matches!(call.result, Some((ToolStatus::Passed, _)));
    ensure(!fold.calls().iter().any(passed), || {
        "a call of an unknown tool passed".to_owned()
    })
}

pub(super) async fn the_request_limit_is_exact(fixture: &dyn Fixture) -> Result<(), Failure> {
    let again = || Reply::call("echo", json!({"text": "again"}));
    let stand = Stand::new(fixture, Script::new([again(), again(), again(), again()])).await?;
    let limits = Limits {
        requests: 2,
        ..Limits::default()
    };
    let mut talk = stand.open_with("limited", limits, None).await?;
    let turn = stand.turn();
    let outcome = turn.run(talk.as_mut(), "Go round in circles.").await?;
    let outcome = outcome.map_err(|error| Failure::new(format!("a limit is an outcome, not an error: {error}")))?;
    same(
        "the outcome",
        &outcome,
        &Outcome::LimitReached { which: Limit::Requests },
    )?;
    let started = turn
        .log
        .events()
        .iter()
        .filter(|event| matches!(event, Event::RequestStarted { .. }))
        .count();
    same("`RequestStarted` events under a limit of 2", &started, &2)?;
    match stand.seen() {
        Some(seen) => same("requests that reached the peer under a limit of 2", &seen.len(), &2),
        None => Ok(()),
    }
}
