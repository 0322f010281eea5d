//! The kit held to its own promise: a transport that is right passes every case, and for every case there is one that is caught.
#![cfg(test)]

mod peer;
mod scripted;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use capsule_api::{Services, Settings, SystemClock, TransportDescriptor};
use capsule_transport_kit::{
    Failure, Fixture, Line, NoSecrets, Script, Stage, Verdict, assert_conforms, async_trait, check, check_case, names,
};
use serde_json::json;

use crate::peer::Peer;

/// The scripted transport, right or with one fault.
struct Scripted {
    descriptor: &'static TransportDescriptor,
    fault: &'static str,
}

impl Scripted {
    fn right() -> Self {
        Self::with("none")
    }

    fn with(fault: &'static str) -> Self {
        let descriptor = if fault == "misnamed" {
            &scripted::MISNAMED
        } else {
            &scripted::DESCRIPTOR
        };
        Self { descriptor, fault }
    }
}

#[async_trait]
impl Fixture for Scripted {
    fn descriptor(&self) -> &'static TransportDescriptor {
        self.descriptor
    }

    async fn stage(&self, script: Script) -> Stage {
        let schema = (self.descriptor.settings_schema)(None);
        let values = json!({"fault": self.fault});
        let values = values.as_object().expect("an object was just written").clone();
        let peer = Peer::new(script);
        let services = Services::new(Arc::new(SystemClock), Arc::new(NoSecrets), peer.clone());
        Stage::new(Settings::new(values, &schema, "."), services).seen(move || peer.seen())
    }

    fn patience(&self) -> Duration {
        // A fault that hangs is found when patience ends; a right transport never comes near it.
        Duration::from_secs(if self.fault == "none" { 30 } else { 1 })
    }
}

/// For every case a fault that it must catch, and words of the explanation that it must give.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "the_descriptor_is_sane",
        "misnamed",
        "the name `Bad_Name` is not [a-z0-9-]+",
    ),
    ("the_probe_finds_the_staged_peer_usable", "unusable", "the probe says"),
    (
        "the_answer_is_what_the_model_said",
        "short-answer",
        "the outcome's text",
    ),
    (
        "declared_streaming_is_real",
        "one-delta",
        "an answer of 4 chunks came in 1 delta(s)",
    ),
    (
        "undeclared_streaming_is_absent",
        "streams-in-secret",
        "does not declare `streams`",
    ),
    (
        "every_block_is_whole_in_the_end",
        "no-block",
        "neither `Block` nor `Retracted`",
    ),
    (
        "reasoning_is_reported_and_no_part_of_the_answer",
        "thinks-aloud",
        "the outcome's text",
    ),
    ("requests_are_counted_from_one", "miscounts", "the request events"),
    ("usage_is_reported", "no-usage", "no `Usage` came"),
    (
        "a_call_runs_once_and_its_result_goes_back",
        "calls-twice",
        "calls that reached the dispatch",
    ),
    (
        "calls_of_one_reply_overlap",
        "one-by-one",
        "two calls never ran at once",
    ),
    (
        "a_tool_that_fails_does_not_end_the_turn",
        "gives-up",
        "the turn should have completed",
    ),
    (
        "an_unknown_tool_does_not_end_the_turn",
        "gives-up",
        "the turn should have completed",
    ),
    ("the_request_limit_is_exact", "one-more", "under a limit of 2"),
    (
        "a_turn_that_is_cancelled_already_does_nothing",
        "deaf",
        "cancelled before it began ended as",
    ),
    ("a_cancel_stops_a_model_that_writes", "deaf", "after the cancel"),
    ("a_cancel_stops_a_running_tool", "deaf", "after the cancel"),
    (
        "a_cancel_works_while_the_reader_is_slow",
        "waits-for-room",
        "after the cancel",
    ),
    ("a_cancelled_conversation_goes_on", "lost-by-cancel", "the next answer"),
    (
        "a_dropped_turn_leaves_nothing_running",
        "detached",
        "outlived its dropped turn",
    ),
    ("a_refused_credential_is_an_error", "vague", "the error's kind"),
    ("a_cut_stream_is_no_answer", "hopeful", "a failure ended as Completed"),
    ("a_dead_peer_is_no_answer", "hopeful", "a failure ended as Completed"),
    (
        "an_overloaded_provider_is_tried_again_or_reported",
        "silent-retry",
        "without a `Retrying` event",
    ),
    ("a_refusal_is_no_answer", "pleased", "a refusal ended as Ok(Completed"),
    (
        "a_truncated_reply_is_no_answer",
        "pleased",
        "a truncated reply ended as Ok(Completed",
    ),
    (
        "a_second_turn_knows_the_first",
        "forgets",
        "is not in the latest request",
    ),
    (
        "a_conversation_resumes_in_another_object",
        "starts-anew",
        "is not in the latest request",
    ),
    ("two_conversations_do_not_mix", "mixes", "a conversation's own"),
    (
        "nothing_is_said_or_left_after_the_end",
        "last-word",
        "events after the turn",
    ),
];

