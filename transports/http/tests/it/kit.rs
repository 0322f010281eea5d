//! The conformance kit over this transport with the driver `anthropic` and the scripted provider.

use std::{path::Path, sync::Arc};

use capsule_api::{Services, Settings, SystemClock, TransportDescriptor, async_trait, serde_json::json};
use capsule_fakes as fakes;
use capsule_net::NetClient;
use capsule_transport_kit::{Fault, Fixture, Item, NoSecrets, Reply, Script, Stage, Stop, assert_conforms};

use crate::stand::descriptor;

struct Http;

/// One reply of the kit's script as a step of the provider's.
fn step(script: fakes::Script, n: usize, reply: &Reply) -> fakes::Script {
    let mut said = fakes::Reply::new();
    for (at, item) in reply.items.iter().enumerate() {
        said = match item {
            Item::Say(chunks) => said.and_text(pieces(chunks)),
            Item::Think(chunks) => said.thinking(pieces(chunks), "seal"),
            Item::Call { alias, arguments } => said.call_raw_name(&format!("toolu_{n}_{at}"), alias, arguments.clone()),
        };
    }
    // All of the items, but not what ends the message.
    let items = fakes::Position::Events(2 + events_of(reply));
    match reply.stop {
        Stop::Done => script.then(said),
        Stop::Refusal => script.then(said.stop("refusal")),
        Stop::MaxTokens => script.then(said.stop("max_tokens")),
        Stop::Hang => script.then(said.stall(items)),
        Stop::Fault(Fault::Overloaded) => script.then(fakes::Answer::error(529, "Overloaded")),
        Stop::Fault(Fault::Auth) => script
            .then(fakes::Answer::error(401, "invalid x-api-key"))
            .repeat_last(),
        Stop::Fault(Fault::Cut) => script.then(said.cut(items, fakes::Close::EndOfBody)).repeat_last(),
        Stop::Fault(Fault::Crash) => script.then(said.cut(items, fakes::Close::Reset)).repeat_last(),
    }
}

fn pieces(chunks: &[String]) -> fakes::Pieces {
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    chunks.as_slice().into()
}

/// How many events the items are: a start, the deltas and an end each.
fn events_of(reply: &Reply) -> usize {
    let events = reply.items.iter().map(|item| match item {
        Item::Say(chunks) => 2 + chunks.len(),
        Item::Think(chunks) => 3 + chunks.len(),
        // The API begins a call's input with an empty piece; the provider sends the rest in two.
        Item::Call { .. } => 2 + 3,
    });
    events.sum()
}

#[async_trait]
impl Fixture for Http {
    fn descriptor(&self) -> &'static TransportDescriptor {
        descriptor()
    }

    async fn stage(&self, script: Script) -> Stage {
        let steps = script.replies.iter().enumerate();
        let steps = steps.fold(fakes::Script::new(), |script, (n, reply)| step(script, n, reply));
        let provider = Arc::new(fakes::Provider::start(steps).await.unwrap());
        let settings = json!({
            "driver": "anthropic", "endpoint": provider.url(), "api_key": "sk-dummy-key",
            "retry": {"max_retries": 2, "initial_delay": "1ms", "max_delay": "5ms"}
        });
        let schema = (descriptor().settings_schema)(Some(&settings));
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

#[tokio::test(flavor = "multi_thread")]
async fn the_transport_conforms() {
    assert_conforms(&Http).await;
}
