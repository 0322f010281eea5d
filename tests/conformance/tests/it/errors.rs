//! What goes wrong at the provider, for as long as it is asked, is the same kind of error whoever asks it.
//!
//! How each transport words and counts its failures is tested beside it; here the whole path of a run is.

use std::ops::RangeInclusive;

use capsule_api::{ErrorKind, Event};
use capsule_fakes::{Answer, Close, Position, Provider, Reply, Script, Step};
use capsule_session::What;

use crate::run::{Bench, DRIVERS, Ran, hello_on_claude, hello_on_driver};

/// A failure that nobody asks about again. The CLI asks a few times more than the driver, in other words each time.
const ONCE: RangeInclusive<usize> = 1..=3;
/// One that is tried again, within bounds: the driver's two retries of these tests, the CLI's three and what it adds to them.
const RETRIED: RangeInclusive<usize> = 2..=8;

/// The provider does this at every request: the run fails with this kind, after so many requests.
fn fails_the_same(step: impl Into<Step>, kind: ErrorKind, requests: &RangeInclusive<usize>) {
    // After cut streams the CLI asks without streaming.
    let script = Script::new().then(step).repeat_last().allow_non_streaming();
    let bench = Bench::new();
    for driver in DRIVERS {
        let provider = bench.provider(script.clone());
        let ran = bench.run(&hello_on_driver(driver, &provider.url()));
        failed(driver, &ran, kind, &provider, requests);
    }
    if let Some(cli) = capsule_fakes::claude() {
        let provider = bench.provider(script);
        let ran = bench.run(&hello_on_claude(&cli, &provider.url()));
        failed("claude", &ran, kind, &provider, requests);
    }
}

fn failed(transport: &str, ran: &Ran, kind: ErrorKind, provider: &Provider, requests: &RangeInclusive<usize>) {
    let what = format!("on {transport}: {:?}", ran.report.outcome);
    assert_eq!(ran.error().kind, kind, "{what}");
    assert!(!ran.error().hint.is_empty(), "{what}");
    assert!(
        requests.contains(&provider.requests().len()),
        "{} requests {what}",
        provider.requests().len()
    );
    // The log ends with the same failure, once, and tells no request as answered.
    let ends = ran.log.iter().filter_map(|entry| match &entry.what {
        What::RunEnd {
            outcome: Err(error), ..
        } => Some(error.code),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [ran.error().code], "{what}");
    let answered = |what: &What| matches!(what, What::Model(Event::RequestEnded { .. }));
    assert!(
        !ran.log.iter().any(|entry| answered(&entry.what)),
        "{what}\n{:#?}",
        ran.log
    );
}

fn half() -> Reply {
    Reply::text(["half ", "an ", "answer ", "that ", "goes ", "on"].as_slice())
}

#[test]
fn a_refused_key_is_an_auth_error() {
    fails_the_same(Answer::error(401, "invalid x-api-key"), ErrorKind::Auth, &ONCE);
}

#[test]
fn a_refused_request_is_a_bad_request() {
    fails_the_same(
        Answer::error(400, "bad request on purpose"),
        ErrorKind::BadRequest,
        &ONCE,
    );
}

#[test]
fn a_provider_that_stays_overloaded_is_overloaded_after_a_bounded_number_of_tries() {
    fails_the_same(Answer::error(529, "Overloaded"), ErrorKind::Overloaded, &RETRIED);
}

#[test]
fn a_stream_that_is_cut_each_time_is_the_networks() {
    let cut = half().cut(Position::Events(4), Close::EndOfBody);
    fails_the_same(cut, ErrorKind::Network, &RETRIED);
}

#[test]
fn a_connection_that_breaks_each_time_is_the_networks() {
    let cut = half().cut(Position::Events(4), Close::Reset);
    fails_the_same(cut, ErrorKind::Network, &RETRIED);
}

#[test]
fn a_web_page_in_place_of_an_answer_is_a_protocol_error() {
    let page = Answer::html(
        200,
        "<html><title>Sign in</title><body>Welcome to the network</body></html>",
    );
    fails_the_same(page, ErrorKind::Protocol, &ONCE);
}
