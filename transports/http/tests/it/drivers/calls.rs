//! Which pieces make which call, and which calls run.

use capsule_api::{FoldedCall, Outcome, serde_json::json};
use capsule_fakes::{Quirk, Reply, Script};

use super::{DRIVERS, results, stand};
use crate::stand::completed;

/// Replies of which only quirks differ; `None` is the documented form.
fn with(reply: Reply, quirk: Option<Quirk>) -> Reply {
    match quirk {
        Some(quirk) => reply.quirk(quirk),
        None => reply,
    }
}

#[tokio::test]
async fn h_01_two_calls_stay_two_without_an_index_and_with_the_same_one() {
    for driver in DRIVERS {
        for quirk in [None, Some(Quirk::NoIndex), Some(Quirk::IndexZero)] {
            let calls =
                Reply::new()
                    .call("a", "greet", json!({"name": "Ada"}))
                    .call("b", "greet", json!({"name": "Bo"}));
            let script = Script::new().then(with(calls, quirk)).then(Reply::text("ok"));
            let mut stand = stand(driver, script).await;
            assert_eq!(stand.turn("go").await.unwrap(), completed("ok"), "{driver} {quirk:?}");
            stand.provider.assert_clean();
            assert_eq!(results(&stand, 1), ["Hello, Ada!", "Hello, Bo!"], "{driver} {quirk:?}");
        }
    }
}

#[tokio::test]
async fn h_01_whole_arguments_after_their_pieces_are_not_doubled() {
    for driver in DRIVERS {
        let calls = Reply::text("So:")
            .call("a", "greet", json!({"name": "Ada"}))
            .call("b", "greet", json!({"name": "Bo"}))
            .quirk(Quirk::WholeArguments);
        let mut stand = stand(driver, Script::new().then(calls).then(Reply::text("ok"))).await;
        assert_eq!(stand.turn("go").await.unwrap(), completed("ok"), "{driver}");
        assert_eq!(results(&stand, 1), ["Hello, Ada!", "Hello, Bo!"], "{driver}");
    }
}

#[tokio::test]
async fn h_03_a_call_cut_by_the_output_limit_is_never_run() {
    for driver in DRIVERS {
        for pieces in [&["{\"name\": \"/a"][..], &["{\"name\": \"whole\"}"][..]] {
            let reply = Reply::text("I was ab")
                .call_pieces("a", "greet", pieces)
                .stop("max_tokens");
            let mut stand = stand(driver, Script::new().then(reply)).await;
            let partial = "I was ab".to_owned();
            assert_eq!(
                stand.turn("go").await.unwrap(),
                Outcome::Truncated { partial },
                "{driver}"
            );
            assert_eq!(stand.log.fold().calls(), Vec::<&FoldedCall>::new(), "{driver}");
        }
    }
}

#[tokio::test]
async fn h_03_half_a_call_with_the_stop_of_a_whole_one_is_an_error_and_never_run() {
    for driver in DRIVERS {
        let reply = Reply::new().call_pieces("a", "greet", &["{\"path\":", "\"/a"]);
        let mut stand = stand(driver, Script::new().then(reply)).await;
        let error = stand.turn("go").await.unwrap_err();
        let ran = stand.log.fold().calls().len();
        assert_eq!((error.code, ran), ("http-call-incomplete", 0), "{driver}");
    }
}

#[tokio::test]
async fn h_05_calls_win_over_a_stop_that_says_the_turn_is_over() {
    for driver in DRIVERS {
        let call = Reply::new().call("a", "greet", json!({"name": "Ada"})).stop("end_turn");
        let mut stand = stand(driver, Script::new().then(call).then(Reply::text("greeted"))).await;
        assert_eq!(stand.turn("go").await.unwrap(), completed("greeted"), "{driver}");
        assert_eq!(results(&stand, 1), ["Hello, Ada!"], "{driver}");
    }
}

#[tokio::test]
async fn h_12_empty_and_repeated_ids_are_kept_apart_by_ids_of_our_own() {
    for driver in DRIVERS {
        let calls = Reply::new()
            .call("same", "greet", json!({"name": "A"}))
            .call("same", "greet", json!({"name": "B"}))
            .call("", "greet", json!({"name": "C"}));
        let again = Reply::new().call("same", "greet", json!({"name": "D"}));
        let script = Script::new().then(calls).then(again).then(Reply::text("ok"));
        let mut stand = stand(driver, script).await;
        assert_eq!(stand.turn("go").await.unwrap(), completed("ok"), "{driver}");
        stand.provider.assert_clean();
        let told = |id: &str, name: &str| {
            // Ollama's API names the tool, not the call.
            let id = if driver == "ollama" { "demo__greet" } else { id };
            (id.to_owned(), format!("Hello, {name}!"))
        };
        assert_eq!(
            stand.provider.requests()[2].results(),
            [
                told("same", "A"),
                told("call_1", "B"),
                told("call_2", "C"),
                told("call_3", "D")
            ],
            "{driver}"
        );
    }
}

#[tokio::test]
async fn h_12_an_id_that_comes_after_the_arguments_is_the_calls_id() {
    for driver in DRIVERS {
        let calls = Reply::new()
            .call("a", "greet", json!({"name": "Ada"}))
            .call("b", "greet", json!({"name": "Bo"}))
            .quirk(Quirk::LateId);
        let mut stand = stand(driver, Script::new().then(calls).then(Reply::text("ok"))).await;
        assert_eq!(stand.turn("go").await.unwrap(), completed("ok"), "{driver}");
        stand.provider.assert_clean();
        let ids: Vec<_> = stand.provider.requests()[1]
            .results()
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        let expected = if driver == "ollama" {
            ["demo__greet"; 2]
        } else {
            ["a", "b"]
        };
        assert_eq!(ids, expected, "{driver}");
        assert_eq!(results(&stand, 1), ["Hello, Ada!", "Hello, Bo!"], "{driver}");
    }
}
