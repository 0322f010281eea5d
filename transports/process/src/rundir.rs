//! The private directories of a run.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use capsule_api::Error;

use crate::codes;

/// Home, configuration, login, temporary and cache directory and an empty working directory of one program, all 0700 below one directory.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
}

impl RunDir {
    /// Makes the directories in a new one below `parent`, whose name starts with `name`. Blocks on the file system.
    ///
    /// # Errors
    /// [`codes::RUN_DIR`] with the path.
    pub fn create(parent: &Path, name: &str) -> Result<Self, Error> {
        // Short: sockets are made below it, and their paths have 107 bytes.
        let id = uuid::Uuid::new_v4().simple().to_string();
        let root = parent.join(format!("{name}-{}", &id[..8]));
        let run = Self { root };
        for directory in [
            run.path(),
            &run.home(),
            &run.config(),
            &run.login(),
            &run.tmp(),
            &run.cache(),
            &run.work(),
        ] {
            let made = fs::DirBuilder::new().mode(0o700).create(directory);
            made.map_err(|error| failed("created", directory, error))?;
        }
        Ok(run)
    }

    /// The directory that holds the others.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// For `HOME`.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// For the program's configuration.
    pub fn config(&self) -> PathBuf {
        self.root.join("config")
    }

    /// For a lent login. In the run also where the context is kept, so that no login outlives it.
    pub fn login(&self) -> PathBuf {
        self.root.join("login")
    }

    /// For `TMPDIR`.
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// For `XDG_CACHE_HOME`.
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    /// The working directory; empty.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Writes a new file, readable by this user alone (0600). Blocks on the file system.
    ///
    /// # Errors
    /// [`codes::RUN_DIR`] with the path; also where the file exists.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, Error> {
        use io::Write;
        let path = self.root.join(name);
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(content))
            .map_err(|error| failed("written", &path, error))?;
        Ok(path)
    }

    /// Removes everything. Blocks on the file system.
    ///
    /// # Errors
    /// What is left, and why.
    pub fn remove(self) -> Result<(), (PathBuf, io::Error)> {
        match fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err((self.root, error)),
            _ => Ok(()),
        }
    }
}

/// Makes a directory for this user alone (0700) where there is none yet. Blocks on the file system.
///
/// # Errors
/// [`codes::RUN_DIR`] with the path; also where its parent is missing.
pub fn private_dir(path: &Path) -> Result<(), Error> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed("created", path, error)),
        _ => Ok(()),
    }
}

fn failed(done: &str, path: &Path, error: io::Error) -> Error {
    let message = format!("{} could not be {done}: {error}", path.display());
    Error::new(&codes::RUN_DIR, message).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn directories_and_files_are_for_one_user_and_go_again() {
        let parent = tempfile::tempdir().unwrap();
        let run = RunDir::create(parent.path(), "agent").unwrap();
        let file = run.write("mcp.json", b"{}").unwrap();
        let modes = [
            run.path(),
            &run.home(),
            &run.config(),
            &run.login(),
            &run.tmp(),
            &run.cache(),
            &run.work(),
            &file,
        ]
        .map(mode);
        assert_eq!(modes, [0o700, 0o700, 0o700, 0o700, 0o700, 0o700, 0o700, 0o600]);
        assert_eq!(run.write("mcp.json", b"{}").unwrap_err().code, codes::RUN_DIR.id);
        run.remove().unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_parent_that_is_missing_is_named() {
        let error = RunDir::create(Path::new("/nonexistent"), "agent").unwrap_err();
        assert!(error.message.starts_with("/nonexistent/agent-"), "{}", error.message);
    }
}
