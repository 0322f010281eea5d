//! Drivers `openai` (Chat Completions, for any compatible endpoint) and `openai-responses` (the Responses API), both streamed.
//!
//! [`Wire`](capsule_api::Wire)s and decoders only; sending, framing and retry belong to the transport `http`.
#![warn(missing_docs)]

mod calls;
mod chat;
mod codes;
mod refusal;
mod responses;
mod settings;

use capsule_api::{Framing, WireFormat, register};

pub use codes::ALL as CODES;

register! { DriverDescriptor {
    name: "openai",
    summary: "Chat Completions: OpenAI's, or any compatible endpoint.",
    settings_schema: settings::chat_schema,
    example: settings::CHAT_EXAMPLE,
    wire: Some(WireFormat {
        framing: Framing::EventStream,
        decoder: chat::decoder,
        refusal: refusal::refusal,
    }),
    codes: codes::ALL,
    build: settings::build_chat,
}}

register! { DriverDescriptor {
    name: "openai-responses",
    summary: "The OpenAI Responses API.",
    settings_schema: settings::responses_schema,
    example: settings::RESPONSES_EXAMPLE,
    wire: Some(WireFormat {
        framing: Framing::EventStream,
        decoder: responses::decoder,
        refusal: refusal::refusal,
    }),
    codes: codes::ALL,
    build: settings::build_responses,
}}

#[cfg(test)]
mod kit_tests;
