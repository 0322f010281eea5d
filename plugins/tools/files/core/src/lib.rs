//! What the tools for files share. Each is a component of its own, so that a capsule can offer reading without writing, and a model
//! sees a narrow schema and a true `read_only` for each; the work is done here.

#![warn(missing_docs)]

pub mod edit;
pub mod grants;
pub mod list;
pub mod read;
pub mod search;
#[cfg(test)]
mod testing;
pub mod text;
pub mod walk;
pub mod wildcard;
pub mod write;

use std::time::{Duration, Instant};

/// The longest that a walk over a tree takes: a third of the deadline that a tool has by default.
pub const LONGEST_WALK: Duration = Duration::from_secs(20);

/// When work that may be cut short has to end.
#[derive(Clone, Copy, Debug)]
pub struct Until(Instant);

impl Until {
    /// So long from now on.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}
