#![no_main]

use capsule_api::Framing;
use capsule_driver_anthropic as _;
use capsule_driver_ollama as _;
use capsule_driver_openai as _;
use libfuzzer_sys::fuzz_target;

#[path = "../properties.rs"]
mod properties;

fuzz_target!(|bytes: &[u8]| properties::hold(Framing::EventStream, bytes));
