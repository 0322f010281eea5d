use capsule_api::serde_json::json;
use proptest::prelude::*;

use super::*;
use crate::{
    meter::Spent,
    resume::{self, Peer},
};

fn peer() -> Peer {
    Peer {
        peer: "driver".to_owned(),
        model: None,
    }
}

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
    history.begin(vec![ContentBlock::text("two")]);
    assert_eq!(history.messages(), [user(&["one", "two"])]);
    history.rewind();
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
    assert_eq!(resume::write(&History::default(), Spent::default(), &peer()), None);
}

#[derive(Clone, Debug)]
enum Step {
    User,
    Answer(usize),
    Result,
    Cut,
    Reopen,
    Failed,
    Hold,
    Compact(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::User),
        (0..4_usize).prop_map(Step::Answer),
        Just(Step::Result),
        Just(Step::Cut),
        Just(Step::Reopen),
        Just(Step::Failed),
        Just(Step::Hold),
        (0..800_u64).prop_map(Step::Compact),
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

/// Whether user and model take turns, and the user begins.
fn alternates(messages: &[Message]) -> bool {
    let said = messages
        .iter()
        .filter(|message| !matches!(message, Message::Tool { .. }));
    let users = said.map(|message| matches!(message, Message::User { .. }));
    let users: Vec<bool> = users.collect();
    users.first() == Some(&true) && users.windows(2).all(|pair| pair[0] != pair[1] || !pair[0])
}

/// The last thing that the user said.
fn last_said(history: &History) -> Option<ContentBlock> {
    let last = history.messages().iter().rev().find_map(|message| match message {
        Message::User { content } => content.last().cloned(),
        _ => None,
    });
    last.filter(|_| !history.messages().is_empty())
}

fn summaries_in(message: &Message) -> usize {
    let Message::User { content } = message else { return 0 };
    let summary = compact::block("what was");
    content.iter().filter(|block| **block == summary).count()
}

proptest! {
    #[test]
    fn t_09_whatever_happened_before_the_next_request_is_valid(steps in steps()) {
        let mut history = History::default();
        let mut ids = 0;
        for step in steps {
            let waits = !history.is_empty() && matches!(history.messages().last(), Some(Message::User { .. } | Message::Tool { .. }));
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
                    if let Some(state) = resume::write(&history, Spent::default(), &peer()) {
                        history = resume::read(&state, &peer()).unwrap().0;
                    }
                }
                Step::Failed => {
                    let before = history.messages().to_vec();
                    history.close_open_calls();
                    let closed = history.messages().to_vec();
                    history.begin(vec![ContentBlock::text("fails")]);
                    history.rewind();
                    prop_assert!(history.messages() == closed, "{before:#?}");
                }
                Step::Hold => history.hold(Some("held".to_owned())),
                Step::Compact(keep) => {
                    history.close_open_calls();
                    let before = history.clone();
                    if let Some(plan) = compact::plan(history.messages(), keep) {
                        history.compact(plan, "what was");
                        prop_assert_eq!(last_said(&history), last_said(&before));
                        if !matches!(before.messages().last(), Some(Message::User { .. })) {
                            prop_assert_eq!(history.messages().last(), before.messages().last());
                        }
                        prop_assert_eq!(history.unseen(), history.messages());
                    }
                }
                _ => {}
            }
            prop_assert!(history.unseen().len() <= history.messages().len());
        }
        history.user(vec![ContentBlock::text("next")]);
        prop_assert!(is_valid(history.messages()), "{:#?}", history.messages());
        prop_assert!(alternates(history.messages()), "{:#?}", history.messages());
        let summaries = history.messages().iter().map(summaries_in).sum::<usize>();
        prop_assert!(summaries <= 1, "{:#?}", history.messages());
    }
}

fn talk(turns: usize) -> History {
    let mut history = History::default();
    for n in 0..turns {
        history.begin(vec![ContentBlock::text(format!("ask {n}"))]);
        let id = format!("c{n}");
        history.assistant(vec![call(&id)]);
        history.result(&id, false, "done".to_owned());
        history.assistant(vec![ContentBlock::text(format!("answer {n}"))]);
    }
    history
}

#[test]
fn a_summary_stands_before_the_turns_that_stay() {
    let mut history = talk(3);
    let kept = history.messages()[9..].to_vec();
    let plan = Plan { cut: 8, asked: None };
    history.compact(plan, "two greetings");
    let first = Message::User {
        content: vec![compact::block("two greetings"), ContentBlock::text("ask 2")],
    };
    assert_eq!(history.messages()[0], first);
    assert_eq!(history.messages()[1..], kept);
    history.rewind();
    let summary = Message::User {
        content: vec![compact::block("two greetings")],
    };
    assert_eq!(history.messages(), [summary]);
}

#[test]
fn within_one_long_turn_what_the_user_asked_stays_and_the_old_summary_does_not() {
    let mut history = talk(1);
    for (n, summary) in ["first", "second"].into_iter().enumerate() {
        let id = format!("more{n}");
        history.assistant(vec![call(&id)]);
        history.result(&id, false, "done".to_owned());
        let plan = compact::plan(history.messages(), 0).unwrap();
        assert_eq!(plan.asked, Some(0));
        history.compact(plan, summary);
        let first = Message::User {
            content: vec![compact::block(summary), ContentBlock::text("ask 0")],
        };
        assert_eq!(history.messages()[0], first);
        assert!(is_valid(history.messages()));
        // Room for another cut.
        history.assistant(vec![ContentBlock::text("on")]);
    }
}

#[test]
fn what_the_provider_holds_is_sent_no_more_until_it_is_taken_back() {
    let mut history = talk(1);
    history.hold(Some("resp_1".to_owned()));
    history.begin(vec![ContentBlock::text("next")]);
    assert_eq!(history.unseen(), [user(&["next"])]);
    history.rewind();
    assert_eq!(history.unseen(), []);
    history.hold(None);
    assert_eq!(history.unseen(), history.messages());

    // An answer of which nothing was kept holds nothing that could be gone on from.
    history.begin(vec![ContentBlock::text("next")]);
    history.assistant(Vec::new());
    history.hold(Some("resp_2".to_owned()));
    assert_eq!(history.held(), None);
}
