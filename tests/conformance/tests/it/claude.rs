//! What the conformance kit needs of the transport `claude`: the real CLI, led to the scripted provider.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use capsule_api::{Registry, Settings, SystemClock, TransportDescriptor};
use capsule_fakes::Provider;
use capsule_transport_kit::{Fixture, Script, Stage, async_trait, services};
use serde_json::json;

pub(crate) struct Claude {
    pub(crate) cli: PathBuf,
}

#[async_trait]
impl Fixture for Claude {
    fn descriptor(&self) -> &'static TransportDescriptor {
        Registry::<TransportDescriptor>::linked()
            .unwrap()
            .get("claude")
            .unwrap()
    }

    async fn stage(&self, script: Script) -> Stage {
        // After cut streams the CLI asks once more without streaming.
        let script = capsule_fakes::Script::from(&script).allow_non_streaming();
        let provider = Arc::new(Provider::start(script).await.unwrap());
        let settings = json!({"command": self.cli, "endpoint": provider.url(), "api_key": "sk-ant-dummy-0123456789"});
        let schema = (self.descriptor().settings_schema)(Some(&settings));
        let settings = Settings::new(settings.as_object().unwrap().clone(), &schema, Path::new("."));
        let peer = provider.clone();
        let seen = move || peer.requests().iter().map(|request| request.body.to_string()).collect();
        Stage::new(settings, services(SystemClock))
            .model("claude-sonnet-4-5")
            .seen(seen)
            .guard(provider)
    }
}
