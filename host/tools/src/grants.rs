//! What tools may touch: nothing that is not granted here.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    time::Duration,
};

use capsule_api::{ByteSize, Error, HumanDuration, Secret};

use crate::{Warning, codes};

/// Whether a granted directory may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Read only.
    Ro,
    /// Read and write.
    Rw,
}

/// A directory that tools see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preopen {
    /// The directory on this machine. It must exist when the tools are loaded.
    pub host: PathBuf,
    /// Where tools see it; unique among the grants.
    pub guest: String,
    /// Whether it may be changed.
    pub mode: Mode,
}

/// Limits of every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of one call in bytes, all of its memories together; 64 KiB to 4 GiB.
    pub memory: u64,
    /// Wall-clock time of one call, without the time it waits to begin or for the caller's answer; more than zero.
    pub deadline: Duration,
    /// Bytes of a result, of standard output and of streamed text, each; 1 KiB to 1 GiB.
    pub output: u64,
    /// Calls that may run at once; 1 to 1024. Others wait.
    pub concurrent_calls: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            deadline: Duration::from_secs(60),
            output: 1 << 20,
            concurrent_calls: 16,
        }
    }
}

/// All that the tools of a capsule are granted. The default grants nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Directories.
    pub filesystem: Vec<Preopen>,
    /// Names of environment variables.
    pub env: Vec<String>,
    /// Limits of each call.
    pub limits: Limits,
}

/// Grants that were checked against this machine.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) filesystem: Vec<Preopen>,
    pub(crate) env: Vec<(String, Secret)>,
    pub(crate) limits: Limits,
}

impl Checked {
    /// No grant at all.
    pub(crate) fn nothing(limits: Limits) -> Self {
        Self {
            filesystem: Vec::new(),
            env: Vec::new(),
            limits,
        }
    }
}

