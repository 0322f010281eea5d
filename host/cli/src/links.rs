//! The one list of plugins. A crate that is not named here is dropped by the linker, and its registration with it.

use capsule_driver_anthropic as _;
use capsule_driver_cassette as _;
use capsule_driver_component as _;
use capsule_driver_ollama as _;
use capsule_driver_openai as _;
use capsule_transport_claude as _;
use capsule_transport_codex as _;
use capsule_transport_echo as _;
use capsule_transport_http as _;

/// The transport of a manifest that names none.
pub(crate) const DEFAULT_TRANSPORT: &str = "http";

/// The name that stands for every transport of a family, and the family.
pub(crate) const FAMILY: (&str, &str) = ("process", "cli");

/// The driver that plays tapes, and its settings.
pub(crate) mod player {
    /// Its name, with which the codes of its errors begin.
    pub(crate) const DRIVER: &str = "cassette";
    /// The file.
    pub(crate) const TAPE: &str = "tape";
    /// What to do where a tool answers something else than was recorded, and how to say that the run goes on.
    pub(crate) const DRIFT: (&str, &str) = ("drift", "ignore");
}
