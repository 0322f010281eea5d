//! The credential file in the person's own home: found, read, locked, replaced.

use std::{
    env,
    ffi::OsString,
    fmt, fs,
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use capsule_api::Error;
use rustix::fs::FlockOperation;
use serde_json::{Map, Value};

use super::format::{Format, Grant};
use crate::codes;

/// A credential file that is larger is none.
const MOST_BYTES: u64 = 1 << 20;

/// How long the lock on a file's directory may be taken: it is held for a copy only.
const LOCK_TRIES: (u32, Duration) = (50, Duration::from_millis(20));

/// The CLI's own login of the person who runs the host.
#[derive(Clone)]
pub struct Original {
    path: PathBuf,
    format: &'static Format,
}

/// A file as it was read.
pub(super) struct Content {
    pub(super) all: Map<String, Value>,
    access: Access,
}

/// Whose a file is, and who may do what with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    mode: u32,
    /// User and group; whoever writes the file where it is not said.
    owner: Option<(u32, u32)>,
}

impl Access {
    /// For this user alone.
    pub(super) const PRIVATE: Self = Self {
        mode: 0o600,
        owner: None,
    };

    fn of(file: &fs::Metadata) -> Self {
        Self {
            mode: file.mode() & 0o777,
            owner: Some((file.uid(), file.gid())),
        }
    }

    /// Gives it to a file of this user's. One that would be somebody else's fails where this user may not give it to them; one of another
    /// group is then nobody's but its owner's.
    fn give_to(self, file: &fs::File) -> io::Result<()> {
        let mut mode = self.mode;
        let about = file.metadata()?;
        if let Some((user, group)) = self.owner {
            if user != about.uid() {
                fchown(file, Some(user), None)?;
            }
            if group != about.gid() && fchown(file, None, Some(group)).is_err() {
                mode &= !0o070;
            }
        }
        file.set_permissions(fs::Permissions::from_mode(mode))
    }
}

/// Held for as long as a file is read or replaced. The kernel lets go of it when its owner dies.
pub(super) struct Lock {
    _directory: fs::File,
}

/// The right to have the login renewed; held by one run at a time.
pub(super) struct Renewal {
    _file: fs::File,
}

impl Original {
    /// The file in `named`, or else where the CLI keeps it: in the directory that its variable names, or below the person's home. A link
    /// is followed to the file, so that the link stays when the file is replaced. Blocks on the file system.
    ///
    /// # Errors
    /// [`codes::LOGIN_MISSING`] with the path and what to do.
    pub fn find(format: &'static Format, named: Option<&Path>) -> Result<Self, Error> {
        let missing = |message: String| Error::new(&codes::LOGIN_MISSING, message).hint(format.log_in);
        let directory = match named {
            Some(named) => Some(named.to_owned()),
            None => own_directory(format, |name| env::var_os(name)),
        };
        let Some(directory) = directory else {
            return Err(missing(format!(
                "neither `HOME` nor `{}` is set, so the login of `{}` cannot be found",
                format.variable, format.program
            )));
        };
        let path = directory.join(format.file);
        match fs::canonicalize(&path) {
            Ok(path) => Ok(Self { path, format }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(format!(
                "`{}` is not logged in: there is no {}",
                format.program,
                path.display()
            ))),
            Err(error) => Err(unreadable(&path, &error.to_string()).caused_by(error)),
        }
    }

