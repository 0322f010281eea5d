//! A tape in the model's place.

use std::path::Path;

use capsule_manifest::{Model, Override, TransportSchemas as _};

use super::file;
use crate::{Choice, Failure, catalog, links};

const SCRIPT: &str = "the capsule is a script, which asks none";

/// What to do where a tool answers something else than was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrift {
    /// The run fails.
    Fail,
    /// The tape is played to its end.
    PlayOn,
}

/// Who asks the model.
enum Asks {
    /// The host: only then is there anything to record or to play.
    Host,
    /// The peer of this transport.
    Peer(&'static str),
    /// Nobody.
    Script,
}

fn who_asks(choice: &Choice) -> Result<Asks, Failure> {
    // A driver may be missing: the tape takes its place.
    let loaded = choice.load_for(None, Model::Keys)?;
    if loaded.manifest.script.is_some() {
        return Ok(Asks::Script);
    }
    let schemas = catalog::schemas()?;
    if !schemas.members(&loaded.selected).is_empty() {
        return Ok(Asks::Peer(schemas.name()));
    }
    let transport = schemas.registry().get(&loaded.selected)?;
    Ok(match transport.at_most.host_owns_loop {
        true => Asks::Host,
        false => Asks::Peer(transport.name),
    })
}

/// Whether this is the file of a tape.
pub(crate) fn is_tape(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json") && file::read(path).is_ok()
}

/// The error of a command that was given a tape in the place of a capsule.
pub(crate) fn no_capsule(tape: &Path) -> Failure {
    let folder = tape.parent().filter(|folder| folder.ends_with("tapes"));
    let capsule = folder
        .and_then(Path::parent)
        .map_or("DIR".to_owned(), |dir| match dir.to_str() {
            Some("") => ".".to_owned(),
            _ => dir.display().to_string(),
        });
    let message = format!("{} is a tape, and a capsule is asked for", tape.display());
    let hint = format!(
        "`capsule test {capsule}` plays all of its tapes; `capsule run {capsule} --replay {}` plays this one.",
        tape.display()
    );
    Failure::usage(message, hint)
}

/// Whether what this choice runs can be recorded.
///
/// # Errors
/// It cannot; the message says why and what to do.
pub(crate) fn check_recordable(choice: &Choice) -> Result<(), Failure> {
    check_host_asks("--record", choice)
}

/// The same choice with this tape in the driver's place. All other settings stay.
///
/// # Errors
/// Its transport has no driver, or the tape cannot be read.
pub(crate) fn replaying(choice: &Choice, tape: &Path, on_drift: OnDrift) -> Result<Choice, Failure> {
    check_host_asks("--replay", choice)?;
    file::read(tape)?;
    with_tape(choice, tape, on_drift)
}

/// The same for a rehearsal, which is the tools' and not the transport's: where the manifest's has no driver, it runs on the default one.
///
/// # Errors
/// The capsule is a script, or the path is not text.
pub(crate) fn rehearsing(choice: &Choice, tape: &Path) -> Result<Choice, Failure> {
    let mut choice = choice.clone();
    match who_asks(&choice)? {
        Asks::Host => {}
        Asks::Peer(_) => choice.transport = Some(links::DEFAULT_TRANSPORT.to_owned()),
        Asks::Script => {
            return Err(refused(
                "capsule test",
                SCRIPT,
                "Call its tools with `capsule tool call`, or run it.",
            ));
        }
    }
    with_tape(&choice, tape, OnDrift::PlayOn)
}

fn check_host_asks(flag: &str, choice: &Choice) -> Result<(), Failure> {
    match who_asks(choice)? {
        Asks::Host => Ok(()),
        Asks::Script => Err(refused(
            flag,
            SCRIPT,
            &format!("Run it without `{flag}`; its trace has the calls."),
        )),
        Asks::Peer(transport) => {
            let default = links::DEFAULT_TRANSPORT;
            let why = format!("the transport `{transport}` leaves that to its peer; `--transport {default}` does not");
            let hint = format!("Add `--transport {default}` and a driver, or run it without `{flag}`.");
            Err(refused(flag, &why, &hint))
        }
    }
}

fn refused(what: &str, why: &str, hint: &str) -> Failure {
    let message = format!("`{what}` needs a run in which the host itself asks the model: {why}");
    Failure::usage(message, hint)
}

fn with_tape(choice: &Choice, tape: &Path, on_drift: OnDrift) -> Result<Choice, Failure> {
    let unreadable = |why: &str| {
        let message = format!("the tape {}: {why}", tape.display());
        Failure::usage(
            message,
            "Move it to a path of UTF-8 text that can be reached from here.",
        )
    };
    let path = std::path::absolute(tape).map_err(|error| unreadable(&error.to_string()))?;
    let path = path.to_str().ok_or_else(|| unreadable("its path is not UTF-8"))?;
    let mut choice = choice.clone();
    let mut set = |key, value: &str| choice.overrides.push(Override::of_flag("--replay", key, value));
    set("driver", links::player::DRIVER);
    // Settings are expanded, paths of a command line are not.
    set(links::player::TAPE, &path.replace("${", "$${"));
    if on_drift == OnDrift::PlayOn {
        let (key, value) = links::player::DRIFT;
        set(key, value);
    }
    Ok(choice)
}
