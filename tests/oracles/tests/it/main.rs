//! The real CLIs `claude` and `codex` against the scripted provider, on loopback and with dummy keys.
//!
//! A story is told once and is a test of each CLI, `claude::…` and `codex::…`; what differs between the two is in `cli.rs`. The stand-ins
//! (`src/`) exist only to misbehave.
//!
//! The CLIs are looked for at `CAPSULE_TEST_CLAUDE` and `CAPSULE_TEST_CODEX`, else where `tests/oracles/install-clis.sh .tools` puts them.
//! Without its CLI each test says that it was skipped; with `CAPSULE_TEST_NO_SKIP=1` it fails instead. The official SDK (`sdk.rs`) likewise:
//! `CAPSULE_TEST_PYTHON`, else `tests/oracles/install-python.sh .tools`.
#![cfg(test)]

mod bridge;
mod cancel;
mod cli;
mod errors;
mod isolation;
mod logins;
mod mcp_fixture;
mod mcp_generations;
mod mcp_suite;
mod misbehaviour;
mod network;
mod own_tools;
mod patience;
mod prompts;
mod sdk;
mod sdk_drivers;
mod secrets;
mod sessions;
mod sizes;
mod storms;
mod support;
mod tools;
mod watch;