    /// Where it is, links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its format is.
    pub(super) fn format(&self) -> &'static Format {
        self.format
    }

    /// What the login says about itself. Blocks on the file system.
    ///
    /// # Errors
    /// [`codes::LOGIN_UNREADABLE`] where the file is not one of a login.
    pub fn grant(&self) -> Result<Grant, Error> {
        self.read().and_then(|content| self.grant_in(&content))
    }

    /// A remark where others than its owner may read or write the file. Blocks on the file system.
    pub fn exposed(&self) -> Option<String> {
        let mode = fs::metadata(&self.path).ok()?.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then(|| {
            let path = self.path.display();
            format!(
                "{path} has the mode {mode:03o}, so others can get at the login; `chmod 600 {path}` keeps it to you"
            )
        })
    }

    pub(super) fn read(&self) -> Result<Content, Error> {
        let wrong = |why: &str| unreadable(&self.path, why).hint(self.format.log_in);
        let read = open(&self.path).and_then(read_whole);
        let (bytes, access) = read.map_err(|error| wrong(&error.to_string()).caused_by(error))?;
        // What the parser says may quote the file.
        let all: Map<String, Value> = serde_json::from_slice(&bytes).map_err(|_| wrong("it is not a JSON object"))?;
        Ok(Content { all, access })
    }

    pub(super) fn grant_in(&self, content: &Content) -> Result<Grant, Error> {
        let parts = self.format.parts_of(&content.all);
        let why = "it holds no login of a subscription";
        (self.format.grant)(&parts).ok_or_else(|| unreadable(&self.path, why).hint(self.format.log_in))
    }

    /// Puts these members into the file, as a whole or not at all. To be called under the lock.
    pub(super) fn replace(&self, before: &Content, parts: &Map<String, Value>) -> io::Result<()> {
        let mut all = before.all.clone();
        all.extend(parts.iter().map(|(key, value)| (key.clone(), value.clone())));
        replace(&self.path, &all, before.access)
    }

    /// Takes the lock on the file's directory: the file itself is replaced by others, so it cannot hold one.
    pub(super) fn lock(&self) -> Result<Lock, Error> {
        let busy = |why: &dyn fmt::Display| {
            let message = format!("the login in {} cannot be locked: {why}", self.path.display());
            Error::new(&codes::LOGIN_BUSY, message).retry(capsule_api::Retry::Later)
        };
        let directory = fs::File::open(self.directory()).map_err(|error| busy(&error))?;
        for _ in 0..LOCK_TRIES.0 {
            match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock { _directory: directory }),
                Err(rustix::io::Errno::WOULDBLOCK) => thread::sleep(LOCK_TRIES.1),
                Err(error) => return Err(busy(&error)),
            }
        }
        Err(busy(&"another run keeps it"))
    }

    /// Takes the right to have the login renewed, where no other run has it. To be called under the lock, so that the file is the one
    /// that the path names.
    pub(super) fn try_renewal(&self) -> io::Result<Option<Renewal>> {
        let file = open(&self.path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Renewal { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what a host that died here has left. To be called under the lock: whoever writes has it.
    pub(super) fn sweep(&self) {
        let start = half_written(&self.path);
        for entry in fs::read_dir(self.directory()).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&start)
                && let Err(error) = fs::remove_file(entry.path())
            {
                tracing::warn!(%error, path = %entry.path().display(), "a half-written login could not be removed");
            }
        }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// Shows where it is and nothing of it.
impl fmt::Debug for Original {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Original").field(&self.path).finish()
    }
}

/// The directory that the CLI would use for this person.
fn own_directory(format: &Format, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(format.variable).or_else(|| Some(set("HOME")?.join(format.directory)))
}

/// How the names of files start that were not yet put into their place. Those are removed, so it is nothing that a person would choose.
fn half_written(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}.capsule-half-written-")
}

/// Opens a credential file. A link is not followed: the path of an original has none, and what a program has put into the place of its copy
/// is not what was lent. A pipe or a device is refused instead of waited for.
pub(super) fn open(path: &Path) -> io::Result<fs::File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a file"))
    }
}

/// All of a credential file.
pub(super) fn read_whole(file: fs::File) -> io::Result<(Vec<u8>, Access)> {
    let access = Access::of(&file.metadata()?);
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok((bytes, access))
}

/// Replaces a file as a whole: written beside it, forced to disk, renamed over it.
pub(super) fn replace(path: &Path, content: &Map<String, Value>, access: Access) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new()
        .prefix(&half_written(path))
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(directory)?;
    let mut text = serde_json::to_vec_pretty(content)?;
    text.push(b'\n');
    file.write_all(&text)?;
    access.give_to(file.as_file())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    fs::File::open(directory)?.sync_all()
}

fn unreadable(path: &Path, why: &str) -> Error {
    Error::new(
        &codes::LOGIN_UNREADABLE,
        format!("the login in {} cannot be used: {why}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format {
        program: "agent",
        file: "login.json",
        variable: "AGENT_HOME",
        directory: ".agent",
        parts: &[],
        grant: |_| None,
        log_in: "run `agent login`",
    };

    #[test]
    fn the_login_is_looked_for_where_the_cli_keeps_it() {
        let table = [
            (Some("/elsewhere"), Some("/home/me"), Some("/elsewhere")),
            (Some(""), Some("/home/me"), Some("/home/me/.agent")),
            (None, Some("/home/me"), Some("/home/me/.agent")),
            (None, None, None),
        ];
        for (own, home, found) in table {
            let variable = |name: &str| if name == "HOME" { home } else { own }.map(OsString::from);
            assert_eq!(own_directory(&FORMAT, variable), found.map(PathBuf::from));
        }
    }
}
