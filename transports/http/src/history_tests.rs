use proptest::prelude::*;

use super::*;

fn call(id: &str) -> ContentBlock {
    ContentBlock::ToolCall {
        id: id.to_owned(),
        name: "greet".to_owned(),
        input: json!({}),
    }
}

fn user(texts: &[&str]) -> Message {
    Message::User {
        content: texts.iter().copied().map(ContentBlock::text).collect(),
    }
}

fn tool(id: &str, is_error: bool, text: &str) -> Message {
    Message::Tool {
        tool_call_id: id.to_owned(),
        is_error,
        content: vec![ContentBlock::text(text)],
    }
}

#[test]
fn t_09_calls_without_a_result_get_one_that_says_cancelled() {
    let mut history = History::default();
    history.user(vec![ContentBlock::text("go")]);
    history.assistant(vec![call("a"), call("b"), call("c")]);
    history.result("b", false, "done".to_owned());

    history.user(vec![ContentBlock::text("and now?")]);

    let expected = [
        user(&["go"]),
        Message::Assistant {
            content: vec![call("a"), call("b"), call("c")],
        },
        tool("b", false, "done"),
        tool("a", true, CANCELLED),
        tool("c", true, CANCELLED),
        user(&["and now?"]),
    ];
    assert_eq!(history.messages(), expected);
}

#[test]
fn what_the_user_says_joins_what_was_never_answered() {
    let mut history = History::default();
    history.user(vec![ContentBlock::text("one")]);
    let mark = history.mark();
    history.user(vec![ContentBlock::text("two")]);
    assert_eq!(history.messages(), [user(&["one", "two"])]);
    history.rewind(mark);
    assert_eq!(history.messages(), [user(&["one"])]);
}

#[test]
fn an_answer_that_the_limit_cut_keeps_its_text_and_no_loose_reasoning() {
    let thinking = || ContentBlock::Thinking {
        text: "hm".to_owned(),
        signature: None,
        redacted: None,
    };
    let mut history = History::default();
    history.user(vec![ContentBlock::text("go")]);
    history.truncated(vec![thinking()]);
    assert_eq!(history.messages(), [user(&["go"])]);
    history.truncated(vec![thinking(), ContentBlock::text("half"), thinking()]);
    let kept = Message::Assistant {
        content: vec![thinking(), ContentBlock::text("half")],
    };
    assert_eq!(history.messages()[1..], [kept]);
}

#[test]
fn an_empty_conversation_has_nothing_to_go_on_from() {
    assert_eq!(History::default().resume_state(), None);
}

#[derive(Clone, Debug)]
enum Step {
    User,
    Answer(usize),
    Result,
    Cut,
    Reopen,
    Failed,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::User),
        (0..4_usize).prop_map(Step::Answer),
        Just(Step::Result),
        Just(Step::Cut),
        Just(Step::Reopen),
        Just(Step::Failed),
    ];
    prop::collection::vec(step, 0..30)
}

/// Whether every call has its result right after it, and every result its call.
fn is_valid(messages: &[Message]) -> bool {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message {
            Message::Tool { tool_call_id, .. } => {
                let Some(at) = open.iter().position(|id| id == tool_call_id) else {
                    return false;
                };
                open.remove(at);
            }
            _ if !open.is_empty() => return false,
            other => open = calls_of(other).map(str::to_owned).collect(),
        }
    }
    open.is_empty()
}

proptest! {
    #[test]
    fn t_09_whatever_happened_before_the_next_request_is_valid(steps in steps()) {
        let mut history = History::default();
        let mut ids = 0;
        for step in steps {
            let waits = matches!(history.messages().last(), Some(Message::User { .. } | Message::Tool { .. }));
            match step {
                Step::User => history.user(vec![ContentBlock::text("say")]),
                Step::Answer(calls) if waits => {
                    let content = (0..calls).map(|n| call(&format!("{}", ids + n))).chain([ContentBlock::text("so")]);
                    history.assistant(content.collect());
                    ids += calls;
                }
                Step::Result => {
                    let open = history.clone();
                    let mut closed = history.clone();
                    closed.close_open_calls();
                    if let Some(Message::Tool { tool_call_id, .. }) = closed.messages().get(open.messages().len()) {
                        history.result(tool_call_id, false, "done".to_owned());
                    }
                }
                Step::Cut if waits => history.truncated(vec![ContentBlock::text("half")]),
                Step::Reopen => {
                    if let Some(state) = history.resume_state() {
                        history = History::resumed(&state).unwrap();
                    }
                }
                Step::Failed => {
                    let mark = history.mark();
                    history.user(vec![ContentBlock::text("fails")]);
                    history.rewind(mark);
                }
                _ => {}
            }
        }
        history.user(vec![ContentBlock::text("next")]);
        prop_assert!(is_valid(history.messages()), "{:#?}", history.messages());
    }
}
