//! What tools may touch: nothing that is not granted here.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    time::Duration,
};

use capsule_api::{ByteSize, Error, HumanDuration, Secret, Secrets};

use crate::{Warning, codes, source};

mod narrow;
pub(crate) mod network;
mod secrets;
mod words;

pub use narrow::{NarrowedLimits, Narrowing};
pub use secrets::SecretGrant;

use network::Pattern;
pub(crate) use secrets::Gateway;

/// Whether a granted directory may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Read only.
    Ro,
    /// Read and write.
    Rw,
}

impl Mode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ro => "ro",
            Self::Rw => "rw",
        }
    }
}

/// What the clocks of tools show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockGrant {
    /// The machine's time.
    #[default]
    System,
    /// Always this time, since 1970 in UTC; the monotonic clock begins at zero and goes a millisecond on at each look. Waiting takes real
    /// time all the same.
    Fixed(Duration),
}

/// Where the random numbers of tools come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RandomGrant {
    /// The system's generator.
    #[default]
    System,
    /// The same numbers in each call, made from this seed; they repeat after 4 KiB. For tests: nothing that comes of them is secret.
    Seeded(u64),
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
    /// Bytes of a result, of standard output, of streamed text (32 more for each piece) and of the arguments of a call that a tool makes, each;
    /// 1 KiB to 1 GiB.
    pub output: u64,
    /// Elements of all tables of one call together; 1 to 200,000.
    pub table_elements: u32,
    /// Core instances of one call; 1 to 10,000.
    pub instances: u32,
    /// Bytes of the body of one HTTP request, and of one response; 0 to 1 GiB.
    pub http_body: u64,
    /// Calls that may run at once; 1 to 1024. Others wait.
    pub concurrent_calls: u32,
    /// Calls of tools that may be inside one another, the model's included; 1 to 8.
    pub registry_depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            deadline: Duration::from_secs(60),
            output: 1 << 20,
            table_elements: 20_000,
            instances: 1000,
            http_body: 10 << 20,
            concurrent_calls: 16,
            registry_depth: 4,
        }
    }
}

/// All that the tools of a capsule are granted. The default grants nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Directories.
    pub filesystem: Vec<Preopen>,
    /// Where HTTP requests may go: `scheme://host[:port]`, `host` or `*.host`, the last two over `https`.
    pub network: Vec<String>,
    /// Names of environment variables.
    pub env: Vec<String>,
    /// Credentials that the host attaches to requests.
    pub secrets: Vec<SecretGrant>,
    /// Limits of each call.
    pub limits: Limits,
    /// Time.
    pub clock: ClockGrant,
    /// Random numbers.
    pub random: RandomGrant,
}

/// Grants that were checked against this machine.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) filesystem: Vec<Preopen>,
    pub(crate) network: Vec<Pattern>,
    /// Those that are set.
    pub(crate) env: Vec<(String, Secret)>,
    /// Those that are granted, set or not.
    pub(crate) env_names: Vec<String>,
    pub(crate) secrets: Vec<Gateway>,
    pub(crate) limits: Limits,
    pub(crate) clock: ClockGrant,
    pub(crate) random: RandomGrant,
}

impl Checked {
    /// No grant at all.
    pub(crate) fn nothing(limits: Limits) -> Self {
        Self {
            filesystem: Vec::new(),
            network: Vec::new(),
            env: Vec::new(),
            env_names: Vec::new(),
            secrets: Vec::new(),
            limits,
            clock: ClockGrant::System,
            random: RandomGrant::System,
        }
    }
}

impl Checked {
    /// An error for each directory that lets tools write compiled components: the host maps and runs what is there.
    pub(crate) fn over_the_cache(&self, cache: &Path) -> Vec<Error> {
        let cache = really(cache);
        let written = self.filesystem.iter().filter(|grant| grant.mode == Mode::Rw);
        let over = written.filter(|grant| cache.starts_with(&grant.host) || grant.host.starts_with(&cache));
        let error = |grant: &Preopen| {
            let what = "tools could change compiled components there, which run outside the sandbox";
            grant.error(what).hint(
                "Grant a directory that does not hold the cache of this host (`$XDG_CACHE_HOME`, else `~/.cache`).",
            )
        };
        over.map(error).collect()
    }
}

/// Where a path leads that may not be there yet.
fn really(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = whole.ancestors().find_map(|above| {
        let rest = whole.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    });
    found.unwrap_or(whole)
}

