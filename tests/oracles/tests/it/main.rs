//! The real CLIs `claude` and `codex` against the scripted provider, on loopback and with dummy keys.
//!
//! They are looked for at `CAPSULE_TEST_CLAUDE` and `CAPSULE_TEST_CODEX`, else where `tests/oracles/install-clis.sh .tools` puts them.
//! Without its CLI each test says that it was skipped; with `CAPSULE_TEST_NO_SKIP=1` it fails instead. Tests of `codex` are in the modules
//! that are called so. The official SDK (`sdk.rs`) likewise: `CAPSULE_TEST_PYTHON`, else
//! `tests/oracles/install-python.sh .tools`.
#![cfg(test)]

mod cancel;
mod codex_cancel;
mod codex_errors;
mod codex_misbehaviour;
mod codex_prompts;
mod codex_secrets;
mod codex_sessions;
mod codex_tools;
mod errors;
mod mcp_fixture;
mod mcp_generations;
mod mcp_suite;
mod misbehaviour;
mod prompts;
mod sdk;
mod sdk_drivers;
mod secrets;
mod sessions;
mod support;
mod tools;
