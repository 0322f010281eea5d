//! Where a run keeps its files. Directories are 0700, files 0600.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use capsule_api::Error;

use crate::codes;

/// Traces of this many runs are kept per capsule; older ones go when a new one starts.
const KEPT_RUNS: usize = 100;

/// The directories of one capsule, after the XDG base directory specification.
#[derive(Clone, Debug)]
pub struct Places {
    state: PathBuf,
    cache: PathBuf,
    runtime: PathBuf,
}

impl Places {
    /// The places of `capsule`, from an environment look-up (`XDG_STATE_HOME`, `XDG_CACHE_HOME`, `XDG_RUNTIME_DIR`, `HOME`).
    ///
    /// Without a home, state and cache are below the temporary directory.
    pub fn of(capsule: &str, env: impl Fn(&str) -> Option<std::ffi::OsString>) -> Self {
        // The specification has relative values ignored.
        let dir = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let temporary = std::env::temp_dir();
        let home = dir("HOME").unwrap_or_else(|| temporary.clone());
        let state = dir("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state"));
        let cache = dir("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache"));
        let runtime = dir("XDG_RUNTIME_DIR").filter(|path| path.is_dir()).unwrap_or(temporary);
        Self {
            state: state.join("capsule").join(capsule),
            cache: cache.join("capsule/components"),
            runtime,
        }
    }

    /// The compile cache, shared by all capsules.
    pub fn component_cache(&self) -> &Path {
        &self.cache
    }

    /// The state of the capsule.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Makes the directory of a run that outlives it (its trace), and drops those of the oldest runs.
    ///
    /// # Errors
    /// `session-storage` when it cannot be made.
    pub fn make_run_state(&self, task: &str) -> Result<PathBuf, Error> {
        let runs = self.state.join("runs");
        let dir = runs.join(task);
        make_dir(&dir)?;
        prune(&runs, KEPT_RUNS);
        Ok(dir)
    }

    /// Makes the private directory of a run. It is removed when the guard goes.
    ///
    /// # Errors
    /// `session-storage` when it cannot be made.
    pub fn make_run_dir(&self, task: &str) -> Result<RunDir, Error> {
        let path = self.runtime.join(format!("capsule-{task}"));
        // `create`, not `create_dir_all`: in a shared directory a path that somebody else prepared must be refused.
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| storage("make the run directory", &path, &error))?;
        Ok(RunDir { path })
    }
}

/// A directory that lives as long as this value.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, and says what could not be removed.
    pub fn remove(self) -> Vec<PathBuf> {
        let removed = fs::remove_dir_all(&self.path);
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => vec![self.path.clone()],
            _ => Vec::new(),
        }
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        // Reached only where `remove` was not: a run that was dropped. Nobody is left to tell.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes a directory and those above it, 0700.
pub(crate) fn make_dir(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| storage("make the directory", path, &error))
}

/// Writes a file whole or not at all, 0600.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let temporary = path.with_extension("new");
    let write = || -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        // The half-written file is of no use to anyone; the error to report is the first one.
        let _ = fs::remove_file(&temporary);
        storage("write", path, &error)
    })
}

pub(crate) fn storage(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(&codes::STORAGE, format!("cannot {what} {}: {error}", path.display()))
}

/// Removes the oldest directories. Task ids sort by time. A directory that cannot be removed is tried again by the next run.
fn prune(runs: &Path, keep: usize) {
    let Ok(entries) = fs::read_dir(runs) else { return };
    let mut dirs: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    dirs.sort();
    let excess = dirs.len().saturating_sub(keep);
    for dir in dirs.into_iter().take(excess) {
        let _ = fs::remove_dir_all(dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_xdg_and_ignore_relative_values() {
        let env = |name: &str| match name {
            "HOME" => Some("/home/ada".into()),
            "XDG_STATE_HOME" => Some("relative".into()),
            "XDG_CACHE_HOME" => Some("/var/cache/ada".into()),
            _ => None,
        };
        let places = Places::of("notes", env);
        assert_eq!(places.state(), Path::new("/home/ada/.local/state/capsule/notes"));
        assert_eq!(places.component_cache(), Path::new("/var/cache/ada/capsule/components"));
    }

    #[test]
    fn only_the_newest_runs_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..5 {
            make_dir(&dir.path().join(n.to_string())).unwrap();
        }
        prune(dir.path(), 2);
        let mut left: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["3", "4"]);
    }

    #[test]
    fn a_run_directory_is_private_and_goes_with_its_guard() {
        let base = tempfile::tempdir().unwrap();
        let runtime = base.path().as_os_str().to_owned();
        let places = Places::of("notes", move |name| {
            (name == "XDG_RUNTIME_DIR").then(|| runtime.clone())
        });
        let run = places.make_run_dir("t1").unwrap();
        let path = run.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(places.make_run_dir("t1").unwrap_err().code, "session-storage");
        assert_eq!(run.remove(), Vec::<PathBuf>::new());
        assert!(!path.exists());
    }
}
