//! Who may run at once. A call inside another has places of its own depth: it waits for calls as deep as itself, never for one around it,
//! and those that it waits for wait only for deeper ones. So calls that call cannot wait for each other in a circle.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::Limits;

/// Of the places at the top, the share that each depth below has.
const NESTED_SHARE: u32 = 4;
/// Scripts at once. A script is inside no call and around all.
const SCRIPTS: u32 = 1;

/// Places by depth. A call holds its permit until its store is gone, so that the pool always has room for it.
pub(super) struct Places {
    by_depth: Vec<Arc<Semaphore>>,
    script: Arc<Semaphore>,
}

impl Places {
    /// Places for so many calls of the model's, and for those that they make.
    pub(super) fn new(limits: &Limits) -> Self {
        let semaphore = |count| Arc::new(Semaphore::new(usize::try_from(count).unwrap_or(1)));
        Self {
            by_depth: counts(limits).map(semaphore).collect(),
            script: semaphore(SCRIPTS),
        }
    }

    /// How many places there are in all.
    pub(super) fn all(limits: &Limits) -> u32 {
        counts(limits).sum::<u32>() + SCRIPTS
    }

    /// Waits for a place at this depth. Dropping the future leaves the queue.
    pub(super) async fn take(&self, depth: u32) -> Result<OwnedSemaphorePermit, AcquireError> {
        let last = self.by_depth.len() - 1;
        let index = usize::try_from(depth).unwrap_or(last).min(last);
        Arc::clone(&self.by_depth[index]).acquire_owned().await
    }

    /// Waits for the place of the script.
    pub(super) async fn take_for_script(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        Arc::clone(&self.script).acquire_owned().await
    }
}

/// Places by depth; at least one depth.
fn counts(limits: &Limits) -> impl Iterator<Item = u32> {
    let calls = limits.concurrent_calls;
    let nested = (1..limits.registry_depth).map(move |_| calls.div_ceil(NESTED_SHARE));
    std::iter::once(calls).chain(nested)
}
