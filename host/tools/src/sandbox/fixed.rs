//! Clocks and random numbers that are the same in each call.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use chacha20::{ChaCha20Rng, rand_core::SeedableRng as _};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

use crate::grants::{Checked, ClockGrant, RandomGrant};

/// What a look at the monotonic clock takes, in nanoseconds.
const LOOK: u64 = 1_000_000;

/// Gives the guest the clock and the random numbers that it is granted.
pub(super) fn apply(grants: &Checked, wasi: &mut WasiCtxBuilder) {
    if let ClockGrant::Fixed(at) = grants.clock {
        wasi.wall_clock(StandsStill(at))
            .monotonic_clock(Counts(AtomicU64::new(0)));
    }
    if let RandomGrant::Seeded(seed) = grants.random {
        wasi.secure_random(generator(seed, 0))
            .insecure_random(generator(seed, 1))
            .insecure_random_seed(seed.into());
    }
}

/// ChaCha20: its numbers are the same on every machine and in every version.
fn generator(seed: u64, stream: u64) -> ChaCha20Rng {
    let mut generator = ChaCha20Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    generator
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
