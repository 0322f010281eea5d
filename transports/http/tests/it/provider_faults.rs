//! What goes wrong at a provider, and what becomes of it.

use std::time::Duration;

use capsule_api::{Cancel, ErrorKind, Event, serde_json::json};
use capsule_fakes::{Answer, ApiError, Close, Fault, Position, Reply, Script, Step};

use crate::stand::{Stand, completed, spec};

fn retries(stand: &Stand) -> Vec<(u32, ErrorKind)> {
    let events = stand.log.events().into_iter();
    events
        .filter_map(|event| match event {
            Event::Retrying { attempt, cause, .. } => Some((attempt, cause)),
            _ => None,
        })
        .collect()
}

/// One failure, then a whole answer; the waits pass at once.
async fn failing_once(fault: impl Into<Step>) -> (Stand, Duration) {
    let mut stand = Stand::new(Script::new().then(fault).then(Reply::text("whole"))).await;
    let running = stand.start("go", Cancel::new());
    let waited = stand.pass_retry(1).await;
    assert_eq!(stand.end(running).await.unwrap(), completed("whole"));
    (stand, waited)
}

#[tokio::test]
async fn h_02_a_stream_that_breaks_after_output_is_taken_back_and_tried_again() {
    let reply = || Reply::text(["half an ", "answer"]).call("a", "greet", json!({}));
    for (fault, cause) in [
        (reply().error_event(4, ApiError::overloaded()), ErrorKind::Overloaded),
        (reply().cut(Position::Events(8), Close::EndOfBody), ErrorKind::Network),
        (reply().cut(Position::Events(4), Close::Close), ErrorKind::Network),
        (reply().cut(Position::Bytes(600), Close::Reset), ErrorKind::Network),
        (Fault::CloseBeforeHeaders(Close::Reset), ErrorKind::Network),
    ] {
        let shown = format!("{fault:?}");
        let (stand, _) = failing_once(fault).await;
        assert_eq!(retries(&stand), [(1, cause)], "{shown}");
        let fold = stand.log.fold();
        assert_eq!((fold.texts(), fold.calls().len()), (vec!["whole"], 0), "{shown}");
    }
}

#[tokio::test]
async fn h_02_what_was_said_is_retracted_before_the_retry_is_told() {
    let reply = Reply::text("half").call("a", "greet", json!({}));
    let (stand, _) = failing_once(reply.error_event(7, ApiError::overloaded())).await;
    let kinds: Vec<_> = stand
        .log
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::Retracted { .. } => Some("retracted"),
            Event::CallAbandoned { .. } => Some("abandoned"),
            Event::Retrying { .. } => Some("retrying"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["retracted", "abandoned", "retrying"]);
}

#[tokio::test]
async fn h_02_without_tries_left_the_partial_text_stays_partial_and_nothing_is_an_answer() {
    let script = Script::new()
        .then(Reply::text("half an answer").cut(Position::Events(5), Close::EndOfBody))
        .then(Reply::text("ok"));
    let mut stand = Stand::with(script, &json!({"retry": {"max_retries": 0}}), spec()).await;
    let error = stand.turn("one").await.unwrap_err();
    assert_eq!((error.code, error.kind), ("http-stream-cut", ErrorKind::Network));
    assert_eq!(stand.log.fold().texts(), ["half an answer"]);
    assert!(
        !stand
            .log
            .events()
            .iter()
            .any(|event| matches!(event, Event::Block { .. }))
    );
    // A failed turn that nothing was answered in is not part of the conversation.
    assert_eq!(stand.turn("two").await.unwrap(), completed("ok"));
    assert_eq!(
        stand.messages(1),
        json!([{"role": "user", "content": [{"type": "text", "text": "two"}]}])
    );
}

#[tokio::test]
async fn h_04_the_answer_is_the_same_however_its_bytes_are_cut() {
    use capsule_fakes::Chunking;
    for size in [1, 2, 3, 7] {
        let reply = Reply::text("Grüße, 世界 🦀").call("a", "greet", json!({"name": "🦀"}));
        let script = Script::new()
            .then(reply.chunking(Chunking::Bytes(size)))
            .then(Reply::text("ok"));
        let mut stand = Stand::new(script).await;
        assert_eq!(stand.turn("go").await.unwrap(), completed("ok"));
        let fold = stand.log.fold();
        assert_eq!(fold.texts(), ["Grüße, 世界 🦀", "ok"]);
        assert_eq!(fold.calls()[0].result.clone().unwrap().1, "Hello, 🦀!");
    }
}

#[tokio::test]
async fn h_07_statuses_that_pass_are_tried_again_and_each_try_is_told() {
    for (status, cause) in [
        (429, ErrorKind::RateLimited),
        (529, ErrorKind::Overloaded),
        (503, ErrorKind::Overloaded),
        (500, ErrorKind::Overloaded),
    ] {
        let (stand, _) = failing_once(Answer::error(status, "later")).await;
        assert_eq!(retries(&stand), [(1, cause)], "{status}");
    }
}

