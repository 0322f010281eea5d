//! Every registered transport held to the kit, and one capsule with the real sandbox on each way to a model.
//!
//! The CLIs are looked for at `CAPSULE_TEST_CLAUDE` and `CAPSULE_TEST_CODEX`, else where `tests/oracles/install-clis.sh .tools` puts them; a
//! Python with the official SDK at `CAPSULE_TEST_PYTHON`, else where `tests/oracles/install-python.sh .tools` puts it. What needs one that is not there says
//! that it was skipped; with `CAPSULE_TEST_NO_SKIP=1` it fails instead.
#![cfg(test)]

// Links what the command line links, and with it registers every transport and driver.
use capsule as _;

mod claude;
mod codex;
mod denied;
#[path = "../../../../transports/echo/tests/it/fixture.rs"]
mod echo;
mod errors;
#[path = "../../../../transports/http/tests/it/fixture.rs"]
mod http;
mod kit;
mod long;
mod matrix;
mod oracle;
mod run;
mod tls;
