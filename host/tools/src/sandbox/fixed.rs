//! Clocks and random numbers that are the same in each call.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use sha2::{Digest, Sha256};
use wasmtime_wasi::{Deterministic, HostMonotonicClock, HostWallClock, WasiCtxBuilder};

use crate::grants::{Checked, ClockGrant, RandomGrant};

/// Bytes of randomness after which a seeded generator repeats.
const CYCLE: usize = 4 << 10;
/// What a look at the monotonic clock takes, in nanoseconds.
const LOOK: u64 = 1_000_000;

/// Gives the guest the clock and the random numbers that it is granted.
pub(super) fn apply(grants: &Checked, wasi: &mut WasiCtxBuilder) {
    if let ClockGrant::Fixed(at) = grants.clock {
        wasi.wall_clock(StandsStill(at))
            .monotonic_clock(Counts(AtomicU64::new(0)));
    }
    if let RandomGrant::Seeded(seed) = grants.random {
        wasi.secure_random(Deterministic::new(bytes(seed, 0)))
            .insecure_random(Deterministic::new(bytes(seed, 1)))
            .insecure_random_seed(seed.into());
    }
}

fn bytes(seed: u64, stream: u8) -> Vec<u8> {
    let block = |n: u64| {
        let hash = Sha256::new()
            .chain_update(seed.to_le_bytes())
            .chain_update([stream])
            .chain_update(n.to_le_bytes());
        hash.finalize()
    };
    (0..).flat_map(block).take(CYCLE).collect()
}

struct StandsStill(Duration);

impl HostWallClock for StandsStill {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}

/// Goes on with each look, so that a guest that measures never divides by zero.
struct Counts(AtomicU64);

impl HostMonotonicClock for Counts {
    fn resolution(&self) -> u64 {
        LOOK
    }

    fn now(&self) -> u64 {
        self.0.fetch_add(LOOK, Ordering::Relaxed)
    }
}
