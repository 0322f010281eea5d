//! The guarded HTTP/1.1 listener.
//!
//! Every request is checked by its head alone ([`Guard`]), in this order: ambiguous length 400, `Host` (missing or double 400, another
//! 403), `Origin` 403, path 404, token 401, method 405, declared size 413, media type 415. Only then is the body read, under its own size
//! and time limits, and handed to the [`Handler`] whole. A refused request ends its connection, so only holders of the token can keep one.
//!
//! HTTP/2 is not offered: it doubles every limit, and an automatic choice between the two has no time-out on the first byte.

mod body;
mod connection;
mod guard;
mod io;
mod newcomers;
mod scan;
mod server;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};

pub use body::Body;
pub use guard::Guard;
pub use server::Server;

/// Answers requests that have passed the guard.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Answers one request.
    ///
    /// The future, or the body it returned, is dropped as soon as the client disconnects or the server closes: whatever must not outlive
    /// the request belongs in one of the two. A panic ends this one connection.
    async fn handle(&self, request: Request<Bytes>, peer: SocketAddr) -> Response<Body>;
}

#[async_trait]
impl<H: Handler> Handler for Arc<H> {
    async fn handle(&self, request: Request<Bytes>, peer: SocketAddr) -> Response<Body> {
        H::handle(self, request, peer).await
    }
}

/// The bounds of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once. One more takes the place of the oldest that has not been admitted to ask; where all have been, it waits until one
    /// of them ends.
    pub connections: usize,
    /// Bytes of a request's head; more is 431. At least 8 KiB.
    pub header_bytes: usize,
    /// From the first byte of a head (or from the connection's start) to its end; then the connection is closed.
    pub header_timeout: Duration,
    /// Bytes of a request's body; more is 413. Memory is taken as bytes arrive, never from a declared length.
    pub body_bytes: usize,
    /// From a head's end to its body's end; then 408.
    pub body_timeout: Duration,
    /// How long a client may take nothing of a response while there is something to send; then the connection is closed.
    pub write_stall: Duration,
    /// How long a connection may stay open between two requests.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            header_bytes: 64 << 10,
            header_timeout: Duration::from_secs(10),
            body_bytes: 4 << 20,
            body_timeout: Duration::from_secs(10),
            write_stall: Duration::from_secs(30),
            // Long, because a client that reuses a connection at the moment it is closed loses its request.
            idle_timeout: Duration::from_secs(300),
        }
    }
}
