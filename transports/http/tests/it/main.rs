//! The transport `http` against a scripted provider over real HTTP on loopback.
#![cfg(test)]

mod cancel;
mod cassette;
mod continuation;
mod decoder;
mod drivers;
mod endless;
mod fixture;
mod history;
mod keys;
mod kit;
mod log;
mod loops;
mod provider_faults;
mod settings;
mod stand;
mod time;

use capsule_driver_anthropic as _;
use capsule_driver_cassette as _;
use capsule_driver_ollama as _;
use capsule_driver_openai as _;
use capsule_transport_http as _;
