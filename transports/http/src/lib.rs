//! Transport `http`: the host owns the agent loop.
//!
//! The loop asks a driver for an answer, runs the tool calls in it, appends the results and asks again until the model ends its turn or a
//! limit is reached. A driver is a plugin of its own kind (see [`capsule_api::DriverDescriptor`]); everything between a driver's encoder
//! and its decoder is here: sending, framing, assembly, retry. The README beside this crate explains the choices.
#![warn(missing_docs)]

mod answer;
mod ask;
mod assemble;
mod codes;
mod compact;
mod conversation;
pub mod decoder;
mod gate;
mod history;
mod meter;
mod playback;
mod progress;
mod resume;
mod retry;
mod rules;
mod settings;
mod stopwatch;
mod summary;
mod taping;
mod tools;
mod transport;
mod wire_driver;

use std::time::Duration;

use capsule_api::{Capabilities, register};

pub use codes::ALL as CODES;

const CAPABILITIES: Capabilities = Capabilities {
    streams: true,
    thinking: true,
    usage: true,
    resumes: true,
    parallel_tools: true,
    interrupts: true,
    host_owns_loop: true,
};

register! { TransportDescriptor {
    name: "http",
    family: "api",
    summary: "The host owns the loop and talks to a provider's HTTP API through a driver.",
    at_most: CAPABILITIES,
    stops_within: Duration::from_secs(1),
    settings_schema: settings::schema,
    example: settings::EXAMPLE,
    recognises: None,
    codes: codes::ALL,
    build: transport::build,
}}
