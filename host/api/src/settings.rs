//! A plugin's own settings, as the manifest hands them over.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

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
    schema: Arc<Value>,
    base: PathBuf,
    places: Option<Places>,
}

/// Says where a setting stands, such as `box/capsule.yaml:7:12: inference.api_key`, by the JSON Pointer of its value in the settings.
pub type Places = Arc<dyn Fn(&str) -> String + Send + Sync>;

impl Settings {
    /// Settings read from a manifest in directory `base`. `schema` tells which values are secret (`"writeOnly": true`), at any depth.
    pub fn new(values: Map<String, Value>, schema: &Value, base: impl Into<PathBuf>) -> Self {
        Self {
            values,
            schema: Arc::new(schema.clone()),
            base: base.into(),
            places: None,
        }
    }

    /// The same settings, whose errors begin with the place of what they speak of.
    #[must_use]
    pub fn with_places(mut self, places: Places) -> Self {
        self.places = Some(places);
        self
    }

    /// The error with the place of this key before its message; where none is known, the key alone.
    #[must_use]
    pub fn about(&self, key: &str, error: Error) -> Error {
        self.at(&format!("/{}", key.replace('.', "/")), error)
    }

    fn at(&self, pointer: &str, error: Error) -> Error {
        let message = format!("{}: {}", self.place(pointer), error.message);
        error.reworded(message)
    }

    fn place(&self, pointer: &str) -> String {
        match &self.places {
            Some(places) => places(pointer),
            None => format!("`{}`", dotted(pointer)),
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
        Self {
            values,
            schema: Arc::new(schema.clone()),
            ..self.clone()
        }
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
            let message = format!("the path {} leaves the manifest's directory", path.display());
            return Err(self.about(key, Error::new(&codes::PATH_OUTSIDE, message)));
        }
        Ok(self.base.join(path))
    }

    /// Expands every string and reads the settings into `T`. Secret values are protected before anything else sees them.
    ///
    /// # Errors
    /// An unset `${NAME}`, naming the key; a value that no longer fits once expanded, naming the key and what was expected. The error
    /// shows neither an expanded nor a secret value.
    pub fn decode<T: DeserializeOwned>(&self, secrets: &dyn Secrets) -> Result<T, Error> {
        let mut expanded = Map::new();
        for (key, value) in &self.values {
            expanded.insert(key.clone(), self.expand(&child("", key), value, secrets)?);
        }
        let expanded = Value::Object(expanded);
        let mut hidden = Vec::new();
        secret_texts(&self.schema, &self.schema, &expanded, 0, &mut hidden);
        for text in &hidden {
            secrets.protect(&Secret::new(text.as_str()));
        }
        changed_texts(&Value::Object(self.values.clone()), &expanded, &mut hidden);
        serde_path_to_error::deserialize(expanded).map_err(|error| {
            let complaint = shown(&error.inner().to_string(), &hidden);
            match pointer(error.path()).as_str() {
                "" => Error::new(&codes::UNREADABLE, format!("the settings cannot be read: {complaint}")),
                pointer => self.at(pointer, Error::new(&codes::UNREADABLE, complaint)),
            }
        })
    }

    fn expand(&self, pointer: &str, value: &Value, secrets: &dyn Secrets) -> Result<Value, Error> {
        Ok(match value {
            Value::String(text) => Value::String(secrets.expand(text).map_err(|error| self.at(pointer, error))?),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items
                    .map(|(index, item)| self.expand(&format!("{pointer}/{index}"), item, secrets))
                    .collect::<Result<_, _>>()?
            }
            Value::Object(map) => {
                let inner = map
                    .iter()
                    .map(|(name, item)| Ok((name.clone(), self.expand(&child(pointer, name), item, secrets)?)));
                Value::Object(inner.collect::<Result<_, Error>>()?)
            }
            other => other.clone(),
        })
    }
}

/// The JSON Pointer of a key below another.
fn child(above: &str, key: &str) -> String {
    format!("{above}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Where a value is that could not be read.
fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter().fold(String::new(), |above, segment| match segment {
        Segment::Seq { index } => format!("{above}/{index}"),
        Segment::Map { key } => child(&above, key),
        Segment::Enum { variant } => child(&above, variant),
        Segment::Unknown => above,
    })
}

/// A pointer as people write it.
fn dotted(pointer: &str) -> String {
    let mut text = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        match part.parse::<usize>() {
            Ok(index) => text.push_str(&format!("[{index}]")),
            Err(_) if text.is_empty() => text = part,
            Err(_) => text.push_str(&format!(".{part}")),
        }
    }
    text
}

