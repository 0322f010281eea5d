//! What a transport's author supplies.

use std::{any::Any, fmt, time::Duration};

use async_trait::async_trait;
use capsule_api::{Services, Settings, TransportDescriptor};

use crate::Script;

/// Turns scripts into settings and scripted peers for one transport.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The transport under test.
    fn descriptor(&self) -> &'static TransportDescriptor;

    /// Starts a peer that plays the script, and makes settings that lead the transport to it. May panic where the machine lacks
    /// something: a panic is a failure of the test, not of the transport.
    async fn stage(&self, script: Script) -> Stage;

    /// Cases that this transport cannot run, each with the reason. A case may be named only where the *peer* cannot be made to play its
    /// script; what the transport cannot do, its capabilities say.
    fn skips(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// How long a case waits for anything that should come. Generous: a passing case never waits for it.
    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// The text of every request that reached the peer so far.
pub type Seen = Box<dyn Fn() -> Vec<String> + Send + Sync>;

/// A scripted peer and the way to it.
pub struct Stage {
    /// The transport's settings.
    pub settings: Settings,
    /// What `build` is lent.
    pub services: Services,
    /// The model that conversations ask for.
    pub model: Option<String>,
    /// What the peer was sent so far, one text per model request, in order of arrival. `None` where the peer cannot tell; the checks
    /// that need it are then left out.
    pub seen: Option<Seen>,
    /// What every turn is given in place of the case's own input. For a transport without a peer, whose input *is* the script.
    pub input: Option<String>,
    /// Keeps the peer alive; dropping it ends the peer.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl Stage {
    /// A stage without a peer: the transport needs nothing but its settings.
    pub fn new(settings: Settings, services: Services) -> Self {
        Self {
            settings,
            services,
            model: None,
            seen: None,
            input: None,
            guard: Box::new(()),
        }
    }

    /// The same with this model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// The same with a way to what the peer was sent.
    #[must_use]
    pub fn seen(mut self, seen: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Self {
        self.seen = Some(Box::new(seen));
        self
    }

    /// The same with this input for every turn.
    #[must_use]
    pub fn input(mut self, input: impl Into<String>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// The same with something that lives as long as the stage.
    #[must_use]
    pub fn guard(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guard = Box::new(guard);
        self
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
