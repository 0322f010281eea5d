//! The transport as the registry gives it, without the CLI: what it refuses before it starts anything. `tests/oracles` has the stories with
//! the real CLI, `tests/conformance` the kit.
#![cfg(test)]

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use capsule_api::{Error, Registry, Settings, SystemClock, TransportDescriptor, serde_json::json};
use capsule_transport_claude as _;
use capsule_transport_kit::services;

/// What the probe says about this program.
async fn probed(command: &Path) -> Error {
    let linked = Registry::<TransportDescriptor>::linked().unwrap();
    let descriptor = linked.get("claude").unwrap();
    let values = json!({"command": command, "api_key": "dummy-key"});
    let values = values.as_object().unwrap().clone();
    let schema = (descriptor.settings_schema)(None);
    let transport = (descriptor.build)(Settings::new(values, &schema, "."), services(SystemClock)).unwrap();
    transport.probe(false).await.usable.unwrap_err()
}

fn script(dir: &Path, text: &str) -> std::path::PathBuf {
    let path = dir.join("claude");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let error = probed(Path::new("/nowhere/claude")).await;
    assert_eq!(error.code, "claude-not-found");
    assert!(error.message.contains("/nowhere/claude"), "{}", error.message);
}

#[tokio::test]
async fn a_wrapper_script_is_refused_with_what_to_name_instead() {
    let dir = tempfile::tempdir().unwrap();
    let error = probed(&script(dir.path(), "#!/bin/sh\nexec true\n")).await;
    assert_eq!(error.code, "claude-wrapper");
    assert!(!error.hint.is_empty());
}

#[tokio::test]
async fn a_program_that_is_another_one_is_refused() {
    let error = probed(Path::new("/bin/true")).await;
    assert_eq!(error.kind, capsule_api::ErrorKind::TransportUnavailable, "{error:?}");
}
