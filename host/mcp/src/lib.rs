//! An MCP server (streamable HTTP) over a [`capsule_api::ToolDispatch`]. It knows no process and no CLI.
//!
//! [`McpService`] answers requests that have passed the guard of `capsule-net`; [`serve`] puts the two together on a loopback port.
//! [`serve_lines`] speaks the same over a pair of pipes.
//! The choices behind the protocol are in this crate's README.
#![warn(missing_docs)]

mod call_ids;
mod calls;
mod endpoint;
mod legacy;
mod lines;
mod listing;
mod mirror;
mod modern;
mod progress;
mod reply;
mod service;
mod wire;

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use capsule_api::{Clock, Error, Secret};

pub use lines::{LONGEST_LINE, serve_lines};
pub use service::{Client, Generations, Listed, McpService, Options, ToolMeta, ToolNeeds};

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// A service behind the guarded listener, on an ephemeral port of 127.0.0.1. Dropping it ends every call at once.
#[derive(Debug)]
pub struct Server(capsule_net::Server);

/// Serves for holders of `token`, on any free port.
///
/// # Errors
/// No port could be bound (`net-bind`).
pub async fn serve(service: McpService, token: Secret, clock: Arc<dyn Clock>) -> Result<Server, Error> {
    serve_at(service, 0, token, clock).await
}

/// Serves for holders of `token`, on a port of 127.0.0.1 (0: any free one).
///
/// # Errors
/// The port could not be bound (`net-bind`).
pub async fn serve_at(service: McpService, port: u16, token: Secret, clock: Arc<dyn Clock>) -> Result<Server, Error> {
    let guard = capsule_net::Guard::json_post(PATH, token);
    let limits = capsule_net::Limits::default();
    let address = (Ipv4Addr::LOCALHOST, port).into();
    let listener = capsule_net::Server::bind(address, guard, limits, clock, Arc::new(service)).await?;
    Ok(Server(listener))
}

impl Server {
    /// The endpoint's URL, such as `http://127.0.0.1:40123/mcp`.
    pub fn url(&self) -> String {
        self.0.url(PATH)
    }

    /// Takes no more requests, lets running calls end within `grace`, cancels the rest and waits for them. Returns how many connections
    /// had to be cut.
    pub async fn close(self, grace: Duration) -> usize {
        self.0.close(grace).await
    }
}
