//! A prompt is data.

use capsule_api::{ConversationSpec, ErrorKind, Event, Input, Outcome};
use capsule_fakes::{Reply, Script};
use capsule_transport_kit::Entry;

use crate::{
    cli::{CODEX, Cli, of_each_cli},
    support::{SYSTEM, Under},
};

of_each_cli!(
    nothing_in_a_prompt_is_expanded_or_executed,
    the_system_prompt_is_the_capsules_also_where_it_is_empty,
    p_07_a_prompt_of_a_megabyte_and_a_system_prompt_of_300_kilobytes_arrive_whole,
    p_22_text_is_streamed_while_the_model_writes,
);

async fn nothing_in_a_prompt_is_expanded_or_executed(cli: &Cli) {
    let script = Script::new().then(Reply::text("Noted.")).repeat_last();
    let Some(scene) = cli.scene(script).await else { return };
    let secret = scene.dir.path().join("host-file");
    std::fs::write(&secret, "CONTENT-OF-A-HOST-FILE").unwrap();
    let by_path = format!("@{} please", secret.display());
    let prompts = [
        "@/etc/hostname",
        "@.",
        "/model opus",
        "/clear",
        "/help",
        "!id",
        // A skill that the CLI brings along.
        "$skill-creator make one",
        "[$skill-creator](skill://skill-creator)",
        by_path.as_str(),
    ];

    for (n, prompt) in prompts.into_iter().enumerate() {
        assert_eq!(scene.ask(prompt).await.answer(), "Noted.", "{prompt}");
        let request = scene.request(n);
        assert_eq!(cli.user_texts(&request), [prompt], "it is delivered as it is");
        assert!(!request.to_string().contains("CONTENT-OF-A-HOST-FILE"), "{request}");
    }
    assert_eq!(scene.provider.requests().len(), prompts.len());
}

async fn the_system_prompt_is_the_capsules_also_where_it_is_empty(cli: &Cli) {
    let script = Script::new().then(Reply::text("Hello.")).repeat_last();
    let Some(scene) = cli.scene(script).await else { return };
    scene.ask("Hi.").await;
    let empty = ConversationSpec {
        system_prompt: String::new(),
        ..scene.spec()
    };
    scene.ask_as(empty, "Hi.").await;
    assert_eq!(cli.system_texts(&scene.request(0)), [SYSTEM]);
    assert_eq!(cli.system_texts(&scene.request(1)), Vec::<String>::new());
}

async fn p_07_a_prompt_of_a_megabyte_and_a_system_prompt_of_300_kilobytes_arrive_whole(cli: &Cli) {
    let Some(scene) = cli.scene(Script::new().then(Reply::text("Long."))).await else {
        return;
    };
    let prompt = "0123456789".repeat(100_000);
    let spec = ConversationSpec {
        system_prompt: "s".repeat(300_000),
        ..scene.spec()
    };
    assert_eq!(scene.ask_as(spec.clone(), &prompt).await.answer(), "Long.");
    let request = scene.request(0);
    assert!(cli.user_texts(&request) == [prompt], "the prompt is not whole");
    assert!(
        cli.system_texts(&request) == [spec.system_prompt],
        "the system prompt is not whole"
    );
}

#[tokio::test]
async fn p_07_codex_a_prompt_that_the_cli_does_not_take_is_refused_before_the_start() {
    let Some(scene) = CODEX.scene(Script::new()).await else {
        return;
    };
    let told = scene.ask(&"x".repeat(1_048_577)).await;
    let error = told.error();
    assert_eq!(
        (error.code, error.kind, error.message.as_str()),
        (
            "codex-input-too-long",
            ErrorKind::BadRequest,
            "the input has 1048577 characters"
        )
    );
    assert_eq!(told.log.events(), [], "the CLI was not started");
    // The longest that it takes, in characters of several bytes.
    let longest = "ä".repeat(1_048_576);
    let Some(scene) = CODEX.scene(Script::new().then(Reply::text("Long."))).await else {
        return;
    };
    assert_eq!(scene.ask(&longest).await.answer(), "Long.");
    assert!(CODEX.user_texts(&scene.request(0)) == [longest], "it is not whole");
}

async fn p_22_text_is_streamed_while_the_model_writes(cli: &Cli) {
    // The stream stops after its first piece, until the test has seen that piece.
    let stalled = Reply::text(["first ", "second"]).stall(cli.first_piece());
    let Some(scene) = cli.scene(Script::new().then(stalled)).await else {
        return;
    };
    let gate = scene.provider.gate();
    let mut talk = scene.open(scene.spec()).await;
    let (under, io) = Under::new();

    let turn = talk.0.turn(Input::text("Write."), io);
    let watch = async {
        let first = |entry: &Entry| matches!(entry, Entry::Model(Event::Delta { text, .. }) if text == "first ");
        under.log.wait_for(first).await;
        gate.open();
    };
    let (outcome, ()) = tokio::join!(turn, watch);

    let text = "first second".to_owned();
    assert_eq!(outcome.unwrap(), Outcome::Completed { text });
    talk.close().await;
}
