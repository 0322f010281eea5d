//! The loop: calls, results, limits, outcomes.

use capsule_api::{
    Billing, BlockId, BlockKind, CallId, Event, Limit, Limits, Outcome, ToolStatus, Usage, serde_json::json,
};
use capsule_fakes::{Reply, Script, Usage as Tokens};

use crate::stand::{Stand, completed, spec};

#[tokio::test]
async fn a_call_is_run_and_its_result_goes_back() {
    let script = Script::new()
        .then(Reply::text("I will greet.").call("toolu_1", "greet", json!({"name": "Ada"})))
        .then(Reply::text("Done."));
    let mut stand = Stand::new(script).await;

    assert_eq!(stand.turn("Greet Ada").await.unwrap(), completed("Done."));

    stand.provider.assert_clean();
    assert_eq!(
        stand.messages(1),
        json!([
            {"role": "user", "content": [{"type": "text", "text": "Greet Ada"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I will greet."},
                {"type": "tool_use", "id": "toolu_1", "name": "demo__greet", "input": {"name": "Ada"}}
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "Hello, Ada!"}]}
            ]}
        ])
    );
    let fold = stand.log.fold();
    assert_eq!(fold.texts(), ["I will greet.", "Done."]);
    assert_eq!(
        fold.calls()[0].result,
        Some((ToolStatus::Passed, "Hello, Ada!".to_owned()))
    );
}

