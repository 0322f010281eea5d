//! The transport as the registry gives it, without the CLI: what it refuses before it starts anything. `tests/oracles` has the stories with
//! the real CLI, `tests/conformance` the kit.
#![cfg(test)]

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc};

use capsule_api::{
    ConversationSpec, Error, Limits, Registry, Settings, SystemClock, Transport, TransportDescriptor, serde_json::json,
};
use capsule_transport_codex as _;
use capsule_transport_kit::{TestTools, services};

fn transport(command: &Path, endpoint: &str) -> Result<Box<dyn Transport>, Error> {
    let linked = Registry::<TransportDescriptor>::linked().unwrap();
    let descriptor = linked.get("codex").unwrap();
    let values = json!({"command": command, "endpoint": endpoint, "api_key": "dummy-key"});
    let values = values.as_object().unwrap().clone();
    let schema = (descriptor.settings_schema)(None);
    (descriptor.build)(Settings::new(values, &schema, "."), services(SystemClock))
}

/// What the probe says about this program.
async fn probed(command: &Path) -> Error {
    let transport = transport(command, "https://api.example.com/v1").unwrap();
    transport.probe(false).await.usable.unwrap_err()
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let error = probed(Path::new("/nowhere/codex")).await;
    assert_eq!(error.code, "codex-not-found");
    assert!(error.message.contains("/nowhere/codex"), "{}", error.message);
}

#[tokio::test]
async fn a_wrapper_script_is_refused_with_what_to_name_instead() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("codex");
    fs::write(&path, "#!/bin/sh\nexec true\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let error = probed(&path).await;
    assert_eq!(error.code, "codex-wrapper");
    assert!(error.hint.contains("bin/codex"), "{}", error.hint);
}

#[tokio::test]
async fn a_program_that_is_another_one_is_refused() {
    let error = probed(Path::new("/bin/true")).await;
    assert_eq!(error.code, "codex-version-unreadable");
}

#[test]
fn a_key_goes_to_no_other_machine_in_the_clear() {
    let error = transport(Path::new("codex"), "http://api.example.com").err().unwrap();
    assert_eq!(error.code, "codex-endpoint");
}

#[tokio::test]
async fn a_conversation_without_a_model_is_refused_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let spec = ConversationSpec {
        context: "test".into(),
        model: None,
        system_prompt: String::new(),
        catalogue: Arc::clone(&TestTools::offered()),
        limits: Limits::default(),
        resume: None,
        run_dir: dir.path().to_owned(),
        state_dir: None,
    };
    let transport = transport(Path::new("/nowhere/codex"), "https://api.example.com").unwrap();
    let error = transport.open(spec).await.err().unwrap();
    assert_eq!(error.code, "codex-no-model");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn without_any_settings_it_says_how_to_log_in() {
    let home = tempfile::tempdir().unwrap();
    let linked = Registry::<TransportDescriptor>::linked().unwrap();
    let descriptor = linked.get("codex").unwrap();
    let values = json!({"command": "/nowhere/codex", "login_home": home.path()});
    let schema = (descriptor.settings_schema)(None);
    let settings = Settings::new(values.as_object().unwrap().clone(), &schema, ".");
    let probe = (descriptor.build)(settings, services(SystemClock))
        .unwrap()
        .probe(false)
        .await;
    let file = home.path().join("auth.json");
    let missing = format!("missing: `codex` is not logged in: there is no {}", file.display());
    assert_eq!(probe.facts, [("login".to_owned(), missing)]);
}
