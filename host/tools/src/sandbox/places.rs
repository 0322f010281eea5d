//! Who may run at once. A call inside another has places of its own depth: it waits for calls as deep as itself, never for one around it,
//! and those that it waits for wait only for deeper ones. So calls that call cannot wait for each other in a circle.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::dispatch::DEEPEST;

/// Of the places at the top, the share that each depth below has.
const NESTED_SHARE: u32 = 4;

/// Places by depth. A call holds its permit until its store is gone, so that the pool always has room for it.
pub(super) struct Places(Vec<Arc<Semaphore>>);

impl Places {
    /// Places for so many calls of the model's, and for those that they make.
    pub(super) fn new(calls: u32) -> Self {
        let semaphore = |count| Arc::new(Semaphore::new(usize::try_from(count).unwrap_or(1)));
        Self(counts(calls).map(semaphore).collect())
    }

    /// How many places there are in all.
    pub(super) fn all(calls: u32) -> u32 {
        counts(calls).sum()
    }

    /// Waits for a place at this depth. Dropping the future leaves the queue.
    pub(super) async fn take(&self, depth: u32) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.at(depth.min(DEEPEST - 1)).await
    }

    /// Waits for the place of the script.
    pub(super) async fn take_for_script(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.at(DEEPEST).await
    }

    async fn at(&self, index: u32) -> Result<OwnedSemaphorePermit, AcquireError> {
        let last = self.0.len() - 1;
        let index = usize::try_from(index).unwrap_or(last).min(last);
        Arc::clone(&self.0[index]).acquire_owned().await
    }
}

/// By depth; the last one is the script's, which is inside no call and around all.
fn counts(calls: u32) -> impl Iterator<Item = u32> {
    let nested = (1..DEEPEST).map(move |_| calls.div_ceil(NESTED_SHARE));
    std::iter::once(calls).chain(nested).chain([1])
}