#[tokio::test]
async fn a_right_transport_passes_every_case() {
    let report = check(&Scripted::right()).await;
    let not_passed: Vec<_> = report
        .lines
        .iter()
        .filter(|line| line.verdict != Verdict::Passed)
        .collect();
    let only_for_others = Line {
        case: "undeclared_streaming_is_absent",
        verdict: Verdict::Skipped("the instance declares `streams`".to_owned()),
    };
    assert_eq!(not_passed, [&only_for_others], "{report}");
    assert!(report.conforms(), "{report}");
}

#[tokio::test]
async fn r_03_every_case_catches_a_transport_that_breaks_it() {
    let covered: BTreeSet<_> = FAULTS.iter().map(|(case, ..)| *case).collect();
    assert_eq!(covered, names().collect(), "every case has a fault that it must catch");
    for (case, fault, explanation) in FAULTS {
        match check_case(&Scripted::with(fault), case).await {
            Verdict::Failed(why) if why.to_string().contains(explanation) => {}
            other => panic!("`{case}` should catch the fault `{fault}` with {explanation:?}, but says {other:?}"),
        }
    }
}

#[tokio::test]
#[should_panic(expected = "FAILED   declared_streaming_is_real: the instance declares `streams`")]
async fn r_03_a_transport_that_lies_about_streaming_does_not_conform() {
    assert_conforms(&Scripted::with("one-delta")).await;
}

#[tokio::test]
async fn a_case_that_needs_more_than_is_declared_is_skipped_and_says_why() {
    let verdict = check_case(&Scripted::with("streams-in-secret"), "declared_streaming_is_real").await;
    let why = "the instance does not declare `streams`".to_owned();
    assert_eq!(verdict, Verdict::Skipped(why));
}

struct Skipping(&'static str);

#[async_trait]
impl Fixture for Skipping {
    fn descriptor(&self) -> &'static TransportDescriptor {
        &scripted::DESCRIPTOR
    }

    async fn stage(&self, script: Script) -> Stage {
        Scripted::right().stage(script).await
    }

    fn skips(&self) -> &[(&'static str, &'static str)] {
        match self.0 {
            "known" => &[("usage_is_reported", "the peer counts nothing")],
            _ => &[("no_such_case", "a case that was renamed")],
        }
    }
}

#[tokio::test]
async fn a_skip_is_reported_and_a_skip_of_nothing_is_a_failure() {
    let known = check(&Skipping("known")).await;
    assert!(known.conforms());
    assert!(
        known
            .to_string()
            .contains("skipped  usage_is_reported: the peer counts nothing"),
        "{known}"
    );

    let unknown = check(&Skipping("unknown")).await;
    let failure = Failure::new("the fixture skips a case that the kit does not have");
    assert_eq!(
        unknown.lines.last().map(|line| &line.verdict),
        Some(&Verdict::Failed(failure))
    );
    assert!(!unknown.conforms());
}
