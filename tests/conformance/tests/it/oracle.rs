//! The requests of a whole run, against the provider's official SDK.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::run::{Bench, hello_on_http, hello_script, workspace};

/// Has the SDK's types check these bodies.
fn check(python: &Path, name: &str, bodies: &[Value]) -> Output {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, serde_json::to_vec_pretty(bodies).unwrap()).unwrap();
    let script = workspace("tests/oracles/python/check_requests.py");
    let mut command = Command::new(python);
    command.env_clear().arg("-I").arg(script).arg("bodies").arg(file);
    command.output().unwrap()
}

#[test]
fn every_request_of_a_run_fits_the_types_of_the_official_sdk() {
    let Some(python) = capsule_fakes::python() else { return };
    let bench = Bench::new();
    let provider = bench.provider(hello_script());
    bench.run(&hello_on_http(&provider.url())).outcome();
    let mut bodies: Vec<_> = provider.requests().iter().map(|request| request.body.clone()).collect();

    let good = check(&python, "requests-hello.json", &bodies);
    assert!(good.status.success(), "{good:?}");
    assert_eq!(
        String::from_utf8_lossy(&good.stdout),
        "bodies: 3 requests, 0 violations\n"
    );

    // The check can fail.
    bodies[1]["messages"][0]["role"] = json!("nobody");
    let bad = check(&python, "requests-broken.json", &bodies);
    assert_eq!(bad.status.code(), Some(1), "{bad:?}");
}
