//! What goes wrong at a provider, and what becomes of it.

use std::time::Duration;

use capsule_api::{Cancel, ErrorKind, Event, serde_json::json};
use capsule_fakes::{Answer, ApiError, Close, Position, Reply, Script, Step};

use super::{DRIVERS, code, stand};
use crate::stand::{Stand, completed, spec};

/// One failure, then a whole answer; the wait passes at once. Returns what was told of the retry.
async fn failing_once(driver: &str, fault: impl Into<Step>) -> (Stand, ErrorKind, Duration) {
    let script = Script::new().then(fault).then(Reply::text("whole"));
    let mut stand = stand(driver, script).await;
    let running = stand.start("go", Cancel::new());
    let waited = stand.pass_retry(1).await;
    assert_eq!(stand.end(running).await.unwrap(), completed("whole"), "{driver}");
    let causes = stand.log.events().into_iter().filter_map(|event| match event {
        Event::Retrying { cause, .. } => Some(cause),
        _ => None,
    });
    let causes: Vec<_> = causes.collect();
    assert_eq!(causes.len(), 1, "{driver}");
    (stand, causes[0], waited)
}

#[tokio::test]
async fn h_02_a_stream_that_breaks_after_output_is_taken_back_and_tried_again() {
    let reply = || Reply::text(["half an ", "answer"]).call("a", "greet", json!({}));
    for driver in DRIVERS {
        for (fault, expected) in [
            (reply().error_event(3, ApiError::overloaded()), ErrorKind::Overloaded),
            (reply().cut(Position::Content, Close::EndOfBody), ErrorKind::Network),
            (reply().cut(Position::Content, Close::Close), ErrorKind::Network),
            (reply().cut(Position::Bytes(600), Close::Reset), ErrorKind::Network),
        ] {
            let shown = format!("{driver}: {fault:?}");
            let (stand, cause, _) = failing_once(driver, fault).await;
            let fold = stand.log.fold();
            assert_eq!(
                (cause, fold.texts(), fold.calls().len()),
                (expected, vec!["whole"], 0),
                "{shown}"
            );
        }
    }
}

#[tokio::test]
async fn h_02_without_tries_left_the_partial_text_stays_partial_and_nothing_is_an_answer() {
    for driver in DRIVERS {
        let cut = Reply::text("half an answer").cut(Position::Content, Close::EndOfBody);
        let settings = json!({"driver": driver, "retry": {"max_retries": 0}});
        let mut stand = Stand::with(Script::new().then(cut), &settings, spec()).await;
        let error = stand.turn("one").await.unwrap_err();
        assert_eq!(
            (error.code, error.kind),
            ("http-stream-cut", ErrorKind::Network),
            "{driver}"
        );
        assert_eq!(stand.log.fold().texts(), ["half an answer"], "{driver}");
        let whole = |event: &Event| matches!(event, Event::Block { .. });
        assert!(!stand.log.events().iter().any(whole), "{driver}");
    }
}

#[tokio::test]
async fn h_07_statuses_that_pass_are_tried_again_and_a_wish_for_the_delay_is_honoured() {
    for driver in DRIVERS {
        for (status, expected) in [
            (429, ErrorKind::RateLimited),
            (529, ErrorKind::Overloaded),
            (503, ErrorKind::Overloaded),
            (500, ErrorKind::Overloaded),
        ] {
            let (_, cause, _) = failing_once(driver, Answer::error(status, "later")).await;
            assert_eq!(cause, expected, "{driver} {status}");
        }
        let (_, _, waited) = failing_once(driver, Answer::rate_limited(7)).await;
        assert!((7..=8).contains(&waited.as_secs()), "{driver} {waited:?}");
        // The stand's clock starts at this date.
        let date = Answer::error(503, "later").header("retry-after", "Sun, 09 Sep 2001 01:47:10 GMT");
        let (_, _, waited) = failing_once(driver, date).await;
        assert!((30..=31).contains(&waited.as_secs()), "{driver} {waited:?}");
    }
}

#[tokio::test]
async fn what_will_fail_again_is_not_tried_again() {
    for driver in DRIVERS {
        let quota = Answer::error_of_kind(429, "insufficient_quota", "You exceeded your current quota");
        let full = Answer::error_of_kind(
            400,
            "context_length_exceeded",
            "This model's maximum context length is 8 tokens",
        );
        let mut failures = vec![
            (Answer::error(401, "no such key"), "auth"),
            (Answer::error(400, "messages: nonsense"), "bad-request"),
            (Answer::error(404, "no model claude-test"), "not-found"),
            (Answer::error(501, "no"), "server"),
        ];
        if driver.starts_with("openai") {
            failures.extend([(quota, "quota"), (full, "context")]);
        }
        for (answer, what) in failures {
            let mut stand = stand(driver, Script::new().then(answer)).await;
            let error = stand.turn("go").await.unwrap_err();
            assert_eq!(
                (error.code, stand.provider.requests().len()),
                (code(driver, what).as_str(), 1),
                "{driver}"
            );
        }
    }
}

#[tokio::test]
async fn h_15_a_redirect_of_the_endpoint_is_an_error_and_not_followed() {
    for driver in DRIVERS {
        let redirect =
            Answer::text(307, "text/plain", "").header("location", "http://169.254.169.254/latest/meta-data");
        let mut stand = stand(driver, Script::new().then(redirect)).await;
        let error = stand.turn("go").await.unwrap_err();
        assert_eq!(
            (error.kind, stand.provider.requests().len()),
            (ErrorKind::Protocol, 1),
            "{driver}: {error}"
        );
    }
}

#[tokio::test]
async fn h_15_an_endpoint_that_is_readable_on_the_way_is_refused() {
    use std::{path::Path, sync::Arc};
    for driver in DRIVERS {
        for endpoint in [
            "http://169.254.169.254",
            "http://127.0.0.1@x.example",
            "https://user:pw@x.example",
        ] {
            let settings = json!({"driver": driver, "endpoint": endpoint, "api_key": "sk-dummy-key"});
            let clock = Arc::new(crate::time::ManualClock::new());
            let error = crate::stand::build(&settings, Path::new("."), clock).err().unwrap();
            assert_eq!(error.code, code(driver, "endpoint"), "{driver} {endpoint}");
        }
    }
}
