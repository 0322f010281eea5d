//! A tape in the model's place.

use std::path::Path;

use capsule_api::TransportDescriptor;
use capsule_manifest::Override;

use crate::{Choice, Failure, catalog, links};

/// What to do where a tool answers something else than was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrift {
    /// The run fails.
    Fail,
    /// The tape is played to its end.
    PlayOn,
}

/// The transport that this choice runs on, if it asks the model itself: only then is there anything to record or to play.
///
/// # Errors
/// The manifest cannot be read.
fn own_loop(choice: &Choice) -> Result<Result<&'static TransportDescriptor, String>, Failure> {
    let loaded = choice.load()?;
    if loaded.manifest.script.is_some() {
        return Ok(Err("the capsule is a script, which asks no model".to_owned()));
    }
    let transport = catalog::transports()?.get(&loaded.selected)?;
    Ok(if transport.at_most.host_owns_loop {
        Ok(transport)
    } else {
        Err(format!(
            "the transport `{}` leaves the model requests to its peer",
            transport.name
        ))
    })
}

/// Whether what this choice runs can be recorded.
///
/// # Errors
/// It cannot; the message says why and what to do.
pub(crate) fn check_recordable(choice: &Choice) -> Result<(), Failure> {
    own_loop(choice)?.map(drop).map_err(|why| refused("--record", &why))
}

/// The same choice with this tape in the driver's place. All other settings stay.
///
/// # Errors
/// Its transport has no driver, or the path is not text.
pub(crate) fn replaying(choice: &Choice, tape: &Path, on_drift: OnDrift) -> Result<Choice, Failure> {
    own_loop(choice)?.map_err(|why| refused("--replay", &why))?;
    with_tape(choice, tape, on_drift)
}

/// The same for a rehearsal, which is the tools' and not the transport's: where the manifest's has no driver, it runs on the default one.
///
/// # Errors
/// The capsule is a script, or the path is not text.
pub(crate) fn rehearsing(choice: &Choice, tape: &Path) -> Result<Choice, Failure> {
    let mut choice = choice.clone();
    if own_loop(&choice)?.is_err() {
        choice.transport = Some(links::DEFAULT_TRANSPORT.to_owned());
        own_loop(&choice)?.map_err(|why| refused("capsule test", &why))?;
    }
    with_tape(&choice, tape, OnDrift::PlayOn)
}

fn refused(what: &str, why: &str) -> Failure {
    Failure::usage(format!(
        "`{what}` needs a run in which the host itself asks the model: {why}; `--transport {}` does",
        links::DEFAULT_TRANSPORT
    ))
}

fn with_tape(choice: &Choice, tape: &Path, on_drift: OnDrift) -> Result<Choice, Failure> {
    let unreadable = |why: &str| Failure::usage(format!("the tape {}: {why}", tape.display()));
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
