//! Transport `echo`: answers with its input, deterministically and without any peer. The example that third parties copy; see the README.
#![warn(missing_docs)]

mod settings;
mod transport;

use std::time::Duration;

use capsule_api::{Capabilities, register};

/// What every instance can do. The conformance kit holds the transport to it.
const CAPABILITIES: Capabilities = Capabilities {
    streams: true,
    thinking: false,
    usage: true,
    resumes: false,
    parallel_tools: false,
    interrupts: true,
    host_owns_loop: false,
};

register! {
    TransportDescriptor {
        name: "echo",
        family: "example",
        summary: "answers with its input; `call NAME JSON` calls a tool",
        at_most: CAPABILITIES,
        stops_within: Duration::from_secs(1),
        settings_schema: settings::schema,
        example: "transport: echo\nprefix: \"> \"\n",
        recognises: None,
        codes: transport::CODES,
        build: |settings, services| Ok(Box::new(transport::Echo::new(settings.decode(&*services.secrets)?))),
    }
}
