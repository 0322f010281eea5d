//! What must hold on every driver, each over real HTTP against the same scripts.

mod answers;
mod calls;
mod failures;
mod usage;

use capsule_api::serde_json::json;
use capsule_fakes::{Reply, Script};

use crate::stand::{Stand, completed, spec};

/// The drivers with a wire.
const DRIVERS: [&str; 4] = ["anthropic", "openai", "openai-responses", "ollama"];

/// The driver on a provider that plays this script.
async fn stand(driver: &str, script: Script) -> Stand {
    Stand::with(script, &json!({"driver": driver}), spec()).await
}

/// A driver's code: both drivers for OpenAI's APIs share theirs.
fn code(driver: &str, what: &str) -> String {
    let owner = driver.split('-').next().unwrap();
    format!("{owner}-{what}")
}

/// The texts of the results in the provider's request `n`, from 0.
fn results(stand: &Stand, n: usize) -> Vec<String> {
    let results = stand.provider.requests()[n].results().into_iter();
    results.map(|(_, text)| text).collect()
}

#[tokio::test]
async fn one_story_is_the_same_on_every_driver() {
    let mut told = Vec::new();
    for driver in DRIVERS {
        let script = Script::new()
            .then(
                Reply::text("I will greet.")
                    .call("c1", "greet", json!({"name": "Ada"}))
                    .call("c2", "fail", json!({})),
            )
            .then(Reply::text("Done."));
        let mut stand = stand(driver, script).await;
        assert_eq!(stand.turn("Greet Ada").await.unwrap(), completed("Done."), "{driver}");
        stand.provider.assert_clean();
        let paths: Vec<_> = stand
            .provider
            .requests()
            .into_iter()
            .map(|request| request.path)
            .collect();
        let fold = stand.log.fold();
        let calls: Vec<_> = fold.calls().into_iter().cloned().collect();
        let texts: Vec<_> = fold.texts().into_iter().map(str::to_owned).collect();
        told.push((texts, calls));
        let expected = match driver {
            "anthropic" => "/v1/messages",
            "openai" => "/v1/chat/completions",
            "openai-responses" => "/v1/responses",
            _ => "/api/chat",
        };
        assert_eq!(paths, [expected, expected]);
    }
    assert_eq!(
        (told[0].0.as_slice(), told[0].1.len()),
        (&["I will greet.".to_owned(), "Done.".to_owned()][..], 2)
    );
    for other in &told[1..] {
        assert_eq!(*other, told[0]);
    }
}
