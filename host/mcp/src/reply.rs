//! What a message is answered with, before HTTP or a line writes it down.

use std::pin::Pin;

use futures_util::Stream;
use http::StatusCode;
use serde_json::Value;

use crate::wire::{self, RpcError};

/// Messages as they come, the result last; `None` is a sign of life without meaning.
pub(crate) type Messages = Pin<Box<dyn Stream<Item = Option<Value>> + Send>>;

/// The answer to one message.
pub(crate) enum Reply {
    /// None was asked for.
    Nothing,
    /// One message, with the status that HTTP gives it.
    One(StatusCode, Value),
    /// Several. Dropping them cancels the call that they are of.
    Many(Messages),
}

impl Reply {
    pub(crate) fn result(id: &Value, result: Value) -> Self {
        Self::One(StatusCode::OK, wire::answer(id, Ok(result)))
    }

    pub(crate) fn error(status: StatusCode, id: &Value, error: RpcError) -> Self {
        Self::One(status, wire::answer(id, Err(error)))
    }
}
