//! The transport: one driver, built once.

use std::{sync::Arc, time::Duration};

use capsule_api::{
    BuiltDriver, Bytes, Capabilities, Conversation, ConversationSpec, Driver, DriverDescriptor, Error, Probe, Registry,
    Request, Services, Settings, Transport, Wire, async_trait, http, serde_json, timeout,
};

use crate::{
    CAPABILITIES, codes,
    conversation::{HttpConversation, Shared},
    history::History,
    meter::Spent,
    playback::PlaybackDriver,
    resume::{self, Peer},
    settings::{self, Own},
    taping::TapedDriver,
    wire_driver::WireDriver,
};

/// How long an online probe waits for the endpoint.
const PROBE: Duration = Duration::from_secs(10);

/// Host-owned loop over a driver.
struct HttpTransport {
    shared: Arc<Shared>,
    services: Services,
    /// The driver's wire, to try settings with before a request is made.
    wire: Option<Arc<dyn Wire>>,
    /// Where the driver asks.
    endpoint: Option<http::Uri>,
    /// What the driver says of itself.
    facts: Vec<(String, String)>,
}

/// Builds an instance.
pub(crate) fn build(settings: Settings, services: Services) -> Result<Box<dyn Transport>, Error> {
    let own: Own = settings
        .only(&settings::own_schema())
        .decode(services.secrets.as_ref())?;
    let descriptor = Registry::<DriverDescriptor>::linked()?.get(&own.driver)?;
    let mut policy = own.retry.policy();
    let schema = (descriptor.settings_schema)();
    let built = (descriptor.build)(settings.only(&schema), &services)?;
    let (driver, wire): (Box<dyn Driver>, _) = match built {
        BuiltDriver::Wire(wire) => {
            let wire: Arc<dyn Wire> = Arc::from(wire);
            let driver = WireDriver {
                wire: wire.clone(),
                format: descriptor.wire.ok_or_else(|| no_wire(descriptor))?,
                name: descriptor.name,
                services: services.clone(),
                idle: own.idle_timeout.0,
            };
            (Box::new(driver), Some(wire))
        }
        BuiltDriver::Playback(playback) => {
            // A recorded failure is tried again as it was; there is nobody to be gentle with.
            policy.max_delay = Duration::ZERO;
            let services = services.clone();
            (Box::new(PlaybackDriver { playback, services }), None)
        }
        BuiltDriver::Driver(driver) => {
            let services = services.clone();
            (Box::new(TapedDriver { driver, services }), None)
        }
        _ => return Err(no_wire(descriptor)),
    };
    let (endpoint, facts, billing) = (driver.endpoint(), driver.facts(), driver.billing());
    let peer = peer_name(&own.driver, endpoint.as_ref());
    let shared = Shared {
        allowance: own.allowance()?,
        wall: own.wall_clock.map(|wall| wall.0),
        same_failure: own.same_failure,
        driver,
        peer,
        billing,
        clock: services.clock.clone(),
        policy,
        chance: fastrand::f64,
        parallel: own.parallel_calls,
        params: own.params,
    };
    Ok(Box::new(HttpTransport {
        shared: Arc::new(shared),
        services,
        wire,
        endpoint,
        facts,
    }))
}

/// Who answers, for people and for what is kept: the driver, and where it asks.
fn peer_name(driver: &str, endpoint: Option<&http::Uri>) -> String {
    match endpoint {
        Some(uri) => format!(
            "{driver} at {}",
            uri.authority().map_or("", |authority| authority.as_str())
        ),
        None => driver.to_owned(),
    }
}

fn no_wire(descriptor: &DriverDescriptor) -> Error {
    let message = format!(
        "the driver `{}` of {} has no wire format that this program knows",
        descriptor.name, descriptor.crate_name
    );
    Error::new(&codes::NO_WIRE, message)
}

/// A request of nothing, to see what a wire makes of its settings.
pub(crate) fn nothing(model: &str) -> Request {
    Request {
        model: model.to_owned(),
        max_tokens: 1,
        system: None,
        messages: Vec::new(),
        tools: Vec::new(),
        params: serde_json::Map::new(),
        continuation_id: None,
    }
}

impl HttpTransport {
    /// Any answer will do: it shows that the endpoint is there. No model request.
    async fn reach(&self, uri: http::Uri) -> Result<String, Error> {
        let request = http::Request::head(uri).body(Bytes::new());
        let request = request.expect("a URI that a driver asks at makes another request");
        let sent = self.services.http.send(request);
        match timeout(self.services.clock.as_ref(), PROBE, sent).await {
            Ok(answer) => Ok(format!("answers ({})", answer?.status())),
            Err(_) => Err(Error::new(&codes::IDLE, "the endpoint did not answer within 10 s")),
        }
    }
}

#[async_trait]
impl Transport for HttpTransport {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    async fn probe(&self, online: bool) -> Probe {
        let mut probe = Probe::usable();
        probe.facts.push(("driver".to_owned(), self.shared.peer.clone()));
        probe.facts.extend(self.facts.clone());
        if online && let Some(uri) = &self.endpoint {
            match self.reach(uri.clone()).await {
                Ok(fact) => probe.facts.push(("endpoint".to_owned(), fact)),
                Err(error) => probe.usable = Err(error),
            }
        }
        probe
    }

    async fn open(&self, spec: ConversationSpec) -> Result<Box<dyn Conversation>, Error> {
        // A wrong model name or setting is told now, not after the task was accepted.
        if let Some(wire) = &self.wire {
            wire.encode(&nothing(spec.model.as_deref().unwrap_or_default()))?;
        }
        let peer = Peer {
            peer: self.shared.peer.clone(),
            model: spec.model.clone(),
        };
        let (history, spent) = match &spec.resume {
            Some(state) => resume::read(state, &peer)?,
            None => (History::default(), Spent::default()),
        };
        let shared = self.shared.clone();
        Ok(Box::new(HttpConversation::new(shared, spec, history, spent)))
    }
}
