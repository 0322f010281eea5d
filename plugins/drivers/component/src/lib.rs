//! Driver `component`: a WebAssembly component that speaks to a provider, in the host's sandbox.
//!
//! ```text
//! settings   what the manifest says; builds the driver: the component is loaded under its grants
//! input      a neutral request as the component reads it
//! speech     what it says while it runs, as items of the answer
//! answer     what it returned, as the answer or an error
//! ```
#![warn(missing_docs)]

mod answer;
mod codes;
mod driver;
mod failure;
mod input;
mod settings;
mod speech;

use capsule_api::register;

pub use codes::ALL as CODES;

register! { DriverDescriptor {
    name: "component",
    summary: "A WebAssembly component that speaks to a provider.",
    settings_schema: settings::schema,
    example: settings::EXAMPLE,
    wire: None,
    codes: codes::ALL,
    build: settings::build,
}}

#[cfg(test)]
mod tests;
