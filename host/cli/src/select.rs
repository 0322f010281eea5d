//! Which transport runs a capsule that asks for a family of them.
//!
//! `inference.dialect` names it; else what the program of `inference.command` prints for `--version` does; else that program's file name. Without a
//! program it is the first, by name, that could run here. Where that leaves none or several, the run ends before it begins.

use capsule_api::{Error, Secrets, Services, Settings, TransportDescriptor};
use capsule_manifest::{DIALECT, Loaded, TransportSchemas as _, Transports};

use crate::{
    Failure,
    candidates::{self, Tried},
    catalog,
    commands::on_runtime,
    failure::codes,
    program,
    view::plain,
};

/// Characters that are shown of what a program prints.
const SHOWN: usize = 80;

/// The transport that was chosen.
pub(crate) struct Chosen {
    pub(crate) member: &'static TransportDescriptor,
    /// How, in words.
    pub(crate) how: String,
}

/// Chooses among the family that the manifest asks for; `None` where it asks for one transport. Blocks; call it outside a runtime.
///
/// # Errors
/// The program is not there, its dialect is not clear, or no member could run here.
pub(crate) fn member(loaded: &Loaded, services: &Services) -> Result<Option<Chosen>, Failure> {
    let schemas = catalog::schemas()?;
    if schemas.members(&loaded.selected).is_empty() {
        return Ok(None);
    }
    let settings = loaded.settings_for(&loaded.selected, &schemas)?.settings;
    let chosen = on_runtime(choose(&schemas, loaded, &settings, services))?;
    let redacted = |error: Error| error.map_text(|text| services.secrets.redact(text).into_owned());
    Ok(Some(chosen.map_err(redacted)?))
}

async fn choose(
    schemas: &Transports,
    loaded: &Loaded,
    settings: &Settings,
    services: &Services,
) -> Result<Chosen, Error> {
    let secrets = &*services.secrets;
    if let Some(dialect) = text(settings, DIALECT, secrets)? {
        return by_dialect(schemas, &dialect);
    }
    if let Some(command) = text(settings, "command", secrets)? {
        return by_program(schemas, &command, settings, services).await;
    }
    first(candidates::tried(schemas.family(), schemas, Some(loaded), services).await)
}

/// A setting of the family, expanded.
fn text(settings: &Settings, key: &str, secrets: &dyn Secrets) -> Result<Option<String>, Error> {
    let Some(written) = settings.raw().get(key).and_then(serde_json::Value::as_str) else {
        return Ok(None);
    };
    let expanded = secrets.expand(written).map(Some);
    expanded.map_err(|error| settings.about(key, error))
}

fn by_dialect(schemas: &Transports, dialect: &str) -> Result<Chosen, Error> {
    let found = schemas.family().find(|member| member.name == dialect);
    let how = || format!("`{DIALECT}: {dialect}`");
    found.map(|member| Chosen { member, how: how() }).ok_or_else(|| {
        let message = format!(
            "no dialect is called {dialect:?}; there are: {}",
            names(schemas.family())
        );
        Error::new(&codes::DIALECT, message)
    })
}

async fn by_program(
    schemas: &Transports,
    command: &str,
    settings: &Settings,
    services: &Services,
) -> Result<Chosen, Error> {
    let (wanted, own) = (command.to_owned(), settings.clone());
    let found = tokio::task::spawn_blocking(move || program::find(&wanted, &own)).await;
    let path = found.expect("looking for a file does not panic")?;
    let said = program::version(&path, &*services.clock).await?;
    let recognise = |said: Option<&str>| -> Vec<_> {
        let knows = |member: &&TransportDescriptor| member.recognises.is_some_and(|knows| knows(&path, said));
        schemas.family().filter(knows).collect()
    };
    let shown = path.display();
    let printed = said.as_deref().map(|said| format!("{shown} prints {:?}", short(said)));
    let by_version = said.as_deref().map(|said| recognise(Some(said))).unwrap_or_default();
    let (by, how) = match (by_version.is_empty(), &printed) {
        (false, Some(printed)) => (by_version, printed.clone()),
        _ => (recognise(None), format!("the file name of {shown}")),
    };
    if let [member] = by[..] {
        return Ok(Chosen { member, how });
    }
    let printed = printed.unwrap_or_else(|| format!("{shown} prints no version"));
    let who = match by.len() {
        0 => "no dialect is for that, nor for its file name".to_owned(),
        _ => format!("that could be any of {}", names(by.into_iter())),
    };
    let message = format!("{printed}; {who}; the dialects are: {}", names(schemas.family()));
    Err(Error::new(&codes::DIALECT, message))
}

/// The first that could run here, or why none could: each with what to do.
fn first(tried: Vec<Tried>) -> Result<Chosen, Error> {
    let all = names(tried.iter().map(|tried| tried.descriptor));
    if let Some(usable) = tried.iter().find(|tried| tried.error().is_none()) {
        return Ok(Chosen {
            member: usable.descriptor,
            how: format!("the first of {all} that could run here"),
        });
    }
    let none = Error::new(&codes::NO_PROGRAM, format!("none of {all} could run here"));
    Err(tried.iter().fold(none, |error, tried| {
        let todo = tried.hint().map_or_else(String::new, |hint| format!("\n{hint}"));
        error.with(tried.descriptor.name, format!("{}{todo}", tried.state()))
    }))
}

fn names(transports: impl Iterator<Item = &'static TransportDescriptor>) -> String {
    transports
        .map(|transport| transport.name)
        .collect::<Vec<_>>()
        .join(", ")
}

fn short(text: &str) -> String {
    plain(text).chars().take(SHOWN).collect()
}
