//! What the tools for HTTP share. GET and POST are components of their own: the one only reads, the other changes something elsewhere, and a
//! capsule can offer the one without the other.

#![warn(missing_docs)]

pub mod answer;
pub mod body;
pub mod page;
pub mod redirects;
pub mod request;
mod wire;

use std::time::Duration;

use capsule_guest::{Error, Output};

use answer::Shape;
use request::Request;

/// How long all requests of a call may take where nothing else is asked for, in seconds.
pub const DEFAULT_SECONDS: u64 = 30;
/// The longest time that can be asked for, in seconds. The tool's deadline may end it before.
pub const MOST_SECONDS: u64 = 300;

/// Sends a request, follows redirects within the grants, and shows what came.
///
/// # Errors
///
/// A sentence for the model; a denial where no grant covers a host.
pub fn fetch(request: Request, seconds: u64, shape: &Shape) -> Result<Output, Error> {
    let time = Duration::from_secs(seconds.clamp(1, MOST_SECONDS));
    let wire = wire::Wire::new(time);
    let fetched = redirects::follow(request, |request| wire.send(request))?;
    answer::output(fetched, shape)
}
