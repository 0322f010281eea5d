//! A kept context goes on in another process.

use capsule_api::{ContextWindow, ConversationSpec, ErrorKind, Event, Health};
use capsule_fakes::{Reply, Script};
use serde_json::json;

use crate::{codex_tools::scene, support::codex};

#[tokio::test]
async fn codex_a_second_turn_in_a_new_conversation_remembers_the_first() {
    let Some(cli) = codex() else { return };
    let script = Script::new()
        .then(Reply::text("Noted.").call("call-1", "echo", json!({"text": "17"})))
        .then(Reply::text("It is 17."))
        .then(Reply::text("You said 17."));
    let scene = scene(&cli, script).await;
    let mut first = scene.open(scene.kept(None)).await;
    assert_eq!(first.turn("Remember 17.").await.answer(), "It is 17.");
    let state = first.0.resume_state().expect("a kept context can go on");
    first.close().await;

    let spec = ConversationSpec {
        system_prompt: "A NEW SYSTEM PROMPT.".into(),
        ..scene.kept(Some(state.clone()))
    };
    let mut second = scene.open(spec).await;
    let told = second.turn("What did I say?").await;

    assert_eq!(told.answer(), "You said 17.");
    assert!(
        matches!(told.log.events()[0], Event::Started { resumed: true, .. }),
        "{:?}",
        told.log.events()[0]
    );
    let request = scene.request(2);
    let messages = request["input"].to_string();
    assert!(
        messages.contains("Remember 17.") && messages.contains("It is 17."),
        "{messages}"
    );
    assert!(
        messages.contains("A NEW SYSTEM PROMPT."),
        "a changed system prompt counts"
    );
    assert_eq!(
        (second.0.health(), second.0.resume_state()),
        (Health::Ready, Some(state))
    );
    second.close().await;
    scene.provider.assert_clean();
}

#[tokio::test]
async fn codex_turns_of_one_conversation_follow_each_other_and_usage_is_each_turns_own() {
    let Some(cli) = codex() else { return };
    let script = Script::new().then(Reply::text("One.")).then(Reply::text("Two."));
    let scene = scene(&cli, script).await;
    let mut talk = scene.open(scene.kept(None)).await;
    let mut usages = Vec::new();
    for answer in ["One.", "Two."] {
        let told = talk.turn("Next.").await;
        assert_eq!((told.answer(), talk.0.health()), (answer, Health::Ready));
        usages.push(
            told.log
                .events()
                .into_iter()
                .rev()
                .find_map(|event| match event {
                    Event::Usage(usage) => Some(usage),
                    _ => None,
                })
                .unwrap(),
        );
    }
    talk.close().await;
    assert_eq!(usages[0], usages[1]);
    assert_eq!(usages[0].requests, 1);
}

#[tokio::test]
async fn codex_a_session_that_the_cli_has_forgotten_is_its_own_error() {
    let Some(cli) = codex() else { return };
    let scene = scene(&cli, Script::new()).await;
    let state = capsule_api::ResumeState {
        transport: "codex".into(),
        version: 1,
        data: json!({"thread": "00000000-0000-4000-8000-000000000001"}),
    };
    let mut talk = scene.open(scene.kept(Some(state))).await;
    let told = talk.turn("Go on.").await;
    assert_eq!(
        (told.error().code, told.error().kind),
        ("codex-session-lost", ErrorKind::ConversationLost)
    );
    talk.close().await;
}

#[tokio::test]
async fn codex_a_context_that_is_not_kept_is_over_after_its_turn() {
    let Some(cli) = codex() else { return };
    let scene = scene(&cli, Script::new().then(Reply::text("Hello."))).await;
    let mut talk = scene.open(scene.spec()).await;
    assert_eq!(talk.turn("Hi.").await.answer(), "Hello.");
    assert_eq!((talk.0.health(), talk.0.resume_state()), (Health::Lost, None));
    talk.close().await;
}

#[tokio::test]
async fn codex_takes_a_capsules_context_window() {
    let Some(cli) = codex() else { return };
    let scene = scene(&cli, Script::new().then(Reply::text("Hello."))).await;
    let mut spec = scene.spec();
    spec.limits.context = Some(ContextWindow {
        max_tokens: 64_000,
        threshold_permille: 850,
    });
    assert_eq!(scene.ask_as(spec, "Hi.").await.answer(), "Hello.");
}
