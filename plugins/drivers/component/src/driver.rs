//! The driver: one call of the component for each request.

use std::sync::Arc;

use capsule_api::{
    Billing, Component, ComponentCall, Driver, DriverOut, Error, Request, Response, Secret, async_trait, http,
};

use crate::{answer::answer, input::input, settings::is_loopback, speech::Speech};

/// What begins the name of every variable that the component finds.
const PREFIX: &str = "MURMUR_INFERENCE_";

pub(crate) struct ComponentDriver {
    pub(crate) component: Arc<dyn Component>,
    /// The variables of every call, without [`PREFIX`]; the model comes with the request.
    pub(crate) env: Vec<(&'static str, Secret)>,
    pub(crate) endpoint: http::Uri,
    pub(crate) has_key: bool,
    pub(crate) sees_key: bool,
}

impl ComponentDriver {
    fn env(&self, model: &str) -> Vec<(String, Secret)> {
        let fixed = self.env.iter().cloned();
        let all = fixed.chain([("MODEL", Secret::new(model))]);
        all.map(|(name, value)| (format!("{PREFIX}{name}"), value)).collect()
    }
}

#[async_trait]
impl Driver for ComponentDriver {
    async fn request(&self, request: &Request, out: &mut dyn DriverOut) -> Result<Response, Error> {
        let call = ComponentCall {
            input: input(request),
            env: self.env(&request.model),
        };
        let mut speech = Speech::default();
        let mut heard = |signal| speech.hear(signal, out);
        let reply = self.component.run(call, &mut heard).await;
        answer(&reply, out)
    }

    fn endpoint(&self) -> Option<http::Uri> {
        Some(self.endpoint.clone())
    }

    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = self.component.facts();
        if self.sees_key {
            let what = "the component sees it (`driver_sees_key`)";
            facts.push(("key".to_owned(), what.to_owned()));
        }
        facts
    }

    fn billing(&self) -> Billing {
        match self.endpoint.host() {
            _ if self.has_key => Billing::ApiKey,
            Some(host) if is_loopback(host) => Billing::Free,
            _ => Billing::Unknown,
        }
    }
}
