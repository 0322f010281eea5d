//! The policy of `wasi:http`: without a network grant every request is refused before anything is resolved or connected.

use std::sync::Arc;

use http::{Request, Response};
use wasmtime_wasi_http::{Error, RequestOptions, Result, WasiBody, WasiHttpHooks};

use super::record::CallRecord;

/// What comes of a request while its body is still sent.
type Sending = Box<dyn Future<Output = Result<(), Error>> + Send>;
/// What comes of a request.
type Answer = Box<dyn Future<Output = Result<(Response<WasiBody>, Sending)>> + Send>;

/// Refuses every request, and records that it did.
pub(super) struct DenyAll {
    pub(super) record: Arc<CallRecord>,
}

impl WasiHttpHooks for DenyAll {
    fn send_request(&mut self, request: Request<WasiBody>, _: Option<RequestOptions>, _: Sending) -> Answer {
        let uri = request.uri();
        // Only the origin: path and query may hold a secret.
        let origin = format!(
            "{}://{}",
            uri.scheme_str().unwrap_or("https"),
            uri.authority().map_or("", |authority| authority.as_str())
        );
        self.record.deny(format!("an HTTP request to {origin}"));
        Box::new(std::future::ready(Err(Error::HttpRequestDenied)))
    }
}
