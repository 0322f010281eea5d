//! Where a run keeps its files. Directories are 0700, files 0600.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
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
    /// Without a home, state and cache are below a directory of this user's own in the temporary directory. A runtime directory that others
    /// may write to is not used.
    pub fn of(capsule: &str, env: impl Fn(&str) -> Option<std::ffi::OsString>) -> Self {
        // The specification has relative values ignored.
        let dir = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let temporary = std::env::temp_dir();
        let user = rustix::process::geteuid().as_raw();
        let home = dir("HOME").unwrap_or_else(|| temporary.join(format!("{STAND_IN}{user}")));
        let state = dir("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state"));
        let cache = dir("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache"));
        let private = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.is_dir() && is_private(&found));
        let runtime = dir("XDG_RUNTIME_DIR").filter(private).unwrap_or(temporary);
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
    pub fn make_run_state(&self, task: &str) -> Result<RunState, Error> {
        let runs = self.state.join("runs");
        let dir = runs.join(task);
        make_dir(&dir)?;
        let lock = hold(&dir).map_err(|error| storage("lock", &dir, &error))?;
        prune(&runs, task, KEPT_RUNS);
        Ok(RunState { path: dir, _lock: lock })
    }

    /// Makes the private directory of a run. It is removed when the guard goes. Those of runs that were killed are removed too.
    ///
    /// # Errors
    /// `session-storage` when it cannot be made.
    pub fn make_run_dir(&self, task: &str) -> Result<RunDir, Error> {
        let path = self.runtime.join(format!("{RUN_DIR}{task}"));
        // `create`, not `create_dir_all`: in a shared directory a path that somebody else prepared must be refused.
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| {
            let hint = "The directory above it must exist and be yours to write; XDG_RUNTIME_DIR or TMPDIR moves it.";
            storage("make the run directory", &path, &error).hint(hint)
        })?;
        let lock = hold(&path).map_err(|error| storage("lock", &path, &error))?;
        sweep(&self.runtime, SystemTime::now());
        Ok(RunDir { path, _lock: lock })
    }
}

/// The directory of a run that outlives it. Other runs leave it alone as long as this value lives.
#[derive(Debug)]
pub struct RunState {
    path: PathBuf,
    _lock: fs::File,
}

impl RunState {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A directory that lives as long as this value.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    _lock: fs::File,
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

/// Makes a directory and those above it, 0700. One that is there already must be this user's, no link, and closed to the writes of others:
/// whoever may write there could lead the host's own writes and removals elsewhere.
pub(crate) fn make_dir(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| storage("make the directory", path, &error))?;
    for dir in own_levels(path) {
        let found = fs::symlink_metadata(dir).map_err(|error| storage("look at", dir, &error))?;
        if !found.is_dir() || !is_private(&found) {
            let why = "it is a link, belongs to somebody else, or is open to the writes of others";
            let hint = "Remove it, or make it yours alone (`chmod go-w`); XDG_STATE_HOME moves the state.";
            return Err(Error::new(&codes::PLACE, format!("{} is not used: {why}", dir.display())).hint(hint));
        }
    }
    Ok(())
}

/// The directory itself and those of the host above it, as far as `capsule` and the one that stands in for a home. What lies higher is
/// the person's.
fn own_levels(path: &Path) -> impl Iterator<Item = &Path> {
    let root = path.ancestors().find(|dir| dir.ends_with("capsule")).unwrap_or(path);
    let stand_in = |dir: &Path| {
        dir.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(STAND_IN))
    };
    path.ancestors()
        .filter(move |dir| dir.starts_with(root) || stand_in(dir))
}

/// What the directory is called, before the user's number, that stands in for a home that is not set.
const STAND_IN: &str = "capsule-user-";

fn is_private(found: &fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
}

/// Marks a run's directory as in use, until the file is closed or the process ends, however it ends.
fn hold(dir: &Path) -> io::Result<fs::File> {
    let file = fs::File::open(dir)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared)?;
    Ok(file)
}

