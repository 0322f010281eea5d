//! Transport `codex`: drives the Codex CLI headless, with the capsule's tools and no other.
//!
//! Each turn is one run of the real CLI's app-server in a private home, in a process group of its own, with an environment from nothing.
//! Its model calls the capsule's tools over the loopback bridge; its notifications become the task's events. See the README for its
//! choices.
#![warn(missing_docs)]

mod binary;
pub mod codes;
mod command;
mod last;
mod login;
mod protocol;
mod reader;
mod settings;
mod transport;
mod turn;

use std::time::Duration;

capsule_api::register! {
    TransportDescriptor {
        name: transport::NAME,
        family: "cli",
        summary: "The Codex CLI by its app-server, headless, with the capsule's tools only.",
        at_most: transport::CAPABILITIES,
        stops_within: Duration::from_secs(5),
        settings_schema: settings::schema,
        example: "transport: codex\nmodel: gpt-5.5\n",
        recognises: Some(binary::recognises),
        codes: codes::ALL,
        build: transport::build,
    }
}
