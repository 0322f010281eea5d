//! Driver `cassette`: answers from a recorded tape, so that a capsule runs without a provider and without a key.
//!
//! Only the model is played back: the tools really run, and what they answer is compared with what the tape says they answered.
#![warn(missing_docs)]

mod codes;
mod player;
mod settings;
mod shape;
mod tape;

use capsule_api::register;

pub use codes::ALL as CODES;

register! { DriverDescriptor {
    name: "cassette",
    summary: "Plays a recorded tape in place of a model.",
    settings_schema: settings::schema,
    example: settings::EXAMPLE,
    wire: None,
    codes: codes::ALL,
    build: settings::build,
}}
