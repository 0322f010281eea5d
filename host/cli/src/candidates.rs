//! What could run here: each transport, asked about this machine.

use std::{sync::Arc, time::Duration};

use capsule_api::{Clock, Error, Probe, Secrets, Services, Settings, Transport, TransportDescriptor, timeout};
use capsule_manifest::{Loaded, Transports};
use serde_json::{Map, Value, json};

use crate::failure::{self, codes};

/// How long a transport may take to look at this machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A transport, tried.
pub(crate) struct Tried {
    pub(crate) descriptor: &'static TransportDescriptor,
    /// `Err` where the manifest has no settings for it that hold.
    pub(crate) probe: Result<Probe, Error>,
}

/// Each of these transports with what it says about this machine, asked at once; nothing is sent.
///
/// With a manifest each has its settings, else none. What they say is free of protected values.
pub(crate) async fn tried(
    descriptors: impl Iterator<Item = &'static TransportDescriptor>,
    schemas: &Transports,
    loaded: Option<&Loaded>,
    services: &Services,
) -> Vec<Tried> {
    let asked: Vec<_> = descriptors
        .map(|descriptor| {
            let probing = build(descriptor, schemas, loaded, services)
                .map(|transport| tokio::spawn(probe(transport, descriptor, services.clock.clone())));
            (descriptor, probing)
        })
        .collect();
    let mut tried = Vec::new();
    for (descriptor, probing) in asked {
        let probe = match probing {
            Ok(probing) => probing.await.unwrap_or_else(|panic| {
                let what = format!("ask {}", descriptor.crate_name);
                Err(failure::internal(&what, &std::io::Error::other(panic.to_string())))
            }),
            Err(error) => Err(error),
        };
        let probe = redacted(probe, &*services.secrets);
        tried.push(Tried { descriptor, probe });
    }
    tried
}

async fn probe(
    transport: Box<dyn Transport>,
    descriptor: &TransportDescriptor,
    clock: Arc<dyn Clock>,
) -> Result<Probe, Error> {
    timeout(&*clock, PATIENCE, transport.probe(false)).await.map_err(|_| {
        let message = format!("{} did not answer within {PATIENCE:?}", descriptor.crate_name);
        Error::new(&codes::PROBE_TIMEOUT, message)
    })
}

/// The transport with the manifest's settings for it, or with none.
fn build(
    descriptor: &'static TransportDescriptor,
    schemas: &Transports,
    loaded: Option<&Loaded>,
    services: &Services,
) -> Result<Box<dyn Transport>, Error> {
    let settings = match loaded {
        Some(loaded) => loaded.settings_for(descriptor.name, schemas)?.settings,
        None => Settings::new(Map::new(), &(descriptor.settings_schema)(None), "."),
    };
    has_all(descriptor, settings.raw(), loaded)?;
    (descriptor.build)(settings, services.clone())
}

/// Whether these settings have every key that the transport needs.
fn has_all(
    descriptor: &TransportDescriptor,
    settings: &Map<String, Value>,
    loaded: Option<&Loaded>,
) -> Result<(), Error> {
    let schema = (descriptor.settings_schema)(loaded.map(|_| Value::Object(settings.clone())).as_ref());
    let required = schema["required"].as_array().into_iter().flatten();
    let keys: Vec<_> = required
        .filter_map(Value::as_str)
        .filter(|key| !settings.contains_key(*key))
        .collect();
    let Some(first) = keys.first() else {
        return Ok(());
    };
    let example = descriptor.example.trim_end().replace('\n', "; ");
    let hint = match loaded {
        Some(_) => how_to_give(&schema, first, &example),
        None => format!("Name a capsule: `capsule doctor DIR`. Its `inference` has, for example: {example}"),
    };
    let message = who_needs(descriptor, &schema, &keys);
    Err(Error::new(&codes::NEEDS_SETTINGS, message).hint(hint))
}

/// Who needs these keys: a part of the transport, where its schema says so (`x-needed-by`).
fn who_needs(descriptor: &TransportDescriptor, schema: &Value, keys: &[&str]) -> String {
    let mut needs: Vec<(String, Vec<String>)> = Vec::new();
    for key in keys {
        let part = schema["properties"][*key]["x-needed-by"].as_str();
        let who = part.map_or_else(|| format!("the transport {}", descriptor.name), str::to_owned);
        match needs.iter_mut().find(|(known, _)| *known == who) {
            Some((_, keys)) => keys.push(format!("`{key}`")),
            None => needs.push((who, vec![format!("`{key}`")])),
        }
    }
    let needs: Vec<_> = needs
        .iter()
        .map(|(who, keys)| format!("{who} needs {}", keys.join(", ")))
        .collect();
    needs.join("; ")
}

/// How a missing key is given: as its own schema says, else as in the transport's example.
fn how_to_give(schema: &Value, key: &str, example: &str) -> String {
    match schema["properties"][key]["examples"][0].as_str() {
        Some(value) => format!("Give it in `inference`, for example: {key}: {value}"),
        None => format!("Give it in `inference`, for example: {example}"),
    }
}

fn redacted(probe: Result<Probe, Error>, secrets: &dyn Secrets) -> Result<Probe, Error> {
    let clean = |text: &str| secrets.redact(text).into_owned();
    let mut probe = probe.map_err(|error| error.map_text(clean))?;
    probe.usable = probe.usable.map_err(|error| error.map_text(clean));
    for (_, value) in &mut probe.facts {
        *value = clean(value);
    }
    Ok(probe)
}

impl Tried {
    /// What keeps it from running here.
    pub(crate) fn error(&self) -> Option<&Error> {
        match &self.probe {
            Ok(probe) => probe.usable.as_ref().err(),
            Err(error) => Some(error),
        }
    }

    /// What it found.
    pub(crate) fn facts(&self) -> &[(String, String)] {
        self.probe.as_ref().map_or(&[], |probe| &probe.facts)
    }

    /// How it stands, in words.
    pub(crate) fn state(&self) -> String {
        match (&self.probe, self.error()) {
            (_, None) => "could run".to_owned(),
            (Ok(_), Some(error)) => format!("could not run: {}", error.message),
            (Err(_), Some(error)) => format!("not set up: {}", error.message),
        }
    }

    /// What to do.
    pub(crate) fn hint(&self) -> Option<&str> {
        let hint: &str = &self.error()?.hint;
        (!hint.is_empty()).then_some(hint)
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        let facts: Map<String, Value> = self
            .facts()
            .iter()
            .cloned()
            .map(|(name, value)| (name, value.into()))
            .collect();
        json!({
            "name": self.descriptor.name,
            "family": self.descriptor.family,
            "summary": self.descriptor.summary,
            "usable": self.error().is_none(),
            "facts": facts,
            "error": self.error().map(error),
        })
    }
}

/// An error for programs.
pub(crate) fn error(error: &Error) -> Value {
    json!({"code": error.code, "message": error.message, "hint": error.hint})
}