/// A complaint of serde without the value it may quote. Types write what they expected after the value.
fn shown(complaint: &str, hidden: &[String]) -> String {
    if hidden.is_empty() {
        return complaint.to_owned();
    }
    // A value may itself look like a complaint, so what is left is searched once more.
    let quotes = ["invalid type", "invalid value", "invalid length", "unknown variant"];
    let safe = match complaint.rsplit_once(", expected ") {
        Some((start, expected)) if quotes.iter().any(|quote| start.starts_with(quote)) => {
            format!("expected {expected}")
        }
        _ => complaint.to_owned(),
    };
    let quoted = |text: &String| {
        let escaped = format!("{text:?}");
        safe.contains(text.as_str()) || safe.contains(&escaped[1..escaped.len() - 1])
    };
    let names_only = safe.starts_with("missing field `") || safe.starts_with("unknown field `");
    let clean = !hidden.iter().any(quoted) && (safe.starts_with("expected ") || names_only);
    if clean {
        safe
    } else {
        "the value does not have the expected form (it is not shown)".to_owned()
    }
}

/// Levels of references and values that a schema is followed; below them everything counts as secret.
const DEEPEST: usize = 100;

/// The texts that the schema marks as secret.
fn secret_texts(root: &Value, schema: &Value, value: &Value, depth: usize, into: &mut Vec<String>) {
    if schema["writeOnly"] == true || depth > DEEPEST {
        return all_texts(value, into);
    }
    let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    if let Some(target) = target.and_then(|target| root.pointer(target)) {
        secret_texts(root, target, value, depth + 1, into);
    }
    let forms = ["allOf", "anyOf", "oneOf"]
        .iter()
        .filter_map(|key| schema[*key].as_array())
        .flatten();
    let branches = ["then", "else"].iter().filter_map(|key| schema.get(*key));
    for form in forms.chain(branches) {
        secret_texts(root, form, value, depth + 1, into);
    }
    for (key, item) in value.as_object().into_iter().flatten() {
        let property = schema["properties"]
            .get(key)
            .or_else(|| schema.get("additionalProperties"));
        if let Some(property) = property {
            secret_texts(root, property, item, depth + 1, into);
        }
    }
    for item in value.as_array().into_iter().flatten() {
        secret_texts(root, &schema["items"], item, depth + 1, into);
    }
}

fn all_texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| all_texts(item, into)),
        Value::Object(map) => map.values().for_each(|item| all_texts(item, into)),
        _ => {}
    }
}

