//! A kept context goes on in another process.

use capsule_api::{ContextWindow, ConversationSpec, ErrorKind, Event, Health, ResumeState};
use capsule_fakes::{Reply, Script};
use serde_json::json;

use crate::cli::{Cli, of_each_cli};

of_each_cli!(
    a_second_turn_in_a_new_conversation_remembers_the_first,
    turns_of_one_conversation_follow_each_other_and_usage_is_each_turns_own,
    a_session_that_the_cli_has_forgotten_is_its_own_error,
    a_context_that_is_not_kept_is_over_after_its_turn,
    a_capsules_context_window_is_taken,
);

async fn a_second_turn_in_a_new_conversation_remembers_the_first(cli: &Cli) {
    let script = Script::new()
        .then(Reply::text("Noted.").call("call-1", "echo", json!({"text": "17"})))
        .then(Reply::text("It is 17."))
        .then(Reply::text("You said 17."));
    let Some(scene) = cli.scene(script).await else { return };
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
    let first = &told.log.events()[0];
    assert!(matches!(first, Event::Started { resumed: true, .. }), "{first:?}");
    let request = scene.request(2);
    let messages = cli.messages(&request);
    assert!(
        messages.contains("Remember 17.") && messages.contains("It is 17."),
        "{messages}"
    );
    assert!(
        request.to_string().contains("A NEW SYSTEM PROMPT."),
        "a changed system prompt counts"
    );
    assert_eq!(
        (second.0.health(), second.0.resume_state()),
        (Health::Ready, Some(state))
    );
    second.close().await;
    scene.provider.assert_clean();
}

async fn turns_of_one_conversation_follow_each_other_and_usage_is_each_turns_own(cli: &Cli) {
    let script = Script::new().then(Reply::text("One.")).then(Reply::text("Two."));
    let Some(scene) = cli.scene(script).await else { return };
    let mut talk = scene.open(scene.kept(None)).await;
    let mut usages = Vec::new();
    for answer in ["One.", "Two."] {
        let told = talk.turn("Next.").await;
        assert_eq!((told.answer(), talk.0.health()), (answer, Health::Ready));
        let usage = told.log.events().into_iter().rev().find_map(|event| match event {
            Event::Usage(usage) => Some(usage),
            _ => None,
        });
        usages.push(usage.unwrap());
    }
    talk.close().await;
    assert_eq!(usages[0], usages[1]);
    assert_eq!(usages[0].requests, 1);
}

async fn a_session_that_the_cli_has_forgotten_is_its_own_error(cli: &Cli) {
    let Some(scene) = cli.scene(Script::new()).await else {
        return;
    };
    let forgotten = "00000000-0000-4000-8000-000000000001";
    let state = ResumeState {
        transport: cli.name.into(),
        version: 1,
        data: json!({"session": forgotten, "thread": forgotten}),
    };
    let mut talk = scene.open(scene.kept(Some(state))).await;
    let told = talk.turn("Go on.").await;
    assert_eq!(
        (told.error().code, told.error().kind),
        (cli.code("session-lost").as_str(), ErrorKind::ConversationLost)
    );
    talk.close().await;
}

async fn a_context_that_is_not_kept_is_over_after_its_turn(cli: &Cli) {
    let Some(scene) = cli.scene(Script::new().then(Reply::text("Hello."))).await else {
        return;
    };
    let mut talk = scene.open(scene.spec()).await;
    assert_eq!(talk.turn("Hi.").await.answer(), "Hello.");
    assert_eq!((talk.0.health(), talk.0.resume_state()), (Health::Lost, None));
    talk.close().await;
}

async fn a_capsules_context_window_is_taken(cli: &Cli) {
    let Some(scene) = cli.scene(Script::new().then(Reply::text("Hello."))).await else {
        return;
    };
    let mut spec = scene.spec();
    spec.limits.context = Some(ContextWindow {
        max_tokens: 64_000,
        threshold_permille: 850,
    });
    assert_eq!(scene.ask_as(spec, "Hi.").await.answer(), "Hello.");
}
