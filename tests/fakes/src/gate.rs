//! What a hanging or stalled answer waits for.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

/// Holds every answer that hangs or stalls until a test lets it go on.
///
/// Clones are the same gate. When the provider shuts down, what waits is dropped.
#[derive(Debug, Clone)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    passes: Semaphore,
    reached: watch::Sender<usize>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                passes: Semaphore::new(0),
                reached: watch::Sender::new(0),
            }),
        }
    }

    /// Lets everything go on that waits now or comes later.
    pub fn open(&self) {
        self.inner.passes.close();
    }

    /// Lets one answer go on: the one that waits longest, or else the next to come.
    pub fn release_one(&self) {
        if !self.inner.passes.is_closed() {
            self.inner.passes.add_permits(1);
        }
    }

    /// Waits until `count` answers in all have come to the gate, passed or not. All bytes before
    /// the gate are written by then. Cancel-safe.
    pub async fn reached(&self, count: usize) {
        let mut reached = self.inner.reached.subscribe();
        let arrived = reached.wait_for(|&seen| seen >= count).await;
        arrived.expect("the sender lives in self");
    }

    /// Waits for a pass. Cancel-safe.
    pub(crate) async fn pass(&self) {
        self.inner.reached.send_modify(|seen| *seen += 1);
        // A closed semaphore means an open gate.
        if let Ok(pass) = self.inner.passes.acquire().await {
            pass.forget();
        }
    }
}