/// The texts that expansion has changed.
fn changed_texts(raw: &Value, expanded: &Value, into: &mut Vec<String>) {
    match (raw, expanded) {
        (Value::String(raw), Value::String(text)) if raw != text => into.push(text.clone()),
        (Value::Array(raw), Value::Array(items)) => {
            raw.iter()
                .zip(items)
                .for_each(|(raw, item)| changed_texts(raw, item, into));
        }
        (Value::Object(raw), Value::Object(map)) => {
            raw.values()
                .zip(map.values())
                .for_each(|(raw, item)| changed_texts(raw, item, into));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::sync::Mutex;

    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::HumanDuration;

    /// `${X}` stands for the text.
    #[derive(Default)]
    struct X(&'static str, Mutex<Vec<String>>);

    impl Secrets for X {
        fn expand(&self, text: &str) -> Result<String, Error> {
            if text.contains("${UNSET}") {
                return Err(Error::new(&codes::UNREADABLE, "the variable `UNSET` is not set"));
            }
            Ok(text.replace("${X}", self.0))
        }

        fn protect(&self, secret: &Secret) {
            self.1.lock().unwrap().push(secret.expose().to_owned());
        }

        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            Cow::Borrowed(text)
        }
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, default)]
    struct Own {
        wait: Option<HumanDuration>,
        count: Option<u32>,
        mode: Option<Mode>,
        headers: Map<String, Value>,
        key: Option<String>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
    }

    fn schema() -> Value {
        json!({
            "properties": {
                "key": {"$ref": "#/$defs/secret"},
                "headers": {"additionalProperties": {"writeOnly": true}},
            },
            "$defs": {"secret": {"type": "string", "writeOnly": true}},
        })
    }

    fn decode(values: Value, x: &'static str) -> Result<Own, Error> {
        let Value::Object(values) = values else {
            panic!("{values}")
        };
        Settings::new(values, &schema(), ".").decode(&X(x, Mutex::default()))
    }

    #[test]
    fn secrets_are_protected_at_any_depth_and_through_references() {
        let values = json!({"key": "${X}", "headers": {"a": "b", "c": "${X}"}, "count": 1});
        let Value::Object(values) = values else {
            panic!("an object")
        };
        let secrets = X("sk-secret", Mutex::default());
        let own: Own = Settings::new(values, &schema(), ".").decode(&secrets).unwrap();
        assert_eq!(own.key.as_deref(), Some("sk-secret"));
        assert_eq!(*secrets.1.lock().unwrap(), ["sk-secret", "b", "sk-secret"]);
    }

    #[test]
    fn an_error_names_the_key_and_what_was_expected() {
        let message = |values: Value| decode(values, "sk-secret").unwrap_err().message.clone();
        assert_eq!(message(json!({"count": "${X}"})), "`count`: expected u32");
        assert_eq!(message(json!({"mode": "${X}"})), "`mode`: expected `fast`");
        assert_eq!(
            message(json!({"wait": "${X}"})),
            "`wait`: expected a whole number with a unit (ms, s, m, h, d), such as `60s`"
        );
        assert_eq!(
            message(json!({"headers": {"a": "${UNSET}"}})),
            "`headers.a`: the variable `UNSET` is not set"
        );
        assert_eq!(
            message(json!({"count": "many"})),
            "`count`: invalid type: string \"many\", expected u32",
            "what stands in the file may be shown"
        );
    }

    #[test]
    fn an_error_begins_with_the_place_where_that_is_known() {
        let values = json!({"headers": {"a/b": "${UNSET}"}});
        let settings = Settings::new(values.as_object().unwrap().clone(), &schema(), "/base");
        let settings = settings.with_places(Arc::new(|pointer: &str| format!("file:1:2: {pointer}")));
        let own = settings.only(&json!({"properties": {"headers": {}}}));
        let error = own.decode::<Own>(&X("", Mutex::default())).unwrap_err();
        assert_eq!(
            error.message,
            "file:1:2: /headers/a~1b: the variable `UNSET` is not set"
        );
        let error = own.path("command", Path::new("../x")).unwrap_err();
        assert_eq!(
            error.message,
            "file:1:2: /command: the path ../x leaves the manifest's directory"
        );
    }

    #[test]
    fn a_value_that_imitates_a_complaint_is_not_shown() {
        for value in [
            "x, expected sk-secret",
            "expected sk-secret",
            "missing field `sk-secret`",
            "\", expected \"q",
        ] {
            for key in ["count", "mode", "wait", "headers"] {
                let error = decode(json!({key: "${X}"}), value).unwrap_err();
                assert!(!error.message.contains("sk-secret"), "{key}: {}", error.message);
                assert!(!error.message.contains(value), "{key}: {}", error.message);
            }
        }
    }

    #[test]
    fn relative_paths_stay_inside() {
        let settings = Settings::new(Map::new(), &Value::Null, "/base");
        assert_eq!(
            settings.path("k", Path::new("./a/b")).unwrap(),
            Path::new("/base/./a/b")
        );
        assert_eq!(
            settings.path("k", Path::new("/elsewhere")).unwrap(),
            Path::new("/elsewhere")
        );
        assert_eq!(
            settings.path("k", Path::new("a/../../b")).unwrap_err().code,
            "settings-path-outside"
        );
    }

    proptest! {
        #[test]
        fn no_expanded_value_is_in_an_error(value in "[a-zA-Z0-9`\", ]{8,30}", key in "count|mode|wait|headers") {
            let mut values = Map::new();
            values.insert(key, Value::String(format!("${{X}}{value}")));
            let decoded: Result<Own, _> = Settings::new(values, &schema(), ".").decode(&X("!", Mutex::default()));
            if let Err(error) = decoded {
                prop_assert!(!error.message.contains(&value), "{}", error.message);
            }
        }
    }
}