fn is_held(dir: &Path) -> bool {
    let locked = fs::File::open(dir)
        .map(|file| rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err());
    locked.unwrap_or(true)
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

/// Removes the oldest runs' directories: real ones whose names are task ids (which sort by time), not `current`, and not one that a
/// run still holds. A directory that cannot be removed is tried again by the next run.
fn prune(runs: &Path, current: &str, keep: usize) {
    let Ok(entries) = fs::read_dir(runs) else { return };
    let is_run = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let named = name
            .to_str()
            .is_some_and(|name| name != current && uuid::Uuid::parse_str(name).is_ok());
        named && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    let mut dirs: Vec<_> = entries.flatten().filter(is_run).map(|entry| entry.path()).collect();
    dirs.sort();
    // The current one counts among those that are kept.
    let excess = (dirs.len() + 1).saturating_sub(keep);
    for dir in dirs.into_iter().take(excess).filter(|dir| !is_held(dir)) {
        let _ = fs::remove_dir_all(dir);
    }
}

/// Removes private directories that killed runs of this user left: not held, and old enough that they are not just being made.
fn sweep(runtime: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(runtime) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let task = name.to_str().and_then(|name| name.strip_prefix(RUN_DIR));
        let Ok(found) = entry.metadata() else { continue };
        let old = found
            .modified()
            .is_ok_and(|made| now.duration_since(made).is_ok_and(|age| age > JUST_MADE));
        let named = task.is_some_and(|task| uuid::Uuid::parse_str(task).is_ok());
        if named && old && found.is_dir() && is_private(&found) && !is_held(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// What the private directory of a run is called, before the task's id.
const RUN_DIR: &str = "capsule-";
/// The time in which a directory may be made and not yet be held.
const JUST_MADE: Duration = Duration::from_secs(60);

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

    fn task(n: u32) -> String {
        format!("00000000-0000-7000-8000-{n:012}")
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_the_newest_runs_are_kept_and_nothing_else_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        for n in 1..=5 {
            make_dir(&dir.path().join(task(n))).unwrap();
        }
        make_dir(&dir.path().join("notes")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join(task(0))).unwrap();
        prune(dir.path(), &task(5), 2);
        assert_eq!(names(dir.path()), [task(0), task(4), task(5), "notes".to_owned()]);
    }

    #[test]
    fn a_run_that_goes_on_keeps_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        for n in 1..=3 {
            make_dir(&dir.path().join(task(n))).unwrap();
        }
        let _held = hold(&dir.path().join(task(1))).unwrap();
        prune(dir.path(), &task(3), 1);
        assert_eq!(names(dir.path()), [task(1), task(3)]);
    }

    #[test]
    fn what_killed_runs_left_is_swept_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let named = |n| dir.path().join(format!("{RUN_DIR}{}", task(n)));
        for place in [
            named(1),
            named(2),
            dir.path().join("capsule-notes"),
            dir.path().join(task(3)),
        ] {
            make_dir(&place).unwrap();
        }
        let _held = hold(&named(2)).unwrap();
        sweep(dir.path(), SystemTime::now());
        assert_eq!(names(dir.path()).len(), 4, "they may just be being made");
        sweep(dir.path(), SystemTime::now() + JUST_MADE * 2);
        let left = [task(3), format!("{RUN_DIR}{}", task(2)), "capsule-notes".to_owned()];
        assert_eq!(names(dir.path()), left);
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_not_used() {
        let base = tempfile::tempdir().unwrap();
        let state = base.path().as_os_str().to_owned();
        let places = Places::of("notes", move |name| (name == "XDG_STATE_HOME").then(|| state.clone()));
        places.make_run_state(&task(1)).unwrap();
        fs::set_permissions(places.state(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = places.make_run_state(&task(2)).unwrap_err();
        assert!(
            error.message.contains("open to the writes of others"),
            "{}",
            error.message
        );
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let (base, victim) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let state = base.path().as_os_str().to_owned();
        let places = Places::of("notes", move |name| (name == "XDG_STATE_HOME").then(|| state.clone()));
        make_dir(places.state()).unwrap();
        std::os::unix::fs::symlink(victim.path(), places.state().join("runs")).unwrap();
        assert_eq!(places.make_run_state(&task(1)).unwrap_err().code, "session-place");
    }

    #[test]
    fn a_runtime_directory_of_everybody_is_not_used() {
        let open = tempfile::tempdir().unwrap();
        fs::set_permissions(open.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let path = open.path().as_os_str().to_owned();
        let places = Places::of("notes", move |name| (name == "XDG_RUNTIME_DIR").then(|| path.clone()));
        let run = places.make_run_dir(&task(7)).unwrap();
        assert!(!run.path().starts_with(open.path()));
        run.remove();
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