#[tokio::test]
async fn h_07_retry_after_is_honoured_in_seconds_and_as_a_date_up_to_the_longest_delay() {
    let (_, waited) = failing_once(Answer::rate_limited(7)).await;
    assert!((7..=8).contains(&waited.as_secs()), "{waited:?}");
    // The stand's clock starts at this date.
    let date = Answer::error(503, "later").header("retry-after", "Sun, 09 Sep 2001 01:47:10 GMT");
    let (_, waited) = failing_once(date).await;
    assert!((30..=31).contains(&waited.as_secs()), "{waited:?}");
    // A delay that nothing else sleeps for: the client keeps idle connections for the 60 s of the default.
    let settings = json!({"retry": {"max_delay": "47s"}});
    let script = Script::new().then(Answer::rate_limited(300)).then(Reply::text("whole"));
    let mut stand = Stand::with(script, &settings, spec()).await;
    let running = stand.start("go", Cancel::new());
    assert_eq!(stand.pass_retry(1).await, Duration::from_secs(47));
    assert_eq!(stand.end(running).await.unwrap(), completed("whole"));
}

#[tokio::test]
async fn h_07_a_wait_beyond_the_budget_of_time_is_an_error_at_once() {
    let mut stand = Stand::new(Script::new().then(Answer::rate_limited(3600))).await;
    let error = stand.turn("go").await.unwrap_err();
    assert_eq!(
        (error.kind, stand.provider.requests().len()),
        (ErrorKind::RateLimited, 1)
    );
}

#[tokio::test]
async fn h_07_the_tries_end_with_the_budget() {
    let mut stand = Stand::with(
        Script::new().then(Answer::error(529, "busy")).repeat_last(),
        &json!({"retry": {"max_retries": 2, "initial_delay": "10s", "max_delay": "20s"}}),
        spec(),
    )
    .await;
    let running = stand.start("go", Cancel::new());
    for n in 1..=2 {
        stand.pass_retry(n).await;
    }
    let error = stand.end(running).await.unwrap_err();
    assert_eq!(
        (error.code, stand.provider.requests().len()),
        ("anthropic-overloaded", 3)
    );
}

#[tokio::test]
async fn what_will_fail_again_is_not_tried_again() {
    for (answer, code) in [
        (Answer::error(401, "invalid x-api-key"), "anthropic-auth"),
        (Answer::error(400, "messages: nonsense"), "anthropic-bad-request"),
        (Answer::error(400, "Your credit balance is too low"), "anthropic-quota"),
        (
            Answer::error(400, "prompt is too long: 210000 tokens > 200000 maximum"),
            "anthropic-context",
        ),
        (Answer::error(404, "model: claude-test"), "anthropic-not-found"),
        (Answer::error(501, "no"), "anthropic-server"),
    ] {
        let mut stand = Stand::new(Script::new().then(answer)).await;
        let error = stand.turn("go").await.unwrap_err();
        assert_eq!((error.code, stand.provider.requests().len()), (code, 1));
    }
}

#[tokio::test]
async fn a_page_in_place_of_a_stream_is_told_as_what_it_is() {
    let page = "<html><head><title>Sign in</title></head><body>to the guest network</body></html>";
    let mut stand = Stand::new(Script::new().then(Answer::html(200, page))).await;
    let error = stand.turn("go").await.unwrap_err();
    assert_eq!(error.code, "http-not-a-stream");
    assert!(error.message.ends_with("Sign in to the guest network"), "{error}");

    let mut stand = Stand::new(Script::new().then(Answer::html(404, page))).await;
    let error = stand.turn("go").await.unwrap_err();
    assert_eq!(error.code, "anthropic-protocol");
}

#[tokio::test]
async fn an_error_that_quotes_the_key_does_not_show_it() {
    let mut stand = Stand::new(Script::new().then(Answer::error(401, "invalid key sk-dummy-key"))).await;
    let error = stand.turn("go").await.unwrap_err();
    assert!(!format!("{error:?}").contains("sk-dummy-key"));
    assert!(error.message.contains("[redacted]"), "{error}");
}

#[tokio::test]
async fn a_provider_that_falls_silent_is_given_up_after_the_idle_time_out() {
    for fault in [
        Reply::text("late").hang(),
        Reply::text("late").stall(Position::Events(4)),
    ] {
        let settings = json!({"idle_timeout": "30s", "retry": {"max_retries": 0}});
        let mut stand = Stand::with(Script::new().then(fault), &settings, spec()).await;
        let running = stand.start("go", Cancel::new());
        stand.provider.gate().reached(1).await;
        // Each piece that still arrives starts the time-out anew.
        let error = loop {
            if running.is_finished() {
                break stand.end(running).await.unwrap_err();
            }
            tokio::select! {
                _ = stand.clock.pass(Duration::from_secs(30)) => {}
                () = tokio::task::yield_now() => {}
            }
        };
        assert_eq!((error.code, error.kind), ("http-idle", ErrorKind::Network));
    }
}
