//! The transport as the registry gives it, without the CLI: what it refuses before it starts anything. `tests/oracles` has the stories with
//! the real CLI, `tests/conformance` the kit.
#![cfg(test)]

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use capsule_api::{
    Error, Probe, Registry, Settings, SystemClock, TransportDescriptor,
    serde_json::{Value, json},
};
use capsule_transport_claude as _;
use capsule_transport_kit::services;

/// What the probe says with these settings.
async fn told(values: Value) -> Probe {
    let linked = Registry::<TransportDescriptor>::linked().unwrap();
    let descriptor = linked.get("claude").unwrap();
    let values = values.as_object().unwrap().clone();
    let schema = (descriptor.settings_schema)(None);
    let transport = (descriptor.build)(Settings::new(values, &schema, "."), services(SystemClock)).unwrap();
    transport.probe(false).await
}

/// What the probe says about this program.
async fn probed(command: &Path) -> Error {
    told(json!({"command": command, "api_key": "dummy-key"}))
        .await
        .usable
        .unwrap_err()
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

#[tokio::test]
async fn the_login_is_told_with_or_without_the_program_and_what_is_missing_is_named() {
    let home = tempfile::tempdir().unwrap();
    let settings = json!({"command": "/nowhere/claude", "login_home": home.path()});
    let probe = told(settings.clone()).await;
    assert_eq!(probe.usable.unwrap_err().code, "claude-not-found");
    let file = home.path().join(".credentials.json");
    let missing = format!("missing: `claude` is not logged in: there is no {}", file.display());
    assert_eq!(probe.facts, [("login".to_owned(), missing)]);

    let oauth = json!({"claudeAiOauth": {"accessToken": "sk-at", "refreshToken": "sk-rt", "subscriptionType": "max"}});
    fs::write(&file, oauth.to_string()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let probe = told(settings).await;
    let file = fs::canonicalize(file).unwrap();
    let login = format!("subscription (max), from {}", file.display());
    assert_eq!(probe.facts, [("login".to_owned(), login)]);
}
