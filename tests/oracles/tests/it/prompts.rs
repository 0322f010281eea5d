//! A prompt is data.

use capsule_api::{ConversationSpec, Event, Outcome};
use capsule_fakes::{Reply, Script};

use crate::support::{SYSTEM, Scene, claude};

#[tokio::test]
async fn nothing_in_a_prompt_is_expanded_or_executed() {
    let Some(cli) = claude() else { return };
    let scene = Scene::with(&cli, Script::new().then(Reply::text("Noted.")).repeat_last()).await;
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
        by_path.as_str(),
    ];

    for (n, prompt) in prompts.into_iter().enumerate() {
        assert_eq!(scene.ask(prompt).await.answer(), "Noted.", "{prompt}");
        let request = scene.request(n);
        let messages = request["messages"].to_string();
        assert!(
            messages.contains(&serde_json::to_string(prompt).unwrap()),
            "{prompt} is delivered as it is: {messages}"
        );
        assert!(!messages.contains("CONTENT-OF-A-HOST-FILE"), "{messages}");
        let blocks = request["messages"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
        assert!(
            !blocks
                .clone()
                .any(|block| block.to_string().contains("Called the Read tool")),
            "{messages}"
        );
    }
    assert_eq!(scene.provider.requests().len(), prompts.len());
}

#[tokio::test]
async fn the_system_prompt_is_the_capsules_also_where_it_is_empty() {
    let Some(cli) = claude() else { return };
    let scene = Scene::with(&cli, Script::new().then(Reply::text("Hello.")).repeat_last()).await;
    scene.ask("Hi.").await;
    let empty = ConversationSpec {
        system_prompt: String::new(),
        ..scene.spec()
    };
    scene.ask_as(empty, "Hi.").await;
    let system = |n| {
        let blocks = scene.request(n)["system"].as_array().cloned().unwrap();
        let texts = blocks
            .into_iter()
            .map(|block| block["text"].as_str().unwrap().to_owned());
        texts
            .filter(|text| !text.starts_with("x-anthropic-billing-header"))
            .collect::<Vec<_>>()
    };
    let own = "You are a Claude agent, built on Anthropic's Claude Agent SDK.";
    assert_eq!(system(0), [own, SYSTEM]);
    assert_eq!(system(1), [own]);
}

#[tokio::test]
async fn p_07_a_prompt_of_a_megabyte_arrives_whole() {
    let Some(cli) = claude() else { return };
    let scene = Scene::with(&cli, Script::new().then(Reply::text("Long."))).await;
    let prompt = "0123456789".repeat(100_000);
    let spec = ConversationSpec {
        system_prompt: "s".repeat(200_000),
        ..scene.spec()
    };
    assert_eq!(scene.ask_as(spec, &prompt).await.answer(), "Long.");
    assert!(scene.request(0)["messages"].to_string().contains(&prompt));
}

#[tokio::test]
async fn p_22_text_is_streamed_while_the_model_writes() {
    let Some(cli) = claude() else { return };
    // The stream stops after its first piece, until the test has seen that piece.
    let stalled = Reply::text(["first ", "second"]).stall(capsule_fakes::Position::Events(4));
    let scene = Scene::with(&cli, Script::new().then(stalled)).await;
    let gate = scene.provider.gate();
    let mut talk = scene.open(scene.spec()).await;
    let (under, io) = crate::support::Under::new();

    let turn = talk.0.turn(capsule_api::Input::text("Write."), io);
    let watch = async {
        under.log.wait_for(|entry| matches!(entry, capsule_transport_kit::Entry::Model(Event::Delta { text, .. }) if text == "first ")).await;
        gate.open();
    };
    let (outcome, ()) = tokio::join!(turn, watch);

    assert_eq!(
        outcome.unwrap(),
        Outcome::Completed {
            text: "first second".into()
        }
    );
    talk.close().await;
}

#[tokio::test]
async fn the_output_limit_reaches_the_model_request_and_a_cut_answer_is_truncated() {
    let Some(cli) = claude() else { return };
    let scene = Scene::with(&cli, Script::new().then(Reply::text("half an ans").stop("max_tokens"))).await;
    let mut spec = scene.spec();
    spec.limits.output_tokens = 4321;
    let told = scene.ask_as(spec, "Write.").await;
    assert_eq!(
        told.outcome.as_ref().unwrap(),
        &Outcome::Truncated {
            partial: "half an ans".into()
        }
    );
    assert_eq!(scene.request(0)["max_tokens"], 4321);
}

#[tokio::test]
async fn a_refusal_is_an_outcome_of_its_own() {
    let Some(cli) = claude() else { return };
    let scene = Scene::with(&cli, Script::new().then(Reply::text("I can't.").stop("refusal"))).await;
    let told = scene.ask("Do harm.").await;
    assert_eq!(
        told.outcome.as_ref().unwrap(),
        &Outcome::Refused {
            text: "I can't.".into()
        }
    );
}