impl Grants {
    /// Checks every grant and reports all that is wrong at once.
    pub(crate) fn check(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        secrets: Option<&dyn Secrets>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Checked, Vec<Error>> {
        let mut errors = self.limits.check();
        let mut checked = Checked {
            clock: self.clock,
            random: self.random,
            ..Checked::nothing(self.limits)
        };
        let mut guests = BTreeSet::new();
        for grant in &self.filesystem {
            match grant.check(&mut guests) {
                Ok(grant) => checked.filesystem.push(grant),
                Err(error) => errors.push(error),
            }
        }
        errors.extend(
            self.filesystem
                .iter()
                .filter_map(|grant| grant.led_out(&checked.filesystem)),
        );
        for text in &self.network {
            match Pattern::parse(text) {
                Ok(pattern) => checked.network.push(pattern),
                Err(why) => {
                    let message = format!("the grant of the network to `{text}`: {why}");
                    errors.push(Error::new(&codes::GRANT_NETWORK, message).with("host", text.clone()));
                }
            }
        }
        self.check_env(env, &mut checked, &mut errors, warnings);
        for grant in &self.secrets {
            match grant.check(&checked.network, secrets) {
                Ok(gateway) => checked.secrets.push(gateway),
                Err(more) => errors.extend(more),
            }
        }
        errors.extend(secrets::clashes(&checked.secrets));
        errors.extend(secrets::shown(&self.secrets, &self.env));
        if errors.is_empty() { Ok(checked) } else { Err(errors) }
    }

    fn check_env(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        checked: &mut Checked,
        errors: &mut Vec<Error>,
        warnings: &mut Vec<Warning>,
    ) {
        for name in &self.env {
            if !is_variable(name) {
                let message = format!("`{name}` is not the name of an environment variable");
                errors.push(Error::new(&codes::GRANT_ENV, message).with("variable", name.clone()));
                continue;
            }
            checked.env_names.push(name.clone());
            if let Some(value) = env(name) {
                checked.env.push((name.clone(), Secret::new(value)));
            } else {
                let message = format!("the environment variable {name} is granted to the tools but not set");
                warnings.push(Warning::new(codes::ENV_UNSET, message));
            }
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
        let number = |count: u64| count.to_string();
        let ranges = [
            ("memory", self.memory, 64 << 10, 4 << 30, size as fn(u64) -> String),
            ("output", self.output, 1 << 10, 1 << 30, size),
            ("http_body", self.http_body, 0, 1 << 30, size),
            ("table_elements", self.table_elements.into(), 1, 200_000, number),
            ("instances", self.instances.into(), 1, 10_000, number),
            ("registry_depth", self.registry_depth.into(), 1, 8, number),
            ("concurrent_calls", self.concurrent_calls.into(), 1, 1024, number),
        ];
        let mut errors = Vec::new();
        for (name, value, least, most, show) in ranges {
            if !(least..=most).contains(&value) {
                let (value, least, most) = (show(value), show(least), show(most));
                let message = format!("`limits.{name}` is {value}; it must be from {least} to {most}");
                errors.push(Error::new(&codes::LIMITS, message).with("limit", name));
            }
        }
        if self.deadline.is_zero() {
            let message = format!(
                "`limits.deadline` is {}; a call needs some time",
                HumanDuration(self.deadline)
            );
            errors.push(Error::new(&codes::LIMITS, message).with("limit", "deadline"));
        }
        errors
    }
}

impl Preopen {
    fn check(&self, guests: &mut BTreeSet<String>) -> Result<Self, Error> {
        let checked = self.check_place()?;
        if !guests.insert(checked.guest) {
            return Err(self.error("another grant has the same `at`"));
        }
        self.check_path()
    }

    fn error(&self, what: &str) -> Error {
        let message = format!("the grant of {} at `{}`: {what}", self.host.display(), self.guest);
        Error::new(&codes::GRANT_DIRECTORY, message).with("path", self.host.display().to_string())
    }

    /// The same with its place as guests see it.
    fn check_place(&self) -> Result<Self, Error> {
        if self.guest.is_empty() {
            return Err(self.error("`at` is empty"));
        }
        // `/data` and `/data/` are one place to a guest.
        let place = match self.guest.trim_end_matches('/') {
            "" => "/",
            trimmed => trimmed,
        };
        Ok(Self {
            guest: place.to_owned(),
            ..self.clone()
        })
    }

    /// The error of a path that begins inside a directory that tools may write, and leads out of it: a tool may have made the link.
    fn led_out(&self, granted: &[Self]) -> Option<Error> {
        let host = fs::canonicalize(&self.host).ok()?;
        let above = std::path::absolute(&self.host).ok()?;
        let above: Vec<PathBuf> = above
            .ancestors()
            .skip(1)
            .filter_map(|at| at.canonicalize().ok())
            .collect();
        let mut written = granted.iter().filter(|other| other.mode == Mode::Rw);
        let left = written.find(|other| above.contains(&other.host) && !host.starts_with(&other.host))?;
        let from = left.host.display();
        let what = format!(
            "it leads to {} by a link inside {from}, which tools may write",
            host.display()
        );
        Some(
            self.error(&what)
                .hint("Grant the directory itself, if the link is yours and not a tool's."),
        )
    }

    /// The same with the directory that is really there.
    fn check_path(&self) -> Result<Self, Error> {
        let found = |cause: std::io::Error| match source::dangling(&self.host, &cause) {
            Some(link) => self.error(&format!("it is {link}")).hint(source::COPY_WHOLE),
            None => self.error(&format!("the directory cannot be found: {cause}")),
        };
        let host = fs::canonicalize(&self.host).map_err(found)?;
        if let Some(kind) = not_a_directory(&host).map_err(|cause| self.error(&cause.to_string()))? {
            return Err(self.error(&format!("it is {kind}, not a directory")));
        }
        Ok(Self {
            host,
            ..self.check_place()?
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
            ..Grants::default()
        };
        let errors = grants.check(&|_| None, None, &mut Vec::new()).unwrap_err();
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
        let checked = grants.check(&lookup, None, &mut warnings).unwrap();
        assert_eq!(checked.env, [("SET_TOKEN".to_owned(), Secret::new("hunter2"))]);
        assert!(!format!("{checked:?}").contains("hunter2"));
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].code, codes::ENV_UNSET);
    }
}
