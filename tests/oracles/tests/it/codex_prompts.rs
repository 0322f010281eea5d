//! A prompt is data, for codex too.

use capsule_api::{ConversationSpec, ErrorKind, Event, Input, Outcome};
use capsule_fakes::{Position, Reply, Script};
use capsule_transport_kit::Entry;

use crate::{
    codex_tools::scene,
    support::{SYSTEM, Scene, Under, codex},
};

/// The texts of a request's messages, by role.
fn texts(scene: &Scene, n: usize) -> Vec<(String, String)> {
    let request = scene.request(n);
    let items = request["input"].as_array().cloned().unwrap();
    let messages = items.into_iter().filter(|item| item["type"] == "message");
    let texts = messages.map(|message| {
        let parts = message["content"].as_array().cloned().unwrap();
        let text = parts
            .iter()
            .map(|part| part["text"].as_str().unwrap())
            .collect::<String>();
        (message["role"].as_str().unwrap().to_owned(), text)
    });
    texts.collect()
}

fn pair(role: &str, text: &str) -> (String, String) {
    (role.to_owned(), text.to_owned())
}

#[tokio::test]
async fn codex_nothing_in_a_prompt_is_expanded_or_executed() {
    let Some(cli) = codex() else { return };
    let scene = scene(&cli, Script::new().then(Reply::text("Noted.")).repeat_last()).await;
    let secret = scene.dir.path().join("host-file");
    std::fs::write(&secret, "CONTENT-OF-A-HOST-FILE").unwrap();
    let by_path = format!("@{} please", secret.display());
    let prompts = [
        // A skill that the CLI brings along.
        "$skill-creator make one",
        "[$skill-creator](skill://skill-creator)",
        "@/etc/hostname",
        "@.",
        "/model gpt-6",
        "/clear",
        "!id",
        by_path.as_str(),
    ];

    for (n, prompt) in prompts.into_iter().enumerate() {
        assert_eq!(scene.ask(prompt).await.answer(), "Noted.", "{prompt}");
        assert_eq!(texts(&scene, n), [pair("developer", SYSTEM), pair("user", prompt)]);
    }
    assert_eq!(scene.provider.requests().len(), prompts.len());
}

#[tokio::test]
async fn codex_the_system_prompt_is_the_capsules_also_where_it_is_empty() {
    let Some(cli) = codex() else { return };
    let scene = scene(&cli, Script::new().then(Reply::text("Hello.")).repeat_last()).await;
    scene.ask("Hi.").await;
    let empty = ConversationSpec {
        system_prompt: String::new(),
        ..scene.spec()
    };
    scene.ask_as(empty, "Hi.").await;
    assert_eq!(texts(&scene, 0), [pair("developer", SYSTEM), pair("user", "Hi.")]);
    assert_eq!(texts(&scene, 1), [pair("user", "Hi.")]);
}

#[tokio::test]
async fn p_07_codex_a_prompt_of_a_megabyte_arrives_whole_and_a_longer_one_is_refused_before_the_start() {
    let Some(cli) = codex() else { return };
    let scene = scene(&cli, Script::new().then(Reply::text("Long."))).await;
    let prompt = "0123456789".repeat(100_000);
    let spec = ConversationSpec {
        system_prompt: "s".repeat(300_000),
        ..scene.spec()
    };
    assert_eq!(scene.ask_as(spec.clone(), &prompt).await.answer(), "Long.");
    assert_eq!(
        texts(&scene, 0),
        [("developer".into(), spec.system_prompt), ("user".into(), prompt)]
    );

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
}

#[tokio::test]
async fn p_22_codex_text_is_streamed_while_the_model_writes() {
    let Some(cli) = codex() else { return };
    // The stream stops after its first piece, until the test has seen that piece.
    let stalled = Reply::text(["first ", "second"]).stall(Position::Events(5));
    let scene = scene(&cli, Script::new().then(stalled)).await;
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
