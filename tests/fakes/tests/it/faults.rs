//! One story per fault.

use capsule_fakes::{Answer, ApiError, Close, Fault, Outcome, Position, Provider, Reply, Script, Step};
use serde_json::json;

use crate::client::{hi, next, open, post, read};

async fn provider(step: impl Into<Step>) -> Provider {
    let provider = Provider::start(Script::new().then(step)).await;
    provider.expect("a free loopback port")
}

fn outcomes(provider: &Provider) -> Vec<Outcome> {
    let requests = provider.requests().into_iter();
    requests.map(|request| request.outcome).collect()
}

#[tokio::test]
async fn statuses_come_with_the_apis_error_object() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (500, "api_error"),
        (503, "api_error"),
        (529, "overloaded_error"),
    ] {
        let provider = provider(Answer::error(status, "no")).await;

        let got = post(&provider, &hi()).await;

        let expected = json!({"type": "error", "request_id": "req_scripted_0001",
                              "error": {"type": kind, "message": "no"}});
        assert_eq!((got.status, got.json()), (status, expected));
        provider.shutdown().await;
    }
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    let provider = provider(Answer::rate_limited(7)).await;

    let got = post(&provider, &hi()).await;

    assert_eq!((got.status, got.header("retry-after")), (429, "7"));
    assert_eq!(got.json()["error"]["type"], "rate_limit_error");
    provider.shutdown().await;
}

#[tokio::test]
async fn pages_come_instead_of_answers() {
    for status in [200, 502] {
        let provider = provider(Answer::html(status, "<html>Bad gateway</html>")).await;

        let got = post(&provider, &hi()).await;

        assert_eq!((got.status, got.text.as_str()), (status, "<html>Bad gateway</html>"));
        assert_eq!(got.header("content-type"), "text/html; charset=utf-8");
        provider.shutdown().await;
    }
}

#[tokio::test]
async fn a_stream_can_come_under_the_wrong_content_type() {
    let provider = provider(Reply::text("hi").content_type("application/json")).await;

    let got = post(&provider, &hi()).await;

    assert_eq!(got.header("content-type"), "application/json");
    assert_eq!(got.joined("text"), "hi");
    provider.shutdown().await;
}

#[tokio::test]
async fn a_cut_after_events_ends_with_exactly_these_events() {
    for (close, complete) in [(Close::Reset, false), (Close::Close, false), (Close::EndOfBody, true)] {
        let provider = provider(Reply::text("hi").cut(Position::Events(3), close)).await;

        let got = post(&provider, &hi()).await;

        let kinds = ["message_start", "ping", "content_block_start"];
        assert_eq!(got.kinds(), kinds, "{close:?}");
        assert_eq!(got.complete, complete, "{close:?}");
        assert_eq!(outcomes(&provider), [Outcome::Cut]);
        provider.assert_clean();
        provider.shutdown().await;
    }
}

#[tokio::test]
async fn a_cut_after_bytes_ends_inside_an_event() {
    let provider = provider(Reply::text("hi").cut(Position::Bytes(20), Close::Close)).await;

    let got = post(&provider, &hi()).await;

    assert_eq!((got.text.as_str(), got.complete), ("event: message_start", false));
    provider.shutdown().await;
}

#[tokio::test]
async fn a_cut_after_events_is_half_of_the_message_for_a_non_streaming_client() {
    let fault = Reply::text("hi").cut(Position::Events(4), Close::EndOfBody);
    let script = Script::new().then(fault).allow_non_streaming();
    let provider = Provider::start(script).await.unwrap();
    let mut body = hi();
    body["stream"] = json!(false);

    let got = post(&provider, &body).await;

    assert!(got.complete && !got.text.is_empty());
    assert!(
        serde_json::from_str::<serde_json::Value>(&got.text).is_err(),
        "{}",
        got.text
    );
    assert_eq!(outcomes(&provider), [Outcome::Cut]);
    provider.shutdown().await;
}

#[tokio::test]
async fn an_error_event_takes_the_place_of_the_rest() {
    let provider = provider(Reply::text("hi").error_event(4, ApiError::overloaded())).await;

    let got = post(&provider, &hi()).await;

    let kinds = [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "error",
    ];
    assert_eq!((got.status, got.complete), (200, true));
    assert_eq!(got.kinds(), kinds);
    assert_eq!(
        got.events()[4]["error"],
        json!({"type": "overloaded_error", "message": "Overloaded"})
    );
    provider.shutdown().await;
}

#[tokio::test]
async fn an_error_event_is_a_status_for_a_non_streaming_client() {
    let fault = Reply::text("hi").error_event(4, ApiError::overloaded());
    let script = Script::new().then(fault).allow_non_streaming();
    let provider = Provider::start(script).await.unwrap();
    let mut body = hi();
    body["stream"] = json!(false);

    let got = post(&provider, &body).await;

    assert_eq!(
        (got.status, &got.json()["error"]["type"]),
        (529, &json!("overloaded_error"))
    );
    provider.shutdown().await;
}

#[tokio::test]
async fn a_connection_can_end_before_any_answer() {
    for close in [Close::Reset, Close::Close] {
        let provider = provider(Fault::CloseBeforeHeaders(close)).await;

        let answer = open(&provider, &hi()).await;

        assert!(answer.is_err(), "{close:?}");
        assert_eq!(outcomes(&provider), [Outcome::Cut]);
        provider.shutdown().await;
    }
}

#[tokio::test]
async fn a_hanging_answer_comes_when_the_gate_opens() {
    let provider = provider(Reply::text("late").hang()).await;
    let release = async {
        provider.gate().reached(1).await;
        assert_eq!(outcomes(&provider), [Outcome::Open]);
        provider.gate().open();
    };

    let body = hi();
    let (got, ()) = tokio::join!(post(&provider, &body), release);

    assert_eq!(got.joined("text"), "late");
    assert_eq!(outcomes(&provider), [Outcome::Answered]);
    provider.shutdown().await;
}

#[tokio::test]
async fn a_stalled_stream_has_sent_what_comes_before_and_goes_on() {
    let provider = provider(Reply::text("hi").stall(Position::Events(1))).await;

    let mut answer = open(&provider, &hi()).await.expect("the head is sent");
    let first = next(&mut answer).await;
    provider.gate().reached(1).await;
    provider.gate().release_one();
    let rest = read(answer).await;

    assert!(first.starts_with("event: message_start\n"), "{first}");
    assert_eq!(rest.joined("text"), "hi");
    assert!(rest.complete);
    provider.shutdown().await;
}

#[tokio::test]
async fn a_client_that_leaves_is_recorded() {
    for step in [Reply::text("hi").hang(), Reply::text("hi").stall(Position::Events(2))] {
        let provider = provider(step).await;
        let body = hi();
        let leave = async {
            let asked = async { read(open(&provider, &body).await.expect("a head")).await };
            tokio::select! {
                _ = asked => panic!("the answer never ends"),
                () = async { provider.gate().reached(1).await } => {}
            }
        };

        leave.await;

        provider.wait_for_dropped(1).await;
        assert_eq!(outcomes(&provider), [Outcome::Dropped]);
        provider.shutdown().await;
    }
}

#[tokio::test]
async fn a_shutdown_ends_what_waits() {
    let provider = provider(Reply::text("hi").stall(Position::Events(2))).await;
    let address = provider.address();
    let answer = open(&provider, &hi()).await.expect("the head is sent");
    provider.gate().reached(1).await;

    provider.shutdown().await;

    assert!(!read(answer).await.complete);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
