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
    Ok(BuiltDriver::Playback(Box::new(Player::new(tape, own.timing))))
}
