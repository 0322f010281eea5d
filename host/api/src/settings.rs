//! A plugin's own settings, as the manifest hands them over.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Code, Error, ErrorKind, Secret, Secrets};

/// Codes that reading settings may raise.
pub mod codes {
    use super::{Code, ErrorKind};

    /// A value has the wrong form once its `${NAME}` is expanded.
    pub const UNREADABLE: Code = Code {
        id: "settings-unreadable",
        kind: ErrorKind::Settings,
        meaning: "A setting of the transport or driver cannot be read.",
        remedy: "Correct the key named in the message; `capsule schema` shows the expected form.",
    };
    /// A path points out of the capsule.
    pub const PATH_OUTSIDE: Code = Code {
        id: "settings-path-outside",
        kind: ErrorKind::Settings,
        meaning: "A path in the manifest leaves the manifest's directory.",
        remedy: "Move the file below the manifest's directory, or name it by an absolute path.",
    };
    /// All of them.
    pub const ALL: &[&Code] = &[&UNREADABLE, &PATH_OUTSIDE];
}

/// The settings of one transport or driver: already valid against its schema, `${NAME}` not yet expanded.
///
/// Expansion is lazy so that a capsule on the cassette needs no key: only what is decoded is resolved.
#[derive(Clone)]
pub struct Settings {
    values: Map<String, Value>,
    secret_keys: Vec<String>,
    base: PathBuf,
}

impl Settings {
    /// Settings read from a manifest in directory `base`. `schema` tells which keys are secret (`"writeOnly": true`).
    pub fn new(values: Map<String, Value>, schema: &Value, base: impl Into<PathBuf>) -> Self {
        let properties = schema["properties"].as_object();
        let secret = |(key, property): (&String, &Value)| (property["writeOnly"] == true).then(|| key.clone());
        let secret_keys = properties.into_iter().flatten().filter_map(secret).collect();
        Self {
            values,
            secret_keys,
            base: base.into(),
        }
    }

    /// No settings at all, for tests and for transports that have none.
    pub fn empty() -> Self {
        Self::new(Map::new(), &Value::Null, ".")
    }

    /// The unexpanded values.
    pub fn raw(&self) -> &Map<String, Value> {
        &self.values
    }

    /// Only the keys that `schema` knows, with that schema's secrets. So a transport hands its driver what belongs to it.
    #[must_use]
    pub fn only(&self, schema: &Value) -> Self {
        let known = |key: &String| schema["properties"].get(key).is_some();
        let values = self
            .values
            .iter()
            .filter(|(key, _)| known(key))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        Self::new(values, schema, self.base.clone())
    }

    /// The same without the keys that `schema` knows.
    #[must_use]
    pub fn without(&self, schema: &Value) -> Self {
        let mut rest = self.clone();
        rest.values.retain(|key, _| schema["properties"].get(key).is_none());
        rest
    }

    /// The directory that relative paths start from.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// A path from the manifest: relative ones start at the manifest's directory and may not leave it.
    pub fn path(&self, key: &str, path: &Path) -> Result<PathBuf, Error> {
        use std::path::Component;
        if path.is_absolute() {
            return Ok(path.to_owned());
        }
        if path
            .components()
            .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
        {
            let message = format!("`{key}`: the path {} leaves the manifest's directory", path.display());
            return Err(Error::new(&codes::PATH_OUTSIDE, message));
        }
        Ok(self.base.join(path))
    }

    /// Expands every string and reads the settings into `T`. Values of secret keys are protected before anything else sees them.
    ///
    /// # Errors
    /// An unset `${NAME}`, naming the key; a value that no longer fits once expanded. The error shows no expanded value.
    pub fn decode<T: DeserializeOwned>(&self, secrets: &dyn Secrets) -> Result<T, Error> {
        let mut expanded = Map::new();
        for (key, value) in &self.values {
            let value = expand(key, value, secrets)?;
            if self.secret_keys.contains(key)
                && let Some(text) = value.as_str()
            {
                secrets.protect(&Secret::new(text));
            }
            expanded.insert(key.clone(), value);
        }
        serde_json::from_value(Value::Object(expanded)).map_err(|error| {
            // serde quotes the value it did not like; only its complaint about names and types is safe to show.
            let complaint = error.to_string();
            let safe = complaint.split(": ").next().unwrap_or_default().to_owned();
            let complaint = if complaint.starts_with("missing field") || complaint.starts_with("unknown field") {
                complaint
            } else {
                safe
            };
            Error::new(&codes::UNREADABLE, format!("the settings cannot be read: {complaint}"))
        })
    }
}

fn expand(key: &str, value: &Value, secrets: &dyn Secrets) -> Result<Value, Error> {
    Ok(match value {
        Value::String(text) => {
            let named = |error: Error| {
                let message = format!("`{key}`: {}", error.message);
                error.reworded(message)
            };
            Value::String(secrets.expand(text).map_err(named)?)
        }
        Value::Array(items) => items
            .iter()
            .map(|item| expand(key, item, secrets))
            .collect::<Result<_, _>>()?,
        Value::Object(map) => {
            let inner = map
                .iter()
                .map(|(name, item)| Ok((name.clone(), expand(&format!("{key}.{name}"), item, secrets)?)));
            Value::Object(inner.collect::<Result<_, Error>>()?)
        }
        other => other.clone(),
    })
}
