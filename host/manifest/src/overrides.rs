//! `--set key.path=value`: values of the command line in place of the file's.

use capsule_api::Error;
use serde_json::{Map, Value};

use crate::{
    codes,
    places::{Places, dotted},
    tree,
};

/// One value that replaces, or adds to, the manifest for a run.
#[derive(Clone, PartialEq)]
pub struct Override {
    flag: String,
    at: At,
    value: Value,
}

/// Which key.
#[derive(Clone, PartialEq)]
enum At {
    /// The one at this path.
    Path(Vec<String>),
    /// This setting of the transport that runs, wherever the file has that transport's settings.
    Own(String),
}

impl std::fmt::Debug for Override {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The value may be a secret.
        f.debug_tuple("Override").field(&self.flag).finish()
    }
}

impl Override {
    /// Reads `key.path=value`, as `--set` takes it. The value is YAML; nothing after `=` is an empty text. A number in the path is the
    /// position in a list, from 0.
    ///
    /// # Errors
    /// No `=`, an empty key, or a value that is not YAML. The error does not show the value.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (path, value) = text
            .split_once('=')
            .ok_or_else(|| Error::new(&codes::OVERRIDE, "`--set` needs `key.path=value`; there is no `=`"))?;
        let path: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(Error::new(
                &codes::OVERRIDE,
                "`--set` needs a key before `=`, such as `inference.max_turns`",
            ));
        }
        let flag = format!("--set {}", path.join("."));
        let value = match value {
            "" => Value::String(String::new()),
            value => {
                let tree = tree::parse(value)
                    .map_err(|broken| Error::new(&codes::OVERRIDE, format!("{flag}: {}", broken.message)))?;
                if let Some(twice) = tree.duplicates.first() {
                    let message = format!("{flag}: the key `{}` is there twice", dotted(&twice.pointer));
                    return Err(Error::new(&codes::OVERRIDE, message));
                }
                tree.value
            }
        };
        let at = At::Path(path);
        Ok(Self { flag, at, value })
    }

    /// A text for one of the settings of the transport that runs, set by another flag than `--set`; `flag` is what problems name.
    pub fn of_flag(flag: &str, key: &str, value: &str) -> Self {
        Self {
            flag: flag.to_owned(),
            at: At::Own(key.to_owned()),
            value: value.into(),
        }
    }

    /// The flag, without its value.
    pub(crate) fn flag(&self) -> &str {
        &self.flag
    }

    /// Where the value goes: `named` is the transport whose settings stand flat, `selected` the one that runs.
    fn path(&self, root: &Value, named: &str, selected: &str) -> Vec<String> {
        let path = match &self.at {
            At::Path(path) => return path.clone(),
            // A key of a block goes over a flat one.
            At::Own(key) if selected != named || !root["inference"]["transports"][selected][key].is_null() => {
                &["inference", "transports", selected, key][..]
            }
            At::Own(key) => &["inference", key],
        };
        path.iter().map(|part| (*part).to_owned()).collect()
    }

    /// Puts the value in its place, with the mappings that lead there. `Err` says why it has none.
    pub(crate) fn apply(
        &self,
        root: &mut Value,
        places: &mut Places,
        (named, selected): (&str, &str),
    ) -> Result<(), String> {
        let path = self.path(root, named, selected);
        let mut at = root;
        let mut pointer = String::new();
        for part in &path {
            let above = dotted(&pointer);
            pointer = tree::child(&pointer, part);
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            at = match at {
                Value::Object(map) => map.entry(part.clone()).or_insert(Value::Null),
                Value::Array(items) => {
                    let count = items.len();
                    match part.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                        Some(item) => item,
                        None => {
                            return Err(format!(
                                "`{above}` is a list of {count}, so `{part}` is no position in it (they begin at 0)"
                            ));
                        }
                    }
                }
                _ => {
                    return Err(format!(
                        "`{above}` is neither a mapping nor a list, so it has no `{part}`"
                    ));
                }
            };
        }
        *at = self.value.clone();
        places.set_by_flag(&pointer, &self.flag);
        Ok(())
    }
}
