//! Prints the plugins that are linked into it and fails when one is missing.
//!
//! Registration works by symbols that nothing calls, which an optimising linker may drop without a word. So this program, small enough to be
//! built in release with link-time optimisation, is run as one: `cargo run --release -p capsule-registration`.
#![warn(missing_docs)]

use std::{
    io::{self, Write},
    process::ExitCode,
};

use capsule_api::{Descriptor, DriverDescriptor, Error, Registry, TransportDescriptor};

// As in the product: a crate that nobody names is dropped with its registration.
use capsule_driver_anthropic as _;
use capsule_driver_cassette as _;
use capsule_driver_component as _;
use capsule_driver_ollama as _;
use capsule_driver_openai as _;
use capsule_transport_echo as _;

const TRANSPORTS: &[&str] = &["echo"];
const DRIVERS: &[&str] = &[
    "anthropic",
    "cassette",
    "component",
    "ollama",
    "openai",
    "openai-responses",
];

fn main() -> ExitCode {
    let told = tell(&mut io::stdout(), &lines());
    let complete = told.is_ok_and(|complete| complete);
    if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn lines() -> [Result<String, String>; 2] {
    [
        line(Registry::<TransportDescriptor>::linked(), TRANSPORTS),
        line(Registry::<DriverDescriptor>::linked(), DRIVERS),
    ]
}

/// The names of one kind, or what is wrong with them.
fn line<D: Descriptor>(linked: Result<Registry<D>, Error>, wanted: &[&str]) -> Result<String, String> {
    let kind = D::KIND;
    let registry = linked.map_err(|error| format!("{}: {error}", error.code))?;
    let names: Vec<_> = registry.names().collect();
    if names != wanted {
        return Err(format!(
            "linked as {kind}: {names:?}, but this program names {wanted:?}"
        ));
    }
    Ok(format!("{kind}: {}", names.join(", ")))
}

/// Writes the lines; whether all of them are as they should be.
fn tell(out: &mut impl Write, lines: &[Result<String, String>]) -> io::Result<bool> {
    for line in lines {
        match line {
            Ok(line) => writeln!(out, "{line}")?,
            Err(line) => writeln!(out, "missing: {line}")?,
        }
    }
    Ok(lines.iter().all(Result::is_ok))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_01_a_missing_plugin_is_told_and_fails() {
        let lost = line(Registry::<TransportDescriptor>::linked(), &["echo", "lost"]);
        let mut out = Vec::new();
        assert!(!tell(&mut out, &[lost]).unwrap());
        let wanted = "missing: linked as transport: [\"echo\"], but this program names [\"echo\", \"lost\"]\n";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }
}