impl Grants {
    /// Checks every grant and reports all that is wrong at once.
    pub(crate) fn check(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Checked, Vec<Error>> {
        let mut errors = self.limits.check();
        let mut guests = BTreeSet::new();
        let mut filesystem = Vec::new();
        for grant in &self.filesystem {
            match grant.check(&mut guests) {
                Ok(checked) => filesystem.push(checked),
                Err(error) => errors.push(error),
            }
        }
        let mut values = Vec::new();
        for name in &self.env {
            if !is_variable(name) {
                let message = format!("`{name}` is not the name of an environment variable");
                errors.push(Error::new(&codes::GRANT_ENV, message));
            } else if let Some(value) = env(name) {
                values.push((name.clone(), Secret::new(value)));
            } else {
                let message = format!("the environment variable {name} is granted to the tools but not set");
                warnings.push(Warning::new(codes::ENV_UNSET, message));
            }
        }
        if errors.is_empty() {
            let limits = self.limits;
            Ok(Checked {
                filesystem,
                env: values,
                limits,
            })
        } else {
            Err(errors)
        }
    }
}

fn is_variable(name: &str) -> bool {
    let first = name.chars().next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Limits {
    pub(crate) fn check(&self) -> Vec<Error> {
        let size = |bytes| ByteSize(bytes).to_string();
        let ranges = [
            ("memory", self.memory, 64 << 10, 4 << 30, size as fn(u64) -> String),
            ("output", self.output, 1 << 10, 1 << 30, size),
            ("concurrent_calls", self.concurrent_calls.into(), 1, 1024, |count| {
                count.to_string()
            }),
        ];
        let mut errors = Vec::new();
        for (name, value, least, most, show) in ranges {
            if !(least..=most).contains(&value) {
                let (value, least, most) = (show(value), show(least), show(most));
                let message = format!("`limits.{name}` is {value}; it must be from {least} to {most}");
                errors.push(Error::new(&codes::LIMITS, message));
            }
        }
        if self.deadline.is_zero() {
            let message = format!(
                "`limits.deadline` is {}; a call needs some time",
                HumanDuration(self.deadline)
            );
            errors.push(Error::new(&codes::LIMITS, message));
        }
        errors
    }
}

impl Preopen {
    fn check(&self, guests: &mut BTreeSet<String>) -> Result<Self, Error> {
        let error = |what: &str| {
            let message = format!("the grant of {} at `{}`: {what}", self.host.display(), self.guest);
            Error::new(&codes::GRANT_DIRECTORY, message).with("path", self.host.display().to_string())
        };
        if self.guest.is_empty() {
            return Err(error("`at` is empty"));
        }
        // `/data` and `/data/` are one place to a guest.
        let place = match self.guest.trim_end_matches('/') {
            "" => "/",
            trimmed => trimmed,
        };
        if !guests.insert(place.to_owned()) {
            return Err(error("another grant has the same `at`"));
        }
        let host =
            fs::canonicalize(&self.host).map_err(|cause| error(&format!("the directory cannot be found: {cause}")))?;
        if let Some(kind) = not_a_directory(&host).map_err(|cause| error(&cause.to_string()))? {
            return Err(error(&format!("it is {kind}, not a directory")));
        }
        Ok(Self {
            host,
            guest: place.to_owned(),
            mode: self.mode,
        })
    }
}

/// What the path is, unless it is a directory. A FIFO or device as a root would hold a host thread for ever.
fn not_a_directory(path: &Path) -> std::io::Result<Option<&'static str>> {
    let kind = fs::metadata(path)?.file_type();
    Ok(match () {
        () if kind.is_dir() => None,
        () if kind.is_file() => Some("a file"),
        () if kind.is_fifo() => Some("a FIFO"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a device"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preopen(host: &Path, guest: &str) -> Preopen {
        Preopen {
            host: host.to_owned(),
            guest: guest.to_owned(),
            mode: Mode::Ro,
        }
    }

    #[test]
    fn everything_that_is_wrong_is_reported_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let missing = dir.path().join("missing");
        let fifo = dir.path().join("fifo");
        let (mode, kind) = (rustix::fs::Mode::RUSR, rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
        let grants = Grants {
            filesystem: vec![
                preopen(dir.path(), "/data"),
                preopen(dir.path(), "/data/"),
                preopen(&file, "/file"),
                preopen(Path::new("/dev/null"), "/null"),
                preopen(&fifo, "/fifo"),
                preopen(&missing, "/missing"),
            ],
            env: vec!["API_*".into()],
            limits: Limits {
                concurrent_calls: 0,
                ..Limits::default()
            },
        };
        let errors = grants.check(&|_| None, &mut Vec::new()).unwrap_err();
        let messages: Vec<_> = errors.iter().map(|error| error.message.clone()).collect();
        let dir = dir.path().display();
        assert_eq!(
            messages,
            [
                "`limits.concurrent_calls` is 0; it must be from 1 to 1024".to_owned(),
                format!("the grant of {dir} at `/data/`: another grant has the same `at`"),
                format!("the grant of {dir}/file at `/file`: it is a file, not a directory"),
                "the grant of /dev/null at `/null`: it is a device, not a directory".to_owned(),
                format!("the grant of {dir}/fifo at `/fifo`: it is a FIFO, not a directory"),
                format!(
                    "the grant of {dir}/missing at `/missing`: the directory cannot be found: No such file or directory (os error 2)"
                ),
                "`API_*` is not the name of an environment variable".to_owned(),
            ]
        );
    }

    #[test]
    fn a_variable_that_is_not_set_is_a_warning_and_values_stay_hidden() {
        let grants = Grants {
            env: vec!["SET_TOKEN".into(), "UNSET".into()],
            ..Grants::default()
        };
        let mut warnings = Vec::new();
        let lookup = |name: &str| (name == "SET_TOKEN").then(|| "hunter2".to_owned());
        let checked = grants.check(&lookup, &mut warnings).unwrap();
        assert_eq!(checked.env, [("SET_TOKEN".to_owned(), Secret::new("hunter2"))]);
        assert!(!format!("{checked:?}").contains("hunter2"));
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].code, codes::ENV_UNSET);
    }
}
