//! The driver's settings.

use std::path::PathBuf;

use capsule_api::{
    BuiltDriver, Error, Services, Settings,
    serde_json::{Value, json},
};
use serde::Deserialize;

use crate::{player::Player, tape};

pub(crate) const EXAMPLE: &str = "\
transport: http
driver: cassette
tape: tape.json
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    tape: PathBuf,
    #[serde(default)]
    timing: bool,
    #[serde(default)]
    drift: Drift,
}

/// What to do where a tool answers something else than was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Drift {
    /// The run fails.
    #[default]
    Fail,
    /// The tape is played on, as long as the conversation has the recorded shape.
    Ignore,
}

/// JSON Schema of the settings.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["tape"],
        "properties": {
            "tape": {"type": "string", "description": "The recorded tape, relative to the manifest."},
            "timing": {
                "type": "boolean", "default": false,
                "description": "Whether the answers come in the time in which they were recorded; else at once."
            },
            "drift": {
                "enum": ["fail", "ignore"], "default": "fail",
                "description": "Whether a tool that answers something else than was recorded ends the run."
            }
        },
        "additionalProperties": false
    })
}

/// Reads the tape.
pub(crate) fn build(settings: Settings, services: &Services) -> Result<BuiltDriver, Error> {
    let own: Own = settings.decode(services.secrets.as_ref())?;
    let path = settings.path("tape", &own.tape)?;
    let tape = tape::load(&path)?;
    let file = path.display().to_string();
    let player = Player::new(tape, file, own.timing, own.drift, services.secrets.clone());
    Ok(BuiltDriver::Playback(Box::new(player)))
}
