//! The store's limiter. A refusal reaches the guest only as a failed growth or a trap, so it is recorded here.

use std::sync::Arc;

use wasmtime::ResourceLimiter;

use super::record::{CallRecord, LimitHit};
use crate::Limits;

/// Limits memories and tables of one call, each kind all together.
pub(super) struct Limiter {
    record: Arc<CallRecord>,
    memory: Budget,
    tables: Budget,
    instances: u32,
}

struct Budget {
    used: usize,
    most: usize,
    /// The last growth, which the engine may still give back.
    last: usize,
}

impl Budget {
    fn new(most: usize) -> Self {
        Self { used: 0, most, last: 0 }
    }

    fn take(&mut self, current: usize, desired: usize) -> bool {
        let more = desired.saturating_sub(current);
        let fits = more <= self.most - self.used;
        self.last = if fits { more } else { 0 };
        self.used += self.last;
        fits
    }

    fn give_back(&mut self) {
        self.used -= std::mem::take(&mut self.last);
    }
}

impl Limiter {
    pub(super) fn new(record: Arc<CallRecord>, limits: &Limits) -> Self {
        let most = |limit: u64| Budget::new(usize::try_from(limit).unwrap_or(usize::MAX));
        Self {
            record,
            memory: most(limits.memory),
            tables: most(limits.table_elements.into()),
            instances: limits.instances,
        }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let fits = self.memory.take(current, desired);
        if !fits {
            self.record.hit(LimitHit::Memory(self.memory.most as u64));
        }
        Ok(fits)
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        // Also called for a growth that was refused above: then there is nothing to give back.
        self.memory.give_back();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let fits = self.tables.take(current, desired);
        if !fits {
            self.record.hit(LimitHit::Tables(self.tables.most));
        }
        Ok(fits)
    }

    fn instances(&self) -> usize {
        usize::try_from(self.instances).unwrap_or(usize::MAX)
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.tables.give_back();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_share_one_budget_and_a_failed_growth_returns_its_part() {
        let record = Arc::new(CallRecord::new(Arc::new(capsule_api::SystemClock)));
        let limits = Limits {
            memory: 100,
            ..Limits::default()
        };
        let mut limiter = Limiter::new(Arc::clone(&record), &limits);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        limiter.memory_grow_failed(wasmtime::Error::msg("no room")).unwrap();
        assert!(limiter.memory_growing(0, 50, None).unwrap());
        assert!(limiter.memory_growing(0, 50, None).unwrap());
        assert_eq!(record.limit(), None);
        assert!(!limiter.memory_growing(50, 51, None).unwrap());
        assert_eq!(record.limit(), Some(LimitHit::Memory(100)));
    }
}
