//! One request on the wire, by `wasi:http`.

use std::time::Duration;

use capsule_guest::Error;

use crate::redirects::Response;
use crate::request::Request;

/// Bytes of a body that are read. What comes after is left where it is.
#[cfg(target_os = "wasi")]
const MOST_BYTES: usize = 5 << 20;

/// Sends requests until a time is over.
pub(crate) struct Wire {
    #[cfg(target_os = "wasi")]
    clock: wasi::Clock,
}

impl Wire {
    /// All requests together get this long.
    pub(crate) fn new(time: Duration) -> Self {
        #[cfg(not(target_os = "wasi"))]
        let _ = time;
        Self {
            #[cfg(target_os = "wasi")]
            clock: wasi::Clock::start(time),
        }
    }

    /// Sends a request and reads the answer to it.
    ///
    /// # Errors
    ///
    /// A sentence for the model; a denial where no grant covers the host. Always so outside a component, where nothing can be sent.
    pub(crate) fn send(&self, request: &Request) -> Result<Response, Error> {
        #[cfg(target_os = "wasi")]
        return wasi::send(request, &self.clock, MOST_BYTES);
        #[cfg(not(target_os = "wasi"))]
        Err(Error::new(format!(
            "{} is not asked: there is no network outside a component",
            crate::redirects::origin(&request.url)
        )))
    }
}

#[cfg(target_os = "wasi")]
mod wasi;
