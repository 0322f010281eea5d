//! What the conformance kit needs of this transport: a driver, the real client, the scripted provider.

use std::{path::Path, sync::Arc};

use capsule_api::{Registry, Services, Settings, SystemClock, TransportDescriptor, async_trait, serde_json::json};
use capsule_fakes::Provider;
use capsule_net::NetClient;
use capsule_transport_kit::{Fixture, NoSecrets, Script, Stage};

/// On the driver `anthropic`.
pub(crate) struct Http;

/// On the driver of this name.
pub(crate) struct On(pub(crate) &'static str);

#[async_trait]
impl Fixture for Http {
    fn descriptor(&self) -> &'static TransportDescriptor {
        On("anthropic").descriptor()
    }

    async fn stage(&self, script: Script) -> Stage {
        On("anthropic").stage(script).await
    }
}

#[async_trait]
impl Fixture for On {
    fn descriptor(&self) -> &'static TransportDescriptor {
        Registry::<TransportDescriptor>::linked().unwrap().get("http").unwrap()
    }

    async fn stage(&self, script: Script) -> Stage {
        let provider = Arc::new(Provider::start((&script).into()).await.unwrap());
        let settings = json!({
            "driver": self.0, "endpoint": provider.url(), "api_key": "sk-dummy-key",
            "retry": {"max_retries": 2, "initial_delay": "1ms", "max_delay": "5ms"}
        });
        let schema = (self.descriptor().settings_schema)(Some(&settings));
        let settings = Settings::new(settings.as_object().unwrap().clone(), &schema, Path::new("."));
        let clock = Arc::new(SystemClock);
        let services = Services::new(clock.clone(), Arc::new(NoSecrets), Arc::new(NetClient::new(clock)));
        let peer = provider.clone();
        let seen = move || peer.requests().iter().map(|request| request.body.to_string()).collect();
        Stage::new(settings, services)
            .model("claude-test")
            .seen(seen)
            .guard(provider)
    }
}
