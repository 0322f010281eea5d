use capsule_api::{ContentBlock, Message, Response, StopReason, Usage, serde_json::Map};

use super::*;
use crate::tape::ResponseEntry;

fn request(turns: usize) -> Request {
    let user = || Message::User {
        content: vec![ContentBlock::text("go")],
    };
    let answered = (1..turns).flat_map(|_| [Message::Assistant { content: Vec::new() }, user()]);
    Request {
        model: "m".to_owned(),
        max_tokens: 1,
        system: None,
        messages: [user()].into_iter().chain(answered).collect(),
        tools: Vec::new(),
        params: Map::new(),
        continuation_id: None,
    }
}

fn answer(text: &str) -> Response {
    Response {
        stop_reason: StopReason::EndTurn,
        content: vec![ContentBlock::text(text)],
        continuation_id: None,
        usage: Usage::default(),
    }
}

fn player(entries: &[(usize, &str)]) -> Player {
    let entry = |(turns, text): &(usize, &str)| {
        Entry::Response(ResponseEntry {
            request: Shape::of(&request(*turns)),
            response: answer(text),
        })
    };
    let tape = Tape {
        version: 1,
        capsule: String::new(),
        entries: entries.iter().map(entry).collect(),
    };
    Player::new(tape, false)
}

#[test]
fn answers_come_in_order_and_a_new_conversation_starts_over() {
    let player = player(&[(1, "one"), (2, "two")]);
    for (turns, text) in [(1, "one"), (2, "two"), (1, "one"), (1, "one"), (2, "two")] {
        assert_eq!(player.next(&request(turns)).unwrap(), Recorded::Response(answer(text)));
    }
}

#[test]
fn a_tape_of_two_conversations_goes_on_with_the_second() {
    let player = player(&[(1, "first"), (1, "second")]);
    for text in ["first", "second", "first"] {
        assert_eq!(player.next(&request(1)).unwrap(), Recorded::Response(answer(text)));
    }
}

#[test]
fn a_request_beyond_the_tape_and_one_of_another_shape_are_errors() {
    let player = player(&[(1, "one")]);
    player.next(&request(1)).unwrap();
    assert_eq!(player.next(&request(2)).unwrap_err().code, "cassette-exhausted");
    let player = self::player(&[(2, "two")]);
    assert_eq!(player.next(&request(1)).unwrap_err().code, "cassette-drift");
}
