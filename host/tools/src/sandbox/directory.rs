//! Opens granted directories at each call, without following links.
//!
//! A grant's path was resolved when it was checked. A tool that may write above it can put a link in its place since then, and a call that
//! followed the link would be given what nobody granted.

use std::{
    fs::File,
    io,
    os::fd::AsRawFd as _,
    path::{Component, Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, open, openat};

/// Where open files can be opened again.
pub(super) const DESCRIPTORS: &str = if cfg!(target_os = "linux") {
    "/proc/self/fd"
} else {
    "/dev/fd"
};

/// A directory that is held open.
pub(super) struct Directory(File);

impl Directory {
    /// Opens a directory by its whole path, of which no part may be a link.
    ///
    /// # Errors
    /// `ENOTDIR` where a part is a link or another file; else what the system says.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | PATH_ONLY;
        let mut at = open("/", flags, Mode::empty())?;
        for part in path.components() {
            match part {
                Component::RootDir => {}
                Component::Normal(name) => at = openat(&at, name, flags, Mode::empty())?,
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        Ok(Self(at.into()))
    }

    /// A path that leads to it, wherever it is by now. It holds as long as this does.
    pub(super) fn path(&self) -> PathBuf {
        Path::new(DESCRIPTORS).join(self.0.as_raw_fd().to_string())
    }
}

/// Walking needs no right to read what is on the way.
#[cfg(target_os = "linux")]
const PATH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PATH_ONLY: OFlags = OFlags::empty();

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_path_is_opened_only_where_no_part_of_it_is_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::create_dir_all(dir.join("a/b")).unwrap();
        fs::write(dir.join("a/b/file"), "x").unwrap();
        symlink("a", dir.join("link")).unwrap();
        symlink("b", dir.join("a/last")).unwrap();

        let opened = Directory::open(&dir.join("a/b")).unwrap();
        assert_eq!(fs::read_to_string(opened.path().join("file")).unwrap(), "x");
        let refused = |path: &str| Directory::open(&dir.join(path)).map(drop).unwrap_err().kind();
        for path in ["link/b", "a/last", "a/b/file"] {
            assert_eq!(refused(path), io::ErrorKind::NotADirectory, "{path}");
        }
        assert_eq!(refused("a/c"), io::ErrorKind::NotFound);
        assert_eq!(refused("a/../a"), io::ErrorKind::InvalidInput);
    }
}
