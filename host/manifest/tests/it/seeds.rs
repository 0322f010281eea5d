//! The seeds of the fuzz target, run as a test: what once went wrong stays right.

use std::{fs, path::Path};

#[path = "../../fuzz/properties.rs"]
mod properties;

fn run(target: &str, property: impl Fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut run = 0;
    for entry in fs::read_dir(dir).unwrap() {
        let seed = fs::read(entry.unwrap().path()).unwrap();
        // The seed, and what is left of it when it is cut: each is input that nobody wrote.
        let step = (seed.len() / 16).max(1);
        for end in (0..=seed.len()).step_by(step).chain([seed.len()]) {
            property(&seed[..end]);
        }
        run += 1;
    }
    assert!(run > 3, "{target} has {run} seeds");
}

#[test]
fn the_seeds_of_manifests_hold() {
    run("manifest", properties::manifest);
}
