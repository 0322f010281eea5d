//! The service: what it is made of, and the way of a request through it.

use std::{fmt, sync::Arc, time::Duration};

use capsule_api::{Clock, ToolDispatch, ToolSpec};
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::{
    calls::Calls,
    endpoint::accepts_events,
    legacy, modern,
    reply::Reply,
    wire::{self, Message},
};

/// Makes the `_meta` of a tool in `tools/list`.
pub type ToolMeta = Arc<dyn Fn(&ToolSpec) -> Option<Value> + Send + Sync>;

/// The abilities that a tool needs of its client, as keys of `clientCapabilities`.
pub type ToolNeeds = Arc<dyn Fn(&ToolSpec) -> &'static [&'static str] + Send + Sync>;

/// Which generations of MCP are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generations {
    /// Both. Each request says of which it is; nothing is concluded from who sends it.
    #[default]
    Auto,
    /// The one with a handshake alone. A probe for the other finds no such method.
    Legacy,
}

/// What the service says about itself, and what it knows about its caller.
#[derive(Clone)]
pub struct Options {
    /// `serverInfo.name`.
    pub server_name: String,
    /// `serverInfo.version`.
    pub server_version: String,
    /// Which generations are served.
    pub generations: Generations,
    /// Several clients use the service. Their request ids are not told apart, so `notifications/cancelled` is not listened to: it could
    /// stop the call of another. A closed connection still cancels.
    pub shared: bool,
    /// `instructions` for the model, where the client passes them on.
    pub instructions: Option<String>,
    /// Keys of a call's `_meta` that may hold the caller's own id of the call; the first that holds a string counts.
    pub call_id_keys: Vec<String>,
    /// What ids of calls start with where the caller gives none.
    pub call_id_prefix: String,
    /// The `_meta` of each tool.
    pub tool_meta: Option<ToolMeta>,
    /// What each tool needs of its client; nothing without it. Only clients of 2026-07-28 say with a call what they are able to.
    pub tool_needs: Option<ToolNeeds>,
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
            generations: Generations::default(),
            shared: false,
            instructions: None,
            call_id_keys: Vec::new(),
            call_id_prefix: "mcp-".to_owned(),
            tool_meta: None,
            tool_needs: None,
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

/// A client as it named itself.
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
    /// The client: as the request names it, else the one of the last `initialize` before it.
    pub client: Client,
    /// The aliases that it was told, in order.
    pub tools: Vec<String>,
}

/// MCP over a dispatch. One service is one conversation's: request ids and call ids are told apart within it. Clones are the same service.
#[derive(Clone)]
pub struct McpService(pub(crate) Arc<Inner>);

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

/// How a message came.
#[derive(Clone, Copy)]
pub(crate) enum Via<'a> {
    /// In a request with these headers.
    Http(&'a HeaderMap),
    /// As a line.
    Line,
}

impl<'a> Via<'a> {
    /// The first value of a header.
    pub(crate) fn header(self, name: &str) -> Option<&'a HeaderValue> {
        match self {
            Self::Http(headers) => headers.get(name),
            Self::Line => None,
        }
    }

    /// Whether the client takes notifications before a result.
    pub(crate) fn takes_events(self) -> bool {
        match self {
            Self::Http(headers) => accepts_events(headers),
            Self::Line => true,
        }
    }
}

impl McpService {
    /// Answers one message. Dropping the future, or the reply, cancels the call that it is of.
    pub(crate) async fn answer(&self, via: Via<'_>, body: &[u8]) -> Reply {
        match wire::read(body) {
            Ok(Message::Request(request)) => {
                let modern = self.0.options.generations == Generations::Auto && modern::is_meant(via, &request);
                if modern {
                    modern::request(&self.0, via, request).await
                } else {
                    legacy::request(&self.0, via, request).await
                }
            }
            Ok(Message::Notification { method, params }) => {
                self.notice(&method, &params);
                Reply::Nothing
            }
            Ok(Message::Response) => Reply::Nothing,
            Err(unreadable) => Reply::error(unreadable.status, &unreadable.id, unreadable.error),
        }
    }

    /// Takes a notification. One that is unknown is nobody's business.
    fn notice(&self, method: &str, params: &Map<String, Value>) {
        if method == "notifications/cancelled"
            && !self.0.options.shared
            && let Some(id) = params.get("requestId")
        {
            self.0.calls.cancel(id);
        }
    }
}
