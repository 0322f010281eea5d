//! A third party's program has its own transport and all of ours, and the guide shows these very files.
#![cfg(test)]

mod family;

use std::{fs, path::Path, process::Command};

fn run(dir: &Path, args: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_my-agent-runner"))
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("HOME", dir)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn the_program_lists_its_own_transport_among_ours() {
    let dir = tempfile::tempdir().unwrap();
    let (listed, _, code) = run(dir.path(), &["transports"]);
    assert_eq!(code, Some(0));
    for name in ["parrot", "echo", "http"] {
        assert!(
            listed.contains(&format!("\n  {name} ")),
            "{name} is missing in {listed}"
        );
    }
}

#[test]
fn a_capsule_runs_on_it_and_its_settings_are_checked_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = "name: mine\nversion: 0.1.0\ninference:\n  transport: parrot\n  ending: '!'\n";
    fs::write(dir.path().join("capsule.yaml"), manifest).unwrap();
    let (answer, _, code) = run(dir.path(), &["run", "-t", "hello"]);
    assert_eq!((answer.as_str(), code), ("hello!\n", Some(0)));
    let (_, problem, code) = run(dir.path(), &["run", "-t", "hello", "--set", "inference.endng=x"]);
    assert_eq!(code, Some(2));
    assert!(problem.contains("did you mean `ending`"), "{problem}");
}

#[test]
fn the_guide_shows_these_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let guide = fs::read_to_string(root.join("docs/write-a-transport.md")).unwrap();
    for file in [
        "transport/src/lib.rs",
        "transport/tests/it/main.rs",
        "runner/src/main.rs",
    ] {
        let code = fs::read_to_string(root.join("tests/third-party").join(file)).unwrap();
        assert!(
            guide.contains(&format!("```rust\n{code}```\n")),
            "docs/write-a-transport.md does not show {file} as it is"
        );
    }
}
