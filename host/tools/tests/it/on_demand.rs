//! Components that no place in the pool can hold.

use std::fs;

use capsule_api::ToolStatus;

use crate::support::{Capsule, said};

/// More memories than a place has, and a function.
fn many_memories() -> Vec<u8> {
    let instances = "(core instance (instantiate $memory))".repeat(6);
    let wat = format!(
        r#"(component
             (core module $memory (memory 1))
             {instances}
             (core module $m (func (export "go") (result i32) (i32.const 7)))
             (core instance $i (instantiate $m))
             (func (export "go") (result u32) (canon lift (core func $i "go"))))"#
    );
    wat::parse_str(wat).unwrap()
}

#[tokio::test]
async fn what_does_not_fit_the_pool_runs_on_demand_from_the_same_cache() {
    let mut capsule = Capsule::with("large", many_memories());
    let cache = capsule.path("cache");
    capsule.options.cache_dir = Some(cache.clone());
    for _ in 0..2 {
        let turn = capsule.turn();
        assert_eq!(turn.toolbox.warnings(), []);
        let notes = &turn.toolbox.reports()[0].notes;
        assert!(notes[0].contains("more than a place in the pool"), "{notes:?}");
        assert_eq!(turn.ask("large").await, said(ToolStatus::Passed, "7"));
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn limits_hold_outside_the_pool_too() {
    let mut capsule = Capsule::with("large", many_memories());
    capsule.grants.limits.memory = 256 << 10;
    assert_eq!(
        capsule.turn().ask("large").await,
        said(
            ToolStatus::Trapped,
            "tool 'large' was stopped: it ran into the memory limit of 256KiB (`limits.memory`)"
        )
    );
}
