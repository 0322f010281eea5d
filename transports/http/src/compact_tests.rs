use capsule_api::serde_json::json;

use super::*;

fn user(text: &str) -> Message {
    Message::User {
        content: vec![ContentBlock::text(text)],
    }
}

fn agent(content: Vec<ContentBlock>) -> Message {
    Message::Assistant { content }
}

fn call(id: &str) -> ContentBlock {
    ContentBlock::ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        input: json!({"path": id}),
    }
}

fn result(id: &str, is_error: bool, text: &str) -> Message {
    Message::Tool {
        tool_call_id: id.to_owned(),
        is_error,
        content: vec![ContentBlock::text(text)],
    }
}

/// Two turns; the second has two rounds of calls.
fn talk() -> Vec<Message> {
    vec![
        user("one"),
        agent(vec![ContentBlock::text("first")]),
        user("two"),
        agent(vec![call("a"), call("b")]),
        result("a", false, "A"),
        result("b", true, "B"),
        agent(vec![call("c")]),
        result("c", false, "C"),
    ]
}

#[test]
fn a_cut_never_parts_a_call_from_its_result() {
    let messages = talk();
    let cuts: Vec<usize> = (0..=characters(&messages))
        .filter_map(|keep| plan(&messages, keep))
        .map(|plan| plan.cut)
        .collect();
    let mut places = cuts;
    places.dedup();
    // A cut at 3 would save nothing over one at 2: the question of that turn stays anyway.
    assert_eq!(places, [6, 2]);
}

#[test]
fn a_question_too_large_to_stay_goes_with_its_turn() {
    let mut messages = talk();
    messages[0] = user(&"long ".repeat(1000));
    assert_eq!(plan(&messages, 300), Some(Plan { cut: 2, asked: None }));
}

#[test]
fn a_cut_within_a_turn_keeps_what_the_user_asked_in_it() {
    let messages = talk();
    assert_eq!(plan(&messages, 0), Some(Plan { cut: 6, asked: Some(2) }));
    let from_two = characters(&messages[2..]);
    assert_eq!(plan(&messages, from_two), Some(Plan { cut: 2, asked: None }));
}

#[test]
fn there_is_nothing_to_summarise_in_one_question_and_its_first_calls() {
    assert_eq!(plan(&[], 0), None);
    assert_eq!(plan(&[user("one")], 0), None);
    assert_eq!(plan(&talk()[2..6], 0), None);
}

#[test]
fn the_transcript_names_who_said_what() {
    assert_eq!(
        transcript(&talk(), 10_000),
        "[user] one\n[agent] first\n[user] two\n[call of read] {\"path\":\"a\"}\n[call of read] {\"path\":\"b\"}\n\
         [result] A\n[failed result] B\n[call of read] {\"path\":\"c\"}\n[result] C"
    );
}

#[test]
fn long_pieces_and_long_transcripts_lose_their_middle() {
    let long = "é".repeat(LONGEST_PIECE);
    let one = transcript(&[user(&long)], usize::MAX);
    assert!(
        one.len() < LONGEST_PIECE + 100 && one.contains("left out"),
        "{}",
        one.len()
    );
    let many: Vec<Message> = (0..100).map(|n| user(&format!("message {n}"))).collect();
    let all = transcript(&many, 200);
    assert!(all.len() < 250, "{all}");
    assert!(
        all.starts_with("[user] message 0\n") && all.ends_with("message 99"),
        "{all}"
    );
}

#[test]
fn the_estimate_is_corrected_by_what_the_provider_counts() {
    let mut estimate = Estimate::default();
    assert_eq!((estimate.tokens(400), estimate.characters(100)), (100, 400));
    let counted = Usage {
        input: 100,
        cache_read: 100,
        ..Usage::default()
    };
    estimate.correct(400, &counted);
    assert_eq!((estimate.tokens(400), estimate.characters(100)), (200, 200));
    estimate.correct(400, &Usage::default());
    assert_eq!(estimate.tokens(400), 200, "no counts, no correction");
}
