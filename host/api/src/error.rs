//! One error type for every layer: kind, stable code, message, hint, retry advice, context.

use std::{error::Error as StdError, fmt, ops::Deref, sync::Arc, time::Duration};

/// The class of a failure; decides exit codes and what a caller may do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The manifest, a flag or a transport's settings are wrong.
    Settings,
    /// A tool could not be loaded, or the transport's peer did not get the capsule's tools.
    ToolsUnavailable,
    /// No transport could run here: a program, a login or a driver is missing.
    TransportUnavailable,
    /// The provider refused the credential (401, 403, not logged in).
    Auth,
    /// The provider limits the rate (429).
    RateLimited,
    /// The provider is overloaded (529, 503, or said so in its stream).
    Overloaded,
    /// The account has no credit or quota left.
    Quota,
    /// The conversation no longer fits the model's context window.
    ContextOverflow,
    /// The provider refuses the request as malformed or names an unknown model.
    BadRequest,
    /// The connection could not be made, or broke.
    Network,
    /// The peer answered something outside its protocol.
    Protocol,
    /// A kept conversation can no longer be resumed.
    ConversationLost,
    /// A program that the host started died or ended without an answer.
    Crashed,
    /// Reading or writing a file of the host failed.
    Storage,
    /// A fault of the host or a plugin; please report it.
    Bug,
}

impl ErrorKind {
    /// The kind as it is written in the trace and in machine output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::ToolsUnavailable => "tools_unavailable",
            Self::TransportUnavailable => "transport_unavailable",
            Self::Auth => "auth",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Quota => "quota",
            Self::ContextOverflow => "context_overflow",
            Self::BadRequest => "bad_request",
            Self::Network => "network",
            Self::Protocol => "protocol",
            Self::ConversationLost => "conversation_lost",
            Self::Crashed => "crashed",
            Self::Storage => "storage",
            Self::Bug => "bug",
        }
    }
}

/// A stable error code with its row in the table of `docs/errors.md`.
///
/// Declare each as a `const`, list it in the descriptor (or the crate's `CODES`), and make errors from it with [`Error::new`]: so a code
/// without a row cannot be raised.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// Kebab-case and prefixed by its owner, such as `http-stream-cut`. Never reused for another meaning.
    pub id: &'static str,
    /// The class of the failure.
    pub kind: ErrorKind,
    /// One sentence: what happened.
    pub meaning: &'static str,
    /// One sentence: what to do about it. Shown as the hint unless the error has a closer one.
    pub remedy: &'static str,
}

/// Whether, and when, the same attempt is worth making again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same attempt will fail again.
    Never,
    /// Another try may succeed; the caller's own back-off decides when.
    Later,
    /// Another try may succeed no sooner than this.
    After(Duration),
}

/// A failure. Dereferences to [`ErrorData`] for its parts.
#[derive(Clone, Debug)]
pub struct Error(Box<ErrorData>);

/// The parts of an [`Error`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ErrorData {
    /// The class, from the code.
    pub kind: ErrorKind,
    /// The stable code.
    pub code: &'static str,
    /// What happened and where. Holds no secret.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// Whether trying again makes sense.
    pub retry: Retry,
    /// Named facts: a path, a status, the tail of a program's stderr.
    pub context: Vec<(&'static str, String)>,
    /// The cause, for the log.
    pub source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of this code. `message` says what happened and where; the hint starts as the code's remedy.
    pub fn new(code: &'static Code, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorData {
            kind: code.kind,
            code: code.id,
            message: message.into(),
            hint: code.remedy.to_owned(),
            retry: Retry::Never,
            context: Vec::new(),
            source: None,
        }))
    }

    /// The same failure with another message.
    #[must_use]
    pub fn reworded(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Replaces the hint by one that fits this case closer.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = hint.into();
        self
    }

    /// Marks the error as worth another try.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// Adds a named fact.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.context.push((name, value.into()));
        self
    }

    /// Sets the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// The same error with `rewrite` applied to every text in it. The host uses it to take secrets out.
    #[must_use]
    pub fn map_text(mut self, rewrite: impl Fn(&str) -> String) -> Self {
        self.0.message = rewrite(&self.0.message);
        self.0.hint = rewrite(&self.0.hint);
        for (_, value) in &mut self.0.context {
            *value = rewrite(value);
        }
        self
    }
}

impl Deref for Error {
    type Target = ErrorData;

    fn deref(&self) -> &ErrorData {
        &self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|cause| cause as &(dyn StdError + 'static))
    }
}
