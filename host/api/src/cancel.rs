//! A one-way stop signal that carries its reason.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, OnceLock},
    task::Poll,
};

use tokio_util::sync::CancellationToken;

/// Why something was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelReason {
    /// Whoever sent the task no longer wants it (Ctrl-C, `tasks/cancel`, a closed connection).
    Caller,
    /// A wall-clock limit that the capsule set has passed.
    Deadline,
    /// Another limit of the capsule was reached.
    Limit,
    /// The host itself is ending.
    Shutdown,
}

/// Cancels a tree of work. Cheap to clone; all clones are the same signal.
///
/// It has its own type so that no runtime crate, nor that crate's major version, is part of the contract.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<Node>);

#[derive(Debug)]
struct Node {
    token: CancellationToken,
    reason: OnceLock<CancelReason>,
    parent: Option<Cancel>,
}

impl Cancel {
    /// A signal that has not fired.
    pub fn new() -> Self {
        Self(Arc::new(Node {
            token: CancellationToken::new(),
            reason: OnceLock::new(),
            parent: None,
        }))
    }

    /// A signal that fires with this one, and can fire alone without touching it.
    pub fn child(&self) -> Self {
        Self(Arc::new(Node {
            token: self.0.token.child_token(),
            reason: OnceLock::new(),
            parent: Some(self.clone()),
        }))
    }

    /// Fires the signal. The first reason stays; later calls change nothing.
    pub fn cancel(&self, reason: CancelReason) {
        if self.is_cancelled() {
            return;
        }
        // The reason is set before the token fires, so whoever wakes up finds it.
        let _ = self.0.reason.set(reason);
        self.0.token.cancel();
    }

    /// Whether the signal, or one above it, has fired.
    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// The reason, once fired: this signal's own, else that of the nearest one above it.
    pub fn reason(&self) -> Option<CancelReason> {
        let own = self.0.reason.get().copied();
        own.or_else(|| self.0.parent.as_ref().and_then(Cancel::reason))
    }

    /// Waits for the signal. Cancel-safe.
    pub async fn cancelled(&self) -> CancelReason {
        let mut fired = pin!(self.0.token.cancelled());
        // A token fires those below it before itself. Whoever is woken by work that ended with a child must find the parent fired, so the
        // reason, which is set before, counts as well.
        poll_fn(|context| match fired.as_mut().poll(context) {
            Poll::Pending if !self.is_cancelled() => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
        self.reason()
            .expect("a token fires only after the reason of its node, or of one above it, was set")
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_child_stops_with_its_parent_and_tells_its_reason() {
        let parent = Cancel::new();
        let child = parent.child();
        parent.cancel(CancelReason::Shutdown);
        assert_eq!(child.cancelled().await, CancelReason::Shutdown);
    }

    #[tokio::test]
    async fn a_child_that_stops_alone_leaves_its_parent_running() {
        let parent = Cancel::new();
        let child = parent.child();
        child.cancel(CancelReason::Limit);
        assert_eq!(child.cancelled().await, CancelReason::Limit);
        assert_eq!(parent.reason(), None);
        parent.cancel(CancelReason::Caller);
        assert_eq!(
            (child.reason(), parent.reason()),
            (Some(CancelReason::Limit), Some(CancelReason::Caller))
        );
    }

    #[tokio::test]
    async fn a_parent_has_fired_by_the_time_its_child_has() {
        let parent = Cancel::new();
        let child = parent.child();
        // The moment within `cancel` at which the children's tokens have fired and the parent's has not.
        parent.0.reason.set(CancelReason::Caller).unwrap();
        child.0.token.cancel();
        assert_eq!(child.cancelled().await, CancelReason::Caller);
        assert!(parent.is_cancelled());
        assert_eq!(parent.cancelled().await, CancelReason::Caller);
    }

    #[test]
    fn the_first_reason_stays() {
        let cancel = Cancel::new();
        cancel.cancel(CancelReason::Caller);
        cancel.cancel(CancelReason::Deadline);
        assert_eq!(cancel.reason(), Some(CancelReason::Caller));
    }
}
