//! Driver `anthropic`: the Messages API, streamed.
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
    name: "anthropic",
    summary: "The Anthropic Messages API.",
    settings_schema: settings::schema,
    example: settings::EXAMPLE,
    wire: Some(WireFormat {
        framing: Framing::EventStream,
        decoder: decode::decoder,
        refusal: refusal::refusal,
    }),
    codes: codes::ALL,
    build: settings::build,
}}

#[cfg(test)]
mod kit_tests;
