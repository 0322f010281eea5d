//! A valid manifest and what one transport gets of it.

use std::path::{Path, PathBuf};

use capsule_api::{Error, Limits, Secrets, Settings};

use crate::{
    codes,
    family::DIALECT,
    files,
    manifest::{Block, Context, Manifest},
    report::Problem,
    schema::TransportSchemas,
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
    /// A path of the manifest: relative ones start at the manifest's directory.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.base.join(path)
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
            settings: Settings::new(own, &schema, self.base.clone()),
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
}

impl Chosen {
    /// The model to ask for; `None` leaves it to the transport.
    ///
    /// # Errors
    /// A variable in it is not set or malformed.
    pub fn model(&self, secrets: &dyn Secrets) -> Result<Option<String>, Error> {
        let expand = |model: &String| secrets.expand(model).map_err(|error| named("inference.model", &error));
        self.model.as_ref().map(expand).transpose()
    }

    /// The system prompt, possibly empty. A file's text is taken as it is, a text of the manifest is expanded. Blocks on the file system.
    ///
    /// # Errors
    /// A variable is not set or malformed; the file cannot be read.
    pub fn system_prompt(&self, secrets: &dyn Secrets) -> Result<String, Error> {
        if let Some(file) = &self.system_prompt_file {
            let key = "inference.system_prompt_file";
            let written = secrets
                .expand(&file.to_string_lossy())
                .map_err(|error| named(key, &error))?;
            let path = self.settings.path(key, Path::new(&written))?;
            return files::read(&path).map_err(|why| {
                Error::new(&codes::PROMPT_UNREADABLE, format!("{key}: {}: {why}", path.display()))
                    .with("file", path.display().to_string())
            });
        }
        let text = self.system_prompt.as_deref().unwrap_or_default();
        secrets
            .expand(text)
            .map_err(|error| named("inference.system_prompt", &error))
    }
}

fn named(key: &str, error: &Error) -> Error {
    error.clone().reworded(format!("{key}: {}", error.message))
}
