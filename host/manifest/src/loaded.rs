//! A valid manifest and what one transport gets of it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use capsule_api::{Error, Limits, Secrets, Settings};

use crate::{
    codes,
    family::DIALECT,
    files,
    manifest::{Block, Context, Manifest},
    places::Places,
    report::Problem,
    schema::TransportSchemas,
    tree::{child, parts},
};

/// A valid manifest with its place.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The manifest, overrides included.
    pub manifest: Manifest,
    /// The manifest's directory, where relative paths start.
    pub base: PathBuf,
    /// The file it came from.
    pub file: PathBuf,
    /// What is odd but no error.
    pub warnings: Vec<Problem>,
    /// The transport to run on: that of the flag, else the file's, else the default. It stands for a family where no member is chosen yet.
    pub selected: String,
    /// The transport that the flag, else the file, asks for: `selected`, or the family through which that was chosen.
    pub asked: String,
    pub(crate) named: String,
    pub(crate) model: Option<String>,
    pub(crate) places: Arc<Places>,
}

/// What one transport gets of a manifest.
#[derive(Clone)]
#[non_exhaustive]
pub struct Chosen {
    /// The transport's name.
    pub transport: String,
    /// Its own settings, `${NAME}` not yet expanded.
    pub settings: Settings,
    /// Limits of each turn.
    pub limits: Limits,
    model: Option<String>,
    system_prompt: Option<String>,
    system_prompt_file: Option<PathBuf>,
}

impl Loaded {
    /// A path of the manifest: relative ones start at the manifest's directory. A `.` inside it is left out.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.base.join(path).components().collect()
    }

    /// The error with a place of the manifest before its message: file, line, column and key; or the flag that gave the value. `pointer` is the
    /// JSON Pointer of the value; for one that is not in the file, the nearest place above it counts.
    #[must_use]
    pub fn about(&self, pointer: &str, error: Error) -> Error {
        let message = format!("{}: {}", self.places.tell(&self.file, pointer), error.message);
        error.reworded(message)
    }

    /// The settings of the transport to run on.
    ///
    /// # Errors
    /// As for [`Loaded::settings_for`]; not for a manifest that was loaded with the same schemas.
    pub fn settings(&self, schemas: &dyn TransportSchemas) -> Result<Chosen, Error> {
        self.settings_for(&self.selected, schemas)
    }

    /// The settings of one transport: the common keys, the flat ones if the file names this transport, and over both its own block.
    ///
    /// A member of the family that is asked for also gets the family's: the flat ones if the file names the family, and its block below the
    /// member's own.
    ///
    /// Only the selected transport's settings are known to be complete.
    ///
    /// # Errors
    /// There is no such transport.
    pub fn settings_for(&self, transport: &str, schemas: &dyn TransportSchemas) -> Result<Chosen, Error> {
        let mut keys: Block = self.manifest.inference.flat.clone();
        let members = schemas.members(&self.asked);
        let family = members.iter().any(|member| member == transport).then_some(&self.asked);
        if transport != self.named && family != Some(&self.named) {
            keys.own.clear();
        }
        if let Some(family) = family {
            if let Some(block) = self.manifest.inference.transports.get(family) {
                keys = keys.overridden_by(block);
            }
            keys.own.shift_remove(DIALECT);
        }
        if let Some(block) = self.manifest.inference.transports.get(transport) {
            keys = keys.overridden_by(block);
        }
        keys.model = self.model.clone().or(keys.model);
        let places = self.places_of(&keys, transport, family);
        let own = serde_json::Value::Object(keys.own);
        let schema = schemas.schema(transport, Some(&own)).ok_or_else(|| {
            let names = schemas.names().join(", ");
            Error::new(
                &codes::INVALID,
                format!("no transport is called {transport:?}; there are {names}"),
            )
        })?;
        let own = match own {
            serde_json::Value::Object(own) => own,
            _ => serde_json::Map::new(),
        };
        let defaults = Limits::default();
        Ok(Chosen {
            transport: transport.to_owned(),
            settings: Settings::new(own, &schema, self.base.clone()).with_places(places),
            limits: Limits {
                requests: keys.max_turns.unwrap_or(defaults.requests),
                output_tokens: keys.max_tokens.unwrap_or(defaults.output_tokens),
                context: self.manifest.context.map(Context::window),
                answer: self.manifest.lifecycle.input_timeout.0,
            },
            model: keys.model,
            system_prompt: keys.system_prompt,
            system_prompt_file: keys.system_prompt_file,
        })
    }

    /// Where each of a transport's settings stands: in its own block, in its family's, or beside the common keys.
    fn places_of(&self, keys: &Block, transport: &str, family: Option<&String>) -> capsule_api::SettingPlaces {
        let owners = [Some(transport), family.map(String::as_str)];
        let blocks: Vec<_> = owners
            .into_iter()
            .flatten()
            .filter_map(|owner| Some((owner, self.manifest.inference.transports.get(owner)?)))
            .collect();
        let mut above: BTreeMap<String, String> = BTreeMap::new();
        for key in keys
            .own
            .keys()
            .map(String::as_str)
            .chain(["model", "system_prompt", "system_prompt_file"])
        {
            let by_flag = key == "model" && self.model.is_some();
            if let Some((owner, _)) = blocks.iter().find(|(_, block)| !by_flag && block.has(key)) {
                above.insert(key.to_owned(), child("/inference/transports", owner));
            }
        }
        let (places, file) = (self.places.clone(), self.file.clone());
        Arc::new(move |pointer: &str| {
            let block = parts(pointer).next().and_then(|key| above.get(&key));
            let block = block.map_or("/inference", String::as_str);
            places.tell(&file, &format!("{block}{pointer}"))
        })
    }
}

impl Chosen {
    /// The model to ask for; `None` leaves it to the transport.
    ///
    /// # Errors
    /// A variable in it is not set or malformed.
    pub fn model(&self, secrets: &dyn Secrets) -> Result<Option<String>, Error> {
        let expand = |model: &String| {
            secrets
                .expand(model)
                .map_err(|error| self.settings.about("model", error))
        };
        self.model.as_ref().map(expand).transpose()
    }

    /// The system prompt, possibly empty. A file's text is taken as it is, a text of the manifest is expanded. Blocks on the file system.
    ///
    /// # Errors
    /// A variable is not set or malformed; the file cannot be read.
    pub fn system_prompt(&self, secrets: &dyn Secrets) -> Result<String, Error> {
        if let Some(file) = &self.system_prompt_file {
            let key = "system_prompt_file";
            let written = secrets
                .expand(&file.to_string_lossy())
                .map_err(|error| self.settings.about(key, error))?;
            let path = self.settings.path(key, Path::new(&written))?;
            return files::read(&path).map_err(|why| {
                let error = Error::new(&codes::PROMPT_UNREADABLE, format!("{}: {why}", path.display()));
                let error = error.with("file", path.display().to_string());
                self.settings.about(key, error)
            });
        }
        let text = self.system_prompt.as_deref().unwrap_or_default();
        secrets
            .expand(text)
            .map_err(|error| self.settings.about("system_prompt", error))
    }
}
