//! The loopback tool bridge: the capsule's tools as an MCP server for one conversation.

mod cut;
mod slot;

use std::{fmt, sync::Arc, time::Duration};

use capsule_api::{Catalogue, Clock, Error, Secret, TurnIo};
use capsule_mcp::{Listed, McpService, Options};
use tokio::sync::watch;

pub use slot::{AttachedTurn, SlotDispatch};

use crate::codes;

/// An MCP server on 127.0.0.1 behind a token of its own. It lives as long as the conversation; calls run only while a turn is attached.
///
/// Dropping it ends the server and every call at once.
pub struct Bridge {
    slot: Arc<SlotDispatch>,
    token: Secret,
    listed: watch::Receiver<Option<Listed>>,
    server: capsule_mcp::Server,
}

impl Bridge {
    /// Starts the server on an ephemeral port. The dialect's ways are in the options. `shown` is the longest text of a result that the
    /// CLI passes on, in UTF-16 units: longer ones are cut, with a notice. `None` where it passes on all.
    ///
    /// # Errors
    /// [`codes::BRIDGE_BIND`] where no port could be bound.
    pub async fn start(
        catalogue: Arc<Catalogue>,
        options: Options,
        shown: Option<usize>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let slot = Arc::new(SlotDispatch::new(catalogue, shown, clock.clone()));
        let service = McpService::new(slot.clone(), clock.clone(), options);
        let (token, listed) = (new_token(), service.listed());
        let server = capsule_mcp::serve(service, token.clone(), clock).await;
        let server = server.map_err(|error| {
            let message = format!("the tool bridge could not start: {}", error.message);
            Error::new(&codes::BRIDGE_BIND, message).caused_by(error)
        })?;
        Ok(Self {
            slot,
            token,
            listed,
            server,
        })
    }

    /// The server's URL.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The token: for the environment of the one child, nowhere else.
    pub fn token(&self) -> &Secret {
        &self.token
    }

    /// Tells which tools a client was last told; `None` until one has asked. A clone of it has seen what was told so far.
    pub fn listed(&self) -> watch::Receiver<Option<Listed>> {
        let mut listed = self.listed.clone();
        listed.mark_unchanged();
        listed
    }

    /// Lets calls through to a turn until the guard is finished or dropped.
    pub fn attach(&self, io: &TurnIo) -> AttachedTurn {
        self.slot.attach(io)
    }

    /// Ends the server: takes no more requests, gives those under way `grace`, cancels the rest and waits for them.
    pub async fn close(self, grace: Duration) {
        let cut = self.server.close(grace).await;
        tracing::debug!(cut, "the tool bridge is closed");
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge")
            .field("url", &self.url())
            .finish_non_exhaustive()
    }
}

/// 244 random bits, from the operating system.
fn new_token() -> Secret {
    let (first, second) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
    Secret::new(format!("{}{}", first.simple(), second.simple()))
}
