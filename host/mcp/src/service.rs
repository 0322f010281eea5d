//! The service: what it is made of, and the way of a request through it.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use capsule_api::{Clock, ToolDispatch, ToolSpec};
use capsule_net::{Body, Handler};
use http::{Request, Response};
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    calls::Calls,
    legacy,
    wire::{self, Message},
};

/// Makes the `_meta` of a tool in `tools/list`.
pub type ToolMeta = Arc<dyn Fn(&ToolSpec) -> Option<Value> + Send + Sync>;

/// What the service says about itself, and what it knows about its caller.
#[derive(Clone)]
pub struct Options {
    /// `serverInfo.name`.
    pub server_name: String,
    /// `serverInfo.version`.
    pub server_version: String,
    /// `instructions` for the model, where the client passes them on.
    pub instructions: Option<String>,
    /// Keys of a call's `_meta` that may hold the caller's own id of the call; the first that holds a string counts.
    pub call_id_keys: Vec<String>,
    /// What ids of calls start with where the caller gives none.
    pub call_id_prefix: String,
    /// The `_meta` of each tool.
    pub tool_meta: Option<ToolMeta>,
    /// Calls that run at once; more wait their turn. At least 1.
    pub max_concurrent: usize,
    /// A call that runs longer than this is answered as an event stream, with a sign of life each time as much has passed again.
    pub progress_every: Duration,
}

impl Options {
    /// The defaults, under a name and a version.
    pub fn new(server_name: impl Into<String>, server_version: impl Into<String>) -> Self {
        Self {
            server_name: server_name.into(),
            server_version: server_version.into(),
            instructions: None,
            call_id_keys: Vec::new(),
            call_id_prefix: "mcp-".to_owned(),
            tool_meta: None,
            max_concurrent: 16,
            progress_every: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("server_name", &self.server_name)
            .field("server_version", &self.server_version)
            .finish_non_exhaustive()
    }
}

/// A client as it named itself in `initialize`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Its name; empty where it gave none. Cut at 128 characters.
    pub name: String,
    /// Its version, likewise.
    pub version: String,
}

/// Proof that a client asked for the tools and was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The client of the last `initialize` before it.
    pub client: Client,
    /// The aliases that it was told, in order.
    pub tools: Vec<String>,
}

/// MCP over a dispatch. One service is one conversation's: request ids and call ids are told apart within it. Clones are the same service.
#[derive(Clone)]
pub struct McpService(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) dispatch: Arc<dyn ToolDispatch>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    pub(crate) calls: Calls,
    pub(crate) client: watch::Sender<Client>,
    pub(crate) listed: watch::Sender<Option<Listed>>,
}

impl McpService {
    /// A service of the dispatch's catalogue.
    pub fn new(dispatch: Arc<dyn ToolDispatch>, clock: Arc<dyn Clock>, options: Options) -> Self {
        Self(Arc::new(Inner {
            dispatch,
            clock,
            calls: Calls::new(options.call_id_prefix.clone(), options.max_concurrent),
            client: watch::Sender::default(),
            listed: watch::Sender::default(),
            options,
        }))
    }

    /// Tells when `tools/list` was answered: `None` until it was, then about the last time.
    pub fn listed(&self) -> watch::Receiver<Option<Listed>> {
        self.0.listed.subscribe()
    }
}

impl fmt::Debug for McpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpService")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Handler for McpService {
    async fn handle(&self, request: Request<Bytes>, _peer: SocketAddr) -> Response<Body> {
        match wire::read(request.body()) {
            Ok(Message::Request { id, method, params }) => {
                legacy::request(&self.0, request.headers(), id, &method, params).await
            }
            Ok(Message::Notification { method, params }) => {
                legacy::notification(&self.0, &method, &params);
                wire::accepted()
            }
            Ok(Message::Response) => wire::accepted(),
            Err(unreadable) => {
                let answer = wire::answer(&unreadable.id, Err(unreadable.error));
                wire::json_response(unreadable.status, &answer)
            }
        }
    }
}
