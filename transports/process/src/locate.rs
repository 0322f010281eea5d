//! Finds the native binary of a CLI.

use std::{
    collections::HashMap,
    fs,
    hash::Hash,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use capsule_api::{Code, Error, Settings};

use crate::CliSettings;

/// What makes a binary the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Where it is, links resolved.
    pub path: PathBuf,
    size: u64,
    modified: Option<SystemTime>,
}

/// How a CLI is found.
#[derive(Debug)]
pub struct Locate {
    /// Where the binary may be that a script would start: the script stands for it. A script that is killed leaves its program running.
    pub behind_script: fn(&Path) -> Vec<PathBuf>,
    /// Raised where there is no such program.
    pub not_found: &'static Code,
    /// Raised where it is not a native program and stands for none.
    pub wrapper: &'static Code,
}

impl Locate {
    /// Finds the native binary that the settings name, off the runtime.
    ///
    /// # Errors
    /// As [`Locate::find`]; a path that leaves the manifest's directory.
    pub async fn binary(&'static self, config: &CliSettings, settings: &Settings) -> Result<Identity, Error> {
        let (command, path) = (config.command.clone(), config.command_path(settings)?);
        let located = tokio::task::spawn_blocking(move || self.find(&command, path)).await;
        located.expect("looking for a file does not panic")
    }

    /// Finds the native binary behind a command: at `path`, or else in `PATH`. Blocks on the file system.
    ///
    /// # Errors
    /// The codes of this value, with the path.
    pub fn find(&self, command: &str, path: Option<PathBuf>) -> Result<Identity, Error> {
        let not_found = |why: String| Error::new(self.not_found, why);
        let found = match path {
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
        let native = |path: &PathBuf| read(path).ok().filter(|(_, magic)| is_native(*magic));
        if let Some((native, _)) = (self.behind_script)(&identity.path).iter().find_map(native) {
            return Ok(native);
        }
        let what = if magic.starts_with(b"#!") {
            "a script"
        } else {
            "not a native program"
        };
        let message = format!("{} is {what}", identity.path.display());
        Err(Error::new(self.wrapper, message))
    }
}

fn read(path: &Path) -> io::Result<(Identity, [u8; 4])> {
    let path = fs::canonicalize(path)?;
    let about = fs::metadata(&path)?;
    // Before it is opened: a pipe would be waited for.
    if !about.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut file = fs::File::open(&path)?;
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

/// What was learnt about binaries, so that each is asked once.
#[derive(Debug)]
pub struct Known<T>(Mutex<HashMap<Identity, T>>);

/// A host meets one or two binaries. The bound is for one whose file changes for ever.
const MOST_KNOWN: usize = 16;

impl<T: Clone> Known<T> {
    /// What is known about this binary.
    pub fn get(&self, identity: &Identity) -> Option<T> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(identity).cloned()
    }

    /// Remembers it. With 16 binaries known, all are forgotten.
    pub fn insert(&self, identity: Identity, about: T) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(identity, about);
    }
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use capsule_api::ErrorKind;

    use super::*;

    const NOT_FOUND: Code = code("agent-not-found");
    const WRAPPER: Code = code("agent-wrapper");
    const AGENT: Locate = Locate {
        behind_script: |script| vec![script.with_file_name("missing"), script.with_file_name("native")],
        not_found: &NOT_FOUND,
        wrapper: &WRAPPER,
    };

    const fn code(id: &'static str) -> Code {
        Code {
            id,
            kind: ErrorKind::TransportUnavailable,
            meaning: "",
            remedy: "",
        }
    }

    #[test]
    fn p_18_a_script_stands_for_its_binary_and_is_refused_without_one() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("agent");
        fs::write(&script, "#!/usr/bin/env node\n").unwrap();
        let error = AGENT.find("agent", Some(script.clone())).unwrap_err();
        assert_eq!(error.code, "agent-wrapper");
        assert!(error.message.ends_with("agent is a script"), "{}", error.message);
        let native = dir.path().join("native");
        fs::write(&native, b"\x7fELF and more").unwrap();
        let found = AGENT.find("agent", Some(script)).unwrap();
        assert_eq!(found.path, fs::canonicalize(native).unwrap());
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for place in [pipe, dir.path().to_owned()] {
            let error = AGENT.find("agent", Some(place)).unwrap_err();
            assert_eq!(error.code, "agent-not-found");
            assert!(error.message.ends_with("it is not a file"), "{}", error.message);
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = AGENT.find("no-such-program-here", None).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            ("agent-not-found", "no program `no-such-program-here` is in PATH")
        );
    }

    #[test]
    fn a_binary_that_was_replaced_is_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent");
        let known = Known::default();
        fs::write(&path, b"\x7fELF one").unwrap();
        let first = AGENT.find("agent", Some(path.clone())).unwrap();
        known.insert(first.clone(), 1);
        fs::write(&path, b"\x7fELF the second").unwrap();
        let second = AGENT.find("agent", Some(path)).unwrap();
        assert_eq!((known.get(&first), known.get(&second)), (Some(1), None));
    }
}