#[tokio::test]
async fn a_turn_is_told_event_by_event() {
    let mut stand = Stand::new(
        Script::new()
            .then(Reply::text("Hello.").call("toolu_1", "greet", json!({})))
            .then(Reply::text("Bye.")),
    )
    .await;
    stand.turn("Hi").await.unwrap();

    let call = CallId::new("toolu_1");
    let block = |n, text: &str| Event::Block {
        block: BlockId(n),
        kind: BlockKind::Text,
        text: text.to_owned(),
    };
    let told = stand.log.events().into_iter();
    let told: Vec<_> = told
        .filter(|event| {
            !matches!(
                event,
                Event::Delta { .. } | Event::CallProgress { .. } | Event::Usage(_)
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            Event::Started {
                model: Some("claude-test".to_owned()),
                peer: Some(format!("anthropic at {}", stand.provider.address())),
                billing: Billing::ApiKey,
                resumed: false,
            },
            Event::RequestStarted { n: 1 },
            Event::CallStarted {
                call: call.clone(),
                name: "greet".to_owned()
            },
            block(0, "Hello."),
            Event::Call {
                call,
                name: "greet".to_owned(),
                arguments: json!({})
            },
            Event::RequestEnded {
                n: 1,
                stop: "tool_call".to_owned()
            },
            Event::RequestStarted { n: 2 },
            block(1, "Bye."),
            Event::RequestEnded {
                n: 2,
                stop: "end_turn".to_owned()
            },
        ]
    );
}

#[tokio::test]
async fn calls_of_one_answer_run_at_the_same_time_and_answer_in_their_order() {
    // `meet` ends only once two of its calls run.
    let script = Script::new()
        .then(
            Reply::new()
                .call("a", "meet", json!({}))
                .call("b", "fail", json!({}))
                .call("c", "meet", json!({})),
        )
        .then(Reply::text("ok"));
    let mut stand = Stand::new(script).await;

    assert_eq!(stand.turn("meet").await.unwrap(), completed("ok"));

    let results = stand.messages(1)[2]["content"].clone();
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    assert_eq!(
        results,
        json!([
            {"type": "tool_result", "tool_use_id": "a", "content": text("met")},
            {"type": "tool_result", "tool_use_id": "b", "content": text("it did not work"), "is_error": true},
            {"type": "tool_result", "tool_use_id": "c", "content": text("met")}
        ])
    );
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_answered_by_the_dispatch() {
    let script = Script::new()
        .then(Reply::new().call_raw_name("a", "no_such", json!({})))
        .then(Reply::text("sorry"));
    let mut stand = Stand::new(script).await;
    assert_eq!(stand.turn("try").await.unwrap(), completed("sorry"));
    assert_eq!(
        stand.log.fold().calls()[0].result,
        Some((ToolStatus::Unknown, "there is no tool no_such".to_owned()))
    );
}

#[tokio::test]
async fn max_turns_is_exact() {
    let script = Script::new()
        .then(Reply::new().call_pieces("", "greet", &["{}"]))
        .repeat_last();
    let mut limited = spec();
    limited.limits = Limits {
        requests: 3,
        ..Limits::default()
    };
    let mut stand = Stand::with(script, &json!({}), limited).await;
    let outcome = stand.turn("again and again").await.unwrap();
    assert_eq!(
        (outcome, stand.provider.requests().len()),
        (Outcome::LimitReached { which: Limit::Requests }, 3)
    );
}

#[tokio::test]
async fn h_03_a_call_cut_by_the_output_limit_is_never_run() {
    for pieces in [&["{\"name\": \"/a"][..], &["{\"name\": \"whole\"}"][..]] {
        let script = Script::new().then(
            Reply::text("I was ab")
                .call_pieces("a", "greet", pieces)
                .stop("max_tokens"),
        );
        let mut stand = Stand::new(script).await;
        let outcome = stand.turn("go").await.unwrap();
        assert_eq!(
            outcome,
            Outcome::Truncated {
                partial: "I was ab".to_owned()
            }
        );
        assert_eq!(stand.log.fold().calls(), Vec::<&capsule_api::FoldedCall>::new());
        assert!(
            stand
                .log
                .events()
                .contains(&Event::CallAbandoned { call: CallId::new("a") })
        );
    }
}

#[tokio::test]
async fn h_03_half_a_call_with_the_stop_of_a_whole_one_is_an_error_and_never_run() {
    let script = Script::new().then(Reply::new().call_pieces("a", "greet", &["{\"path\":", "\"/a"]));
    let mut stand = Stand::new(script).await;
    let error = stand.turn("go").await.unwrap_err();
    assert_eq!(
        (error.code, stand.log.fold().calls().len()),
        ("http-call-incomplete", 0)
    );
    assert!(
        stand
            .log
            .events()
            .contains(&Event::CallAbandoned { call: CallId::new("a") })
    );
}

#[tokio::test]
async fn h_05_calls_win_over_a_stop_that_says_the_turn_is_over() {
    let script = Script::new()
        .then(Reply::new().call("a", "greet", json!({"name": "Ada"})).stop("end_turn"))
        .then(Reply::text("greeted"));
    let mut stand = Stand::new(script).await;
    assert_eq!(stand.turn("go").await.unwrap(), completed("greeted"));
}

#[tokio::test]
async fn t_05_no_arguments_are_an_empty_object() {
    let script = Script::new()
        .then(Reply::new().call_pieces("a", "greet", &[""]))
        .then(Reply::text("ok"));
    let mut stand = Stand::new(script).await;
    assert_eq!(stand.turn("go").await.unwrap(), completed("ok"));
    assert_eq!(stand.log.fold().calls()[0].arguments, json!({}));
    stand.provider.assert_clean();
}

#[tokio::test]
async fn h_09_reasoning_goes_back_unchanged_and_in_order() {
    let script = Script::new()
        .then(
            Reply::new()
                .thinking("Let me see.", "seal-1")
                .redacted_thinking("b3BhcXVl")
                .and_text("Greeting.")
                .call("a", "greet", json!({"name": "Ada"})),
        )
        .then(Reply::text("ok"));
    let mut stand = Stand::new(script).await;
    stand.turn("go").await.unwrap();
    stand.provider.assert_clean();
    assert_eq!(
        stand.messages(1)[1]["content"],
        json!([
            {"type": "thinking", "thinking": "Let me see.", "signature": "seal-1"},
            {"type": "redacted_thinking", "data": "b3BhcXVl"},
            {"type": "text", "text": "Greeting."},
            {"type": "tool_use", "id": "a", "name": "demo__greet", "input": {"name": "Ada"}}
        ])
    );
    assert_eq!(stand.log.fold().thinking(), ["Let me see."]);
}

#[tokio::test]
async fn h_10_a_refusal_is_its_own_outcome_and_leaves_no_trace_in_the_conversation() {
    let script = Script::new()
        .then(Reply::text("I would rather not.").stop("refusal"))
        .then(Reply::text("Hello."));
    let mut stand = Stand::new(script).await;
    let outcome = stand.turn("something bad").await.unwrap();
    assert_eq!(
        outcome,
        Outcome::Refused {
            text: "I would rather not.".to_owned()
        }
    );
    assert_eq!(stand.turn("hello").await.unwrap(), completed("Hello."));
    assert_eq!(
        stand.messages(1),
        json!([{"role": "user", "content": [{"type": "text", "text": "hello"}]}])
    );
}

#[tokio::test]
async fn h_10_a_pause_goes_on_and_an_unknown_reason_is_an_error_that_names_it() {
    let script = Script::new()
        .then(Reply::text("Working…").stop("pause_turn"))
        .then(Reply::text("done"))
        .then(Reply::text("half").stop("unknown_new"));
    let mut stand = Stand::new(script).await;
    assert_eq!(stand.turn("go").await.unwrap(), completed("done"));
    assert_eq!(
        stand.messages(1)[1]["content"],
        json!([{"type": "text", "text": "Working…"}])
    );
    let error = stand.turn("more").await.unwrap_err();
    assert_eq!(error.code, "anthropic-stop-unknown");
    assert!(error.message.contains("`unknown_new`"), "{error}");
}

#[tokio::test]
async fn h_11_cumulative_counts_replace_within_a_request_and_add_over_requests() {
    let tokens = |input, output| Tokens {
        input_tokens: input,
        output_tokens: output,
        cache_creation_input_tokens: 5,
        cache_read_input_tokens: 7,
        ..Tokens::default()
    };
    let script = Script::new()
        .then(Reply::new().call("a", "greet", json!({})).usage(tokens(100, 20)))
        .then(Reply::text("ok").usage(tokens(150, 3)));
    let mut stand = Stand::new(script).await;
    stand.turn("go").await.unwrap();
    let expected = Usage {
        input: 250,
        output: 23,
        cache_read: 14,
        cache_write: 10,
        reasoning: 0,
        requests: 2,
        cost_micros: None,
    };
    assert_eq!(stand.log.usage(), expected);
}

#[tokio::test]
async fn h_12_empty_and_repeated_ids_are_kept_apart_by_ids_of_our_own() {
    let script = Script::new()
        .then(
            Reply::new()
                .call("same", "greet", json!({"name": "A"}))
                .call("same", "greet", json!({"name": "B"}))
                .call("", "greet", json!({"name": "C"})),
        )
        .then(Reply::new().call("same", "greet", json!({"name": "D"})))
        .then(Reply::text("ok"));
    let mut stand = Stand::new(script).await;
    assert_eq!(stand.turn("go").await.unwrap(), completed("ok"));
    stand.provider.assert_clean();
    let requests = stand.provider.requests();
    let results: Vec<_> = requests[2]
        .blocks("tool_result")
        .into_iter()
        .map(|result| {
            (
                result["tool_use_id"].as_str().unwrap().to_owned(),
                result["content"][0]["text"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let told = |id: &str, name: &str| (id.to_owned(), format!("Hello, {name}!"));
    assert_eq!(
        results,
        [
            told("same", "A"),
            told("call_1", "B"),
            told("call_2", "C"),
            told("call_3", "D")
        ]
    );
}
