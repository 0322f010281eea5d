use std::borrow::Cow;

use capsule_api::{ContentBlock, Message, Response, Secret, StopReason, TapedResponse, Usage, serde_json::Map};

use super::*;

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

/// Hides one word.
struct Hiding;

impl Secrets for Hiding {
    fn expand(&self, text: &str) -> Result<String, Error> {
        Ok(text.to_owned())
    }

    fn protect(&self, _: &Secret) {}

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Owned(text.replace("hidden", "[redacted]"))
    }
}

fn player(entries: &[(usize, &str)]) -> Player {
    let entry = |(turns, text): &(usize, &str)| {
        TapeEntry::Response(TapedResponse {
            request: RequestShape::of(&request(*turns)),
            response: answer(text),
        })
    };
    let tape = Tape::new("", entries.iter().map(entry).collect());
    Player::new(tape, "tape.json".to_owned(), false, Drift::Fail, Arc::new(Hiding))
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

#[test]
fn the_hint_of_another_conversation_does_not_say_to_record_the_tape_again() {
    let error = player(&[(2, "two")]).next(&request(1)).unwrap_err();
    assert_eq!(
        (error.code, error.hint.as_str()),
        ("cassette-drift", codes::OTHER_COURSE)
    );
    let (player, request) = answered(Drift::Fail, "7", "8");
    assert_eq!(player.next(&request).unwrap_err().hint, codes::DRIFT.remedy);
}

/// A tape on which the tool answered this, and a request in which it answers that.
fn answered(drift: Drift, recorded: &str, now: &str) -> (Player, Request) {
    let mut asked = request(1);
    let mut request = |result: &str| {
        asked.messages.truncate(1);
        asked.messages.push(Message::Assistant { content: Vec::new() });
        asked.messages.push(Message::Tool {
            tool_call_id: "a".to_owned(),
            is_error: false,
            content: vec![ContentBlock::text(result)],
        });
        asked.clone()
    };
    let entry = TapeEntry::Response(TapedResponse {
        request: RequestShape::of(&request(recorded)),
        response: answer("so"),
    });
    let player = Player::new(
        Tape::new("", vec![entry]),
        "tape.json".to_owned(),
        false,
        drift,
        Arc::new(Hiding),
    );
    (player, request(now))
}

#[test]
fn another_result_ends_the_run_unless_drift_is_ignored() {
    let (player, request) = answered(Drift::Fail, "7", "8");
    assert_eq!(player.next(&request).unwrap_err().code, "cassette-drift");
    let (player, request) = answered(Drift::Ignore, "7", "8");
    assert_eq!(player.next(&request).unwrap(), Recorded::Response(answer("so")));
    assert_eq!(player.next(&self::request(2)).unwrap_err().code, "cassette-exhausted");
}

#[test]
fn what_is_hidden_on_the_tape_is_not_compared() {
    let (player, request) = answered(Drift::Fail, "key [redacted]", "key hidden");
    assert_eq!(player.next(&request).unwrap(), Recorded::Response(answer("so")));
}

#[test]
fn another_input_is_remarked_and_answered_all_the_same() {
    let player = player(&[(1, "one"), (2, "two")]);
    assert_eq!(player.remark(&request(1)), None);
    let mut other = request(1);
    other.messages = vec![Message::User {
        content: vec![ContentBlock::text("stop")],
    }];
    let (code, message) = player.remark(&other).unwrap();
    assert_eq!(code.id, "cassette-other-input");
    assert_eq!(
        message,
        "the tape was recorded with another input, and answers that one\n  recorded: go\n  now:      stop"
    );
    assert_eq!(player.next(&other).unwrap(), Recorded::Response(answer("one")));
    // A tool's result is no input, and a request that is not on the tape is an error and no remark.
    let (player, request) = answered(Drift::Ignore, "7", "8");
    assert_eq!(player.remark(&request), None);
    assert_eq!(player.remark(&self::request(3)), None);
}
