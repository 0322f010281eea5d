//! Finds the native binary: by name, by path, or behind the npm package's wrapper script.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    time::SystemTime,
};

use capsule_api::Error;

use crate::codes;

/// What makes a binary the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) path: PathBuf,
    size: u64,
    modified: Option<SystemTime>,
}

/// Finds the native binary behind a command. Blocks on the file system.
pub(crate) fn locate(command: &str, named: Option<PathBuf>) -> Result<Identity, Error> {
    let not_found = |why: String| Error::new(&codes::NOT_FOUND, why);
    let found = match named {
        Some(path) => path,
        None => which::which(command).map_err(|_| not_found(format!("no program `{command}` is in PATH")))?,
    };
    let (identity, magic) = read(&found).map_err(|error| {
        let message = format!("{} cannot be read: {error}", found.display());
        not_found(message).caused_by(error)
    })?;
    if is_native(magic) {
        return Ok(identity);
    }
    if let Some(native) = behind_wrapper(&identity.path) {
        return Ok(native);
    }
    let what = if magic.starts_with(b"#!") {
        "a script"
    } else {
        "not a native program"
    };
    Err(Error::new(
        &codes::WRAPPER,
        format!("{} is {what}", identity.path.display()),
    ))
}

fn read(path: &Path) -> io::Result<(Identity, [u8; 4])> {
    let path = fs::canonicalize(path)?;
    let mut file = fs::File::open(&path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut magic = [0; 4];
    file.read_exact(&mut magic)?;
    let identity = Identity {
        path,
        size: about.len(),
        modified: about.modified().ok(),
    };
    Ok((identity, magic))
}

/// ELF, or Mach-O in its 64-bit or universal form.
fn is_native(magic: [u8; 4]) -> bool {
    matches!(
        magic,
        [0x7f, b'E', b'L', b'F'] | [0xcf, 0xfa, 0xed, 0xfe] | [0xca, 0xfe, 0xba, 0xbe]
    )
}

/// The binary that the wrapper `@openai/codex/bin/codex.js` would start: the platform's package is beside it or below it.
fn behind_wrapper(script: &Path) -> Option<Identity> {
    let (package, triple) = platform()?;
    let wrapper = script.ancestors().find(|place| place.ends_with("@openai/codex"))?;
    let beside = wrapper.parent()?.join(package);
    let below = wrapper.join("node_modules/@openai").join(package);
    let binaries = [beside, below].map(|package| package.join("vendor").join(triple).join("bin/codex"));
    binaries.iter().find_map(|binary| match read(binary) {
        Ok((identity, magic)) if is_native(magic) => Some(identity),
        _ => None,
    })
}

/// The package for this platform, and the name of its binaries' directory.
fn platform() -> Option<(&'static str, &'static str)> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some(("codex-linux-x64", "x86_64-unknown-linux-musl")),
        ("linux", "aarch64") => Some(("codex-linux-arm64", "aarch64-unknown-linux-musl")),
        ("macos", "x86_64") => Some(("codex-darwin-x64", "x86_64-apple-darwin")),
        ("macos", "aarch64") => Some(("codex-darwin-arm64", "aarch64-apple-darwin")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn file(path: &Path, content: &[u8]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn p_18_the_packages_wrapper_is_resolved_to_the_native_binary() {
        let Some((package, triple)) = platform() else { return };
        for place in ["@openai", "@openai/codex/node_modules/@openai"] {
            let dir = tempfile::tempdir().unwrap();
            let modules = dir.path().join("node_modules");
            let script = modules.join("@openai/codex/bin/codex.js");
            file(&script, b"#!/usr/bin/env node\n");
            let binary = modules
                .join(place)
                .join(package)
                .join("vendor")
                .join(triple)
                .join("bin/codex");
            file(&binary, b"\x7fELF and more");
            let command = modules.join(".bin/codex");
            fs::create_dir_all(command.parent().unwrap()).unwrap();
            symlink(&script, &command).unwrap();
            let found = locate("codex", Some(command)).unwrap();
            assert_eq!(found.path, fs::canonicalize(binary).unwrap());
        }
    }

    #[test]
    fn p_18_a_wrapper_without_its_binary_is_refused_with_the_file_to_use() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("codex");
        file(&script, b"#!/usr/bin/env node\n");
        let error = locate("codex", Some(script)).unwrap_err();
        assert_eq!(error.code, "codex-wrapper");
        assert!(error.hint.contains("@openai/codex-linux-x64"), "{}", error.hint);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = locate("no-such-program-here", None).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            ("codex-not-found", "no program `no-such-program-here` is in PATH")
        );
    }
}
