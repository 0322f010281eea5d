//! The program as it is built here; the release build runs the same binary.
#![cfg(test)]

use std::process::Command;

#[test]
fn r_01_every_named_plugin_is_registered() {
    let run = Command::new(env!("CARGO_BIN_EXE_capsule-registration"))
        .output()
        .unwrap();
    let told = String::from_utf8(run.stdout).unwrap();
    assert_eq!(
        (told.as_str(), run.status.code()),
        (
            "transport: echo\ndriver: anthropic, cassette, component, ollama, openai, openai-responses\n",
            Some(0)
        )
    );
}
