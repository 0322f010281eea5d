//! Compiled components on disk.
//!
//! A cached file is machine code that the host maps and runs, and the engine notices truncation but not a changed byte. What protects it
//! is who may write: the directory and the files belong to this user and nobody else may write to them, a file is never a symbolic link, and it is
//! never changed in place. Whatever does not hold is compiled again, with a warning.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    hash::{Hash, Hasher},
    io::{self, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use wasmtime::{Engine, component::Component};

use super::directory::DESCRIPTORS;

/// Files that are kept; with more, the ones written longest ago go.
const MOST_FILES: usize = 256;
const EXTENSION: &str = "cwasm";
/// Write permission for anybody but the owner.
const OTHERS_WRITE: u32 = 0o022;

/// A directory of compiled components.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
}

/// A component's place in the cache.
#[derive(Clone, Debug)]
pub(super) struct Key(String);

impl Key {
    /// The key of a component for an engine: its SHA-256 and the engine's compatibility hash.
    pub(super) fn new(engine: &Engine, component: &[u8]) -> Self {
        let mut compatible = Sha256Hasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut compatible);
        let engine = hex(&compatible.0.finalize()[..16]);
        Self(format!("{}-{engine}", hex(&Sha256::digest(component))))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Feeds what is hashed to SHA-256, so that the result is the same in every process.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        // Not used: the whole digest is taken.
        0
    }
}

impl Cache {
    /// The cache in this directory, which is made where it is missing. `Err` says why it cannot be used.
    pub(super) fn open(dir: &Path) -> Result<Self, String> {
        let failed = |cause: io::Error| format!("{}: {cause}", dir.display());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(failed)?;
        let found = fs::metadata(dir).map_err(failed)?;
        owned(&found).map_err(|why| format!("{}: {why}", dir.display()))?;
        Ok(Self { dir: dir.to_owned() })
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.dir.join(&key.0).with_extension(EXTENSION)
    }

    /// The compiled component of this key; `None` where there is none. `Err` says why the one there is was not used.
    pub(super) fn load(&self, engine: &Engine, key: &Key) -> Result<Option<Component>, String> {
        let path = self.path(key);
        let failed = |why: String| format!("{}: {why}", path.display());
        let file = match open_file(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        };
        let found = file.metadata().map_err(|error| failed(error.to_string()))?;
        if !found.is_file() {
            return Err(failed("not a file".into()));
        }
        owned(&found).map_err(failed)?;
        // By its descriptor, so that what is mapped is what was checked.
        let opened = Path::new(DESCRIPTORS).join(file.as_raw_fd().to_string());
        // SAFETY: the file must hold what `Component::serialize` wrote, unchanged while it is mapped. It was opened without following a
        // link, belongs to this user, and nobody else may write to it or to its directory; this host only ever puts whole files in place
        // by renaming. A file of another engine or version, or a cut one, is refused by wasmtime's own checks. Someone who can write as
        // this user can run code as this user without the cache.
        let component = unsafe { Component::deserialize_file(engine, opened) };
        component.map(Some).map_err(|error| failed(error.to_string()))
    }

    /// Puts a compiled component in its place. `Err` says why it is not kept.
    pub(super) fn store(&self, key: &Key, component: &Component) -> Result<(), String> {
        let path = self.path(key);
        let failed = |why: String| format!("{}: {why}", path.display());
        let bytes = component.serialize().map_err(|error| failed(error.to_string()))?;
        self.write(&path, &bytes).map_err(|error| failed(error.to_string()))?;
        self.prune().map_err(|error| failed(error.to_string()))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // Mode 0600, removed if it does not get to be renamed.
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.dir)?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    }

    /// Keeps the cache bounded.
    fn prune(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                // One that another host just removed counts as the oldest.
                let written = fs::symlink_metadata(&path).and_then(|found| found.modified());
                files.push((written.unwrap_or(SystemTime::UNIX_EPOCH), path));
            }
        }
        files.sort();
        let excess = files.len().saturating_sub(MOST_FILES);
        for (_, path) in files.into_iter().take(excess) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    // Without NONBLOCK, a FIFO in the file's place would wait for a writer.
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn owned(found: &fs::Metadata) -> Result<(), String> {
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to another user ({})", found.uid()));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(format!("others may write to it (mode {:o})", found.mode() & 0o7777));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;
    use crate::Limits;

    const COMPONENT: &str = "(component)";

    fn cache() -> (tempfile::TempDir, Cache, Engine, Key) {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path()).unwrap();
        let engine = super::super::engine::pooled(&Limits::default()).unwrap();
        let key = Key::new(&engine, COMPONENT.as_bytes());
        (dir, cache, engine, key)
    }

    fn component(engine: &Engine) -> Component {
        Component::new(engine, wat::parse_str(COMPONENT).unwrap()).unwrap()
    }

    #[test]
    fn w_06_code_of_another_engine_is_refused() {
        let (_dir, cache, engine, key) = cache();
        let other = Engine::default();
        assert_ne!(key.0, Key::new(&other, COMPONENT.as_bytes()).0);
        fs::write(cache.path(&key), component(&other).serialize().unwrap()).unwrap();
        fs::set_permissions(cache.path(&key), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(cache.load(&engine, &key).is_err());
        cache.store(&key, &component(&engine)).unwrap();
        assert!(cache.load(&engine, &key).unwrap().is_some());
    }

    #[test]
    fn w_06_what_belongs_to_somebody_else_is_refused() {
        let (dir, ..) = cache();
        let mut theirs = PathBuf::from("/");
        if rustix::process::geteuid().is_root() {
            theirs = dir.path().join("theirs");
            fs::write(&theirs, "").unwrap();
            chown(&theirs, Some(65534), None).unwrap();
        }
        let why = owned(&fs::metadata(theirs).unwrap()).unwrap_err();
        assert!(why.starts_with("it belongs to another user"), "{why}");
    }

    #[test]
    fn the_files_written_longest_ago_go_when_there_are_too_many() {
        let (dir, cache, engine, key) = cache();
        for n in 0..MOST_FILES {
            let file = File::create(dir.path().join(format!("{n:03}.cwasm"))).unwrap();
            let written = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(n as u64);
            file.set_modified(written).unwrap();
        }
        cache.store(&key, &component(&engine)).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), MOST_FILES);
        assert!(!dir.path().join("000.cwasm").exists());
        assert!(dir.path().join("001.cwasm").exists());
    }
}
