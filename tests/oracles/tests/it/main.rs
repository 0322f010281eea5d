//! The real `claude` CLI against the scripted provider, on loopback and with a dummy key.
//!
//! It is looked for at `CAPSULE_TEST_CLAUDE`, else where `tests/oracles/install-clis.sh .tools` puts it. Without it each test says that
//! it was skipped; with `CAPSULE_TEST_NO_SKIP=1` it fails instead. The official SDK (`sdk.rs`) likewise: `CAPSULE_TEST_PYTHON`, else
//! `tests/oracles/install-python.sh .tools`.
#![cfg(test)]

mod cancel;
mod errors;
mod mcp_fixture;
mod mcp_generations;
mod mcp_suite;
mod misbehaviour;
mod prompts;
mod sdk;
mod secrets;
mod sessions;
mod support;
mod tools;
