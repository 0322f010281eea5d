//! The one list of plugins. A crate that is not named here is dropped by the linker, and its registration with it.

use capsule_driver_anthropic as _;
use capsule_driver_cassette as _;
use capsule_driver_ollama as _;
use capsule_driver_openai as _;
use capsule_transport_claude as _;
use capsule_transport_codex as _;
use capsule_transport_echo as _;
use capsule_transport_http as _;

/// The transport of a manifest that names none.
pub(crate) const DEFAULT_TRANSPORT: &str = "http";
