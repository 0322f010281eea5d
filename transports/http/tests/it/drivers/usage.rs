//! Counts, whichever way a provider tells them.

use capsule_api::{Usage, serde_json::json};
use capsule_fakes::{Quirk, Reply, Script, Usage as Tokens};

use super::{DRIVERS, stand};

/// The counts of a turn with one call.
async fn counted(driver: &str, quirk: Option<Quirk>) -> Usage {
    let tokens = |input, output| Tokens {
        input_tokens: input,
        output_tokens: output,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 7,
        reasoning_tokens: 2,
    };
    let with = |reply: Reply| quirk.map_or(reply.clone(), |quirk| reply.quirk(quirk));
    let call = Reply::new().call("a", "greet", json!({})).usage(tokens(100, 20));
    let script = Script::new()
        .then(with(call))
        .then(with(Reply::text("ok").usage(tokens(150, 3))));
    let mut stand = stand(driver, script).await;
    stand.turn("go").await.unwrap();
    stand.log.usage()
}

#[tokio::test]
async fn h_11_counts_replace_within_a_request_and_add_over_requests_wherever_they_stand() {
    for driver in DRIVERS {
        let split = Usage {
            input: 250,
            output: 23,
            cache_read: 14,
            requests: 2,
            ..Usage::default()
        };
        let expected = match driver {
            "anthropic" => split,
            // It does not tell what its cache gave.
            "ollama" => Usage {
                input: 264,
                cache_read: 0,
                ..split
            },
            _ => Usage { reasoning: 4, ..split },
        };
        for quirk in [None, Some(Quirk::UsageWithReason), Some(Quirk::UsageInEveryChunk)] {
            assert_eq!(counted(driver, quirk).await, expected, "{driver} {quirk:?}");
        }
    }
}

#[tokio::test]
async fn h_11_an_answer_without_counts_counts_as_a_request() {
    for driver in ["openai", "openai-responses", "ollama"] {
        let expected = Usage {
            requests: 2,
            ..Usage::default()
        };
        assert_eq!(counted(driver, Some(Quirk::NoUsage)).await, expected, "{driver}");
    }
}
