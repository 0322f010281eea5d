//! What the tests share.

use std::fs;
use std::path::Path;

use capsule_guest::{Error, Output, StateEffect};
use tempfile::TempDir;

pub(crate) fn directory_with(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (name, content) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("it lies in the directory")).expect("a directory");
        fs::write(path, content).expect("a file");
    }
    dir
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().expect("a temporary path is UTF-8").to_owned()
}

/// An output as the tool says it about a path.
pub(crate) fn output(output: Output, effect: StateEffect, path: &str) -> Output {
    output.state_effect(effect).resource_id(path)
}

/// A failure as the tool says it about a path.
pub(crate) fn failed(message: impl Into<String>, effect: &str, path: &str) -> Error {
    Error::new(message)
        .metadata("state_effect", effect)
        .metadata("resource_id", path)
}
