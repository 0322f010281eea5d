//! Conformance of a driver with a wire: its encoder, its decoder, and the errors it makes of refusals.
//!
//! The driver's author supplies settings, the key in them, and recorded streams of whole answers. Nothing is sent anywhere.

mod framing;
mod refusals;
mod requests;
mod streams;

use std::fmt;

use capsule_api::{
    BuiltDriver, DriverDescriptor, Error, Settings, SystemClock, Wire, WireFormat,
    serde_json::{Map, Value},
};

use crate::services;

pub use requests::requests;

/// A driver, and what is needed to try it.
pub struct DriverFixture {
    /// The descriptor, as the registry has it.
    pub descriptor: &'static DriverDescriptor,
    /// Settings from which it is built.
    pub settings: Map<String, Value>,
    /// The key in these settings, which must be in no URL, body or error.
    pub key: Option<&'static str>,
    /// Recorded streams of whole answers, by name.
    pub streams: Vec<(&'static str, &'static [u8])>,
}

impl fmt::Debug for DriverFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverFixture")
            .field("driver", &self.descriptor.name)
            .finish_non_exhaustive()
    }
}

impl DriverFixture {
    fn wire(&self) -> Result<(Box<dyn Wire>, WireFormat), String> {
        let schema = (self.descriptor.settings_schema)();
        let settings = Settings::new(self.settings.clone(), &schema, ".");
        let built = (self.descriptor.build)(settings, &services(SystemClock));
        match (built, self.descriptor.wire) {
            (Ok(BuiltDriver::Wire(wire)), Some(format)) => Ok((wire, format)),
            (Ok(BuiltDriver::Wire(_)), None) => Err("it builds a wire and its descriptor has no format".to_owned()),
            (Ok(_), _) => Err("it has no wire; the kit has nothing to try".to_owned()),
            (Err(error), _) => Err(format!("it does not build: {error}")),
        }
    }

    /// Whether an error is one that the descriptor lists, without the key in it.
    fn checked(&self, error: &Error) -> Result<(), String> {
        if !self.descriptor.codes.iter().any(|code| code.id == error.code) {
            return Err(format!(
                "the descriptor does not list the code `{}` ({error})",
                error.code
            ));
        }
        match self.key {
            Some(key) if format!("{error} {error:?}").contains(key) => {
                Err(format!("the error `{}` has the key in it", error.code))
            }
            _ => Ok(()),
        }
    }
}

/// Everything that is wrong with the driver, in words; nothing where it conforms.
///
/// - **Requests**: each of [`requests`] becomes a POST, with the same bytes each time; no key outside of sensitive headers.
/// - **Streams**: however a recorded stream is cut, the items are the same; blocks are well-formed; the answer ends with one stop; a stream
///   that is cut off between two frames is never a whole answer before its stop; what comes out is in proportion to what went in.
/// - **Rubbish** is passed over or an error of a listed code, never a panic.
/// - **Refusals**: each status becomes an error of its class and of a listed code, whatever the body is.
pub fn check_driver(driver: &DriverFixture) -> Vec<String> {
    let (wire, format) = match driver.wire() {
        Ok(parts) => parts,
        Err(problem) => return vec![problem],
    };
    let mut problems = requests::check(driver, &*wire);
    for (name, stream) in &driver.streams {
        let found = streams::check(driver, format, stream);
        problems.extend(found.into_iter().map(|problem| format!("stream `{name}`: {problem}")));
    }
    if driver.streams.is_empty() {
        problems.push("there is no recorded stream to try the decoder with".to_owned());
    }
    problems.extend(streams::check_rubbish(driver, format));
    problems.extend(refusals::check(driver, format));
    problems
}

/// [`check_driver`] in a test.
///
/// # Panics
/// The driver does not conform; with everything that is wrong.
#[track_caller]
pub fn assert_driver_conforms(driver: &DriverFixture) {
    let problems = check_driver(driver);
    assert!(
        problems.is_empty(),
        "driver `{}`:\n- {}",
        driver.descriptor.name,
        problems.join("\n- ")
    );
}

#[cfg(test)]
#[path = "drivers_tests.rs"]
mod tests;
