//! What the conformance kit needs of the transport `codex`: the real CLI, led to the scripted provider.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use capsule_api::{Registry, Settings, SystemClock, TransportDescriptor};
use capsule_fakes::{Provider, Reply};
use capsule_transport_kit::{Fixture, Item, Script, Stage, Stop, async_trait, services};
use serde_json::json;

pub(crate) struct Codex {
    pub(crate) cli: PathBuf,
}

#[async_trait]
impl Fixture for Codex {
    fn descriptor(&self) -> &'static TransportDescriptor {
        Registry::<TransportDescriptor>::linked().unwrap().get("codex").unwrap()
    }

    async fn stage(&self, script: Script) -> Stage {
        let provider = Arc::new(Provider::start(played(&script)).await.unwrap());
        let settings = json!({"command": self.cli, "endpoint": provider.url(), "api_key": "sk-dummy-0123456789"});
        let schema = (self.descriptor().settings_schema)(Some(&settings));
        let settings = Settings::new(settings.as_object().unwrap().clone(), &schema, Path::new("."));
        let peer = provider.clone();
        let seen = move || peer.requests().iter().map(|request| request.body.to_string()).collect();
        Stage::new(settings, services(SystemClock))
            .model("gpt-5.5")
            .seen(seen)
            .guard(provider)
    }
}

/// The CLI knows a refusal only as an answer that the provider's filter ended.
fn played(script: &Script) -> capsule_fakes::Script {
    let [refused] = script.replies.as_slice() else {
        return script.into();
    };
    if refused.stop != Stop::Refusal {
        return script.into();
    }
    let said = refused.items.iter().fold(Reply::new(), |reply, item| match item {
        Item::Say(chunks) => reply.and_text(capsule_fakes::Pieces::Exactly(chunks.clone())),
        other => panic!("a refusal has no {other:?}"),
    });
    capsule_fakes::Script::new().then(said.stop("content_filter"))
}
