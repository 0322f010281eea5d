use super::*;
use crate::{Limits, Options};

/// More places than any address space has room for.
#[test]
fn a_machine_without_room_for_the_pool_runs_on_demand_with_a_warning() {
    let limits = Limits {
        concurrent_calls: 100_000,
        ..Limits::default()
    };
    let mut warnings = Vec::new();
    let sandbox = Sandbox::new(Checked::nothing(limits), &Options::default(), &mut warnings).unwrap();
    assert!(sandbox.pooled.is_none());
    let codes: Vec<_> = warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, [codes::POOL_UNAVAILABLE]);
    assert_eq!(sandbox.benches().count(), 1);
}
