//! Driver `ollama`: Ollama's native chat API, streamed as one JSON object per line.
//!
//! [`Wire`](capsule_api::Wire) and decoder only; sending, framing and retry belong to the transport `http`.
#![warn(missing_docs)]

mod codes;
mod decode;
mod encode;
mod refusal;
mod settings;

use capsule_api::{Framing, WireFormat, register};

pub use codes::ALL as CODES;

register! { DriverDescriptor {
    name: "ollama",
    summary: "Ollama's native chat API.",
    settings_schema: settings::schema,
    example: settings::EXAMPLE,
    wire: Some(WireFormat {
        framing: Framing::JsonLines,
        decoder: decode::decoder,
        refusal: refusal::refusal,
    }),
    codes: codes::ALL,
    build: settings::build,
}}

#[cfg(test)]
mod kit_tests;
