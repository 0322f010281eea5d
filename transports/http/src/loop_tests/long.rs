//! Conversations that outgrow the context window.

use super::*;

#[tokio::test]
async fn older_turns_are_summarised_once_they_fill_the_window() {
    let window = ContextWindow {
        max_tokens: 2000,
        threshold_permille: 500,
    };
    let mut answers: Vec<_> = (0..2).flat_map(|_| [calls("work", 3), answer("done")]).collect();
    answers.extend([answer("what was"), answer("end")]);
    for response in answers.iter_mut().flatten() {
        response.usage = Usage::default();
    }
    let mut stand = Stand::with(answers, |_, limits| limits.context = Some(window));
    stand.turn("one").await.unwrap();
    stand.turn("two").await.unwrap();
    assert_eq!(stand.turn(&"three ".repeat(200)).await.unwrap(), completed("end"));

    let compacted = compacted(&stand.log);
    assert!(
        matches!(compacted[..], [(before, after)] if before > 1000 && after < 1000),
        "{compacted:?}"
    );
    let request = stand.last_request();
    let first = serde_text(&request.messages[0]);
    assert!(first.contains("what was"), "{first}");
    assert!(serde_text(request.messages.last().unwrap()).contains("three"));
    let summarising = stand.script.asked.lock().unwrap()[4].clone();
    assert_eq!((summarising.tools.len(), summarising.messages.len()), (0, 1));
}

fn serde_text(message: &Message) -> String {
    serde_json::to_string(message).unwrap()
}

#[tokio::test]
async fn a_provider_that_finds_the_conversation_too_long_gets_a_summary_once() {
    let long = || fails(ErrorKind::ContextOverflow);
    let mut stand = Stand::new([
        calls("work", 5),
        answer("one"),
        long(),
        answer("what was"),
        answer("two"),
    ]);
    stand.turn("go").await.unwrap();
    assert_eq!(stand.turn("go on").await.unwrap(), completed("two"));
    assert_eq!(compacted(&stand.log).len(), 1);

    let mut stand = Stand::new([calls("work", 5), answer("one"), long(), answer("what was"), long()]);
    stand.turn("go").await.unwrap();
    let error = stand.turn("go on").await.unwrap_err();
    assert_eq!((error.kind, stand.asked().len()), (ErrorKind::ContextOverflow, 5));
}

#[tokio::test]
async fn a_summary_that_cannot_be_had_leaves_the_conversation_as_it_is() {
    let long = || fails(ErrorKind::ContextOverflow);
    let mut stand = Stand::new([calls("work", 5), answer("one"), long(), answer(" "), answer("two")]);
    stand.turn("go").await.unwrap();
    let error = stand.turn("go on").await.unwrap_err();
    assert_eq!(
        (error.code, warnings(&stand.log)),
        ("script-long", vec!["http-no-summary"])
    );
    assert_eq!(stand.turn("go on").await.unwrap(), completed("two"));
    assert_eq!(stand.last_request().messages.len(), 9);
}

#[tokio::test]
async fn two_hundred_turns_with_a_thousand_calls_stay_bounded_and_leave_nothing_out() {
    let window = ContextWindow {
        max_tokens: 10_000,
        threshold_permille: 800,
    };
    let mut stand = Stand::with([calls("work", 5)], |_, limits| limits.context = Some(window));
    *stand.script.summary.lock().unwrap() = Some(uncounted(answer("what was")));
    let (mut events, mut called, mut shrunk, mut largest) = (0, 0, 0, 0);
    for n in 0..200 {
        *stand.script.answers.lock().unwrap() = [calls("work", 5), answer("done")].map(uncounted).into();
        stand.script.asked.lock().unwrap().clear();
        let outcome = stand.turn(&format!("turn {n}")).await.unwrap();
        assert_eq!(outcome, completed("done"), "turn {n}");
        let log = stand.log.events();
        called += log.iter().filter(|event| matches!(event, Event::Call { .. })).count();
        shrunk += compacted(&stand.log).len();
        events += log.len();
        largest = largest.max(compact::characters(stand.conversation.history.messages()));
        assert_eq!(stand.log.lost(), 0);
    }
    assert_eq!((called, stand.work.ran.load(Ordering::SeqCst)), (1000, 1000));
    assert!(shrunk > 10, "{shrunk}");
    // Started, two requests with start, end and usage, five calls with two each, one block; and for a summary its usage and its size.
    assert_eq!(events, 200 * (1 + 2 * 3 + 5 * 2 + 1) + 2 * shrunk);
    let most = 4 * window.compact_above() + 5 * 600;
    assert!(largest < most, "{largest} characters, and {most} at most");
}

fn uncounted(answer: Answer) -> Answer {
    answer.map(|answer| Response {
        usage: Usage::default(),
        ..answer
    })
}
