//! Finds the CLI and asks its version, once per binary.

use std::{
    collections::HashMap,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, SystemTime},
};

use capsule_api::{Clock, Error, Settings, timeout};
use capsule_transport_process::{Child, Line, Program, RunDir};
use semver::Version;

use crate::codes;

/// The oldest version whose containment was seen to hold.
pub(crate) const OLDEST: Version = Version::new(2, 1, 332);
/// The newest version that was tested.
pub(crate) const NEWEST_TESTED: Version = Version::new(2, 1, 332);

/// How long `--version` may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A CLI that may be run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Binary {
    pub(crate) path: PathBuf,
    pub(crate) version: Version,
}

/// What makes a binary the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    path: PathBuf,
    size: u64,
    modified: Option<SystemTime>,
}

impl Binary {
    /// Finds the command, and refuses a wrapper script and a version that is too old.
    pub(crate) async fn find(command: &str, settings: &Settings, clock: &dyn Clock) -> Result<Self, Error> {
        let named = if command.contains('/') {
            Some(settings.path("command", Path::new(command))?)
        } else {
            None
        };
        let command = command.to_owned();
        let located = tokio::task::spawn_blocking(move || locate(&command, named)).await;
        let identity = located.expect("looking for a file does not panic")?;
        let version = version_of(&identity, clock).await?;
        if version < OLDEST {
            let message = format!(
                "{} is version {version}; the oldest that is run is {OLDEST}",
                identity.path.display()
            );
            return Err(Error::new(&codes::TOO_OLD, message));
        }
        Ok(Self {
            path: identity.path,
            version,
        })
    }

    /// A remark for people, where the version is newer than those tested.
    pub(crate) fn untested(&self) -> Option<String> {
        (self.version > NEWEST_TESTED).then(|| {
            format!(
                "the CLI is version {}; the newest that was tested is {NEWEST_TESTED}",
                self.version
            )
        })
    }
}

/// Whether a program, by what it prints for `--version` or else by its name, is this CLI.
pub(crate) fn recognises(path: &Path, version: Option<&str>) -> bool {
    match version {
        Some(text) => parse(text).is_some(),
        None => path.file_stem().is_some_and(|name| name == "claude"),
    }
}

/// `2.1.332 (Claude Code)`.
fn parse(text: &str) -> Option<Version> {
    let (version, name) = text.trim().split_once(' ')?;
    (name == "(Claude Code)").then(|| Version::parse(version).ok())?
}

fn locate(command: &str, named: Option<PathBuf>) -> Result<Identity, Error> {
    let not_found = |why: String| Error::new(&codes::NOT_FOUND, why);
    let found = match named {
        Some(path) => path,
        None => which::which(command).map_err(|_| not_found(format!("no program `{command}` is in PATH")))?,
    };
    let read = |path: &Path| -> io::Result<(Identity, [u8; 4])> {
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
    };
    let (identity, magic) = read(&found).map_err(|error| {
        let message = format!("{} cannot be read: {error}", found.display());
        not_found(message).caused_by(error)
    })?;
    if is_native(magic) {
        return Ok(identity);
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

/// ELF, or Mach-O in its 64-bit or universal form.
fn is_native(magic: [u8; 4]) -> bool {
    matches!(
        magic,
        [0x7f, b'E', b'L', b'F'] | [0xcf, 0xfa, 0xed, 0xfe] | [0xca, 0xfe, 0xba, 0xbe]
    )
}

async fn version_of(identity: &Identity, clock: &dyn Clock) -> Result<Version, Error> {
    static KNOWN: OnceLock<Mutex<HashMap<Identity, Version>>> = OnceLock::new();
    let known = || {
        let known = KNOWN.get_or_init(Mutex::default);
        known.lock().unwrap_or_else(PoisonError::into_inner)
    };
    if let Some(version) = known().get(identity) {
        return Ok(version.clone());
    }
    let answer = ask_version(&identity.path, clock).await?;
    let version = parse(&answer).ok_or_else(|| {
        let shown: String = answer.chars().take(200).collect();
        let message = format!("{} --version printed {shown:?}", identity.path.display());
        Error::new(&codes::VERSION_UNREADABLE, message)
    })?;
    let mut known = known();
    // A host meets one or two binaries. The bound is for one whose file changes for ever.
    if known.len() >= 16 {
        known.clear();
    }
    known.insert(identity.clone(), version.clone());
    Ok(version)
}

/// The first line that `--version` prints, in a private home that is gone afterwards.
async fn ask_version(path: &Path, clock: &dyn Clock) -> Result<String, Error> {
    let private = tempfile::tempdir().map_err(|error| {
        let message = format!("no temporary directory could be made: {error}");
        Error::new(&capsule_transport_process::codes::RUN_DIR, message).caused_by(error)
    })?;
    let run = RunDir::create(private.path(), "probe")?;
    let program = Program::new(path, run.work())
        .arg("--version")
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", run.home())
        .env("CLAUDE_CONFIG_DIR", run.config())
        .env("TMPDIR", run.tmp())
        .env("XDG_CACHE_HOME", run.cache())
        .env("DISABLE_AUTOUPDATER", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    let mut child = Child::spawn(program).await?;
    child.close_input();
    let first = timeout(clock, PATIENCE, child.next_line(clock)).await;
    child.stop(clock, &[]).await;
    match first {
        Ok(Ok(Some(Line::Text { text, .. }))) => Ok(text),
        Ok(Ok(_)) => Ok(child.stderr_tail(clock).await),
        Ok(Err(error)) => Err(unreadable(path, &error.to_string())),
        Err(_) => Err(unreadable(path, "it did not answer within 20 s")),
    }
}

fn unreadable(path: &Path, why: &str) -> Error {
    Error::new(
        &codes::VERSION_UNREADABLE,
        format!("{} --version: {why}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_version_line_is_read_and_nothing_like_it() {
        assert_eq!(parse("2.1.332 (Claude Code)\n"), Some(Version::new(2, 1, 332)));
        for other in ["2.1.332", "codex-cli 0.171.0", "2.1 (Claude Code)", ""] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_program_is_recognised_by_its_version_before_its_name() {
        assert!(recognises(Path::new("/opt/x"), Some("2.1.332 (Claude Code)")));
        assert!(!recognises(Path::new("/opt/claude"), Some("codex-cli 0.171.0")));
        assert!(recognises(Path::new("/opt/claude"), None));
    }

    #[test]
    fn p_18_a_wrapper_script_is_refused_with_the_package_to_use() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("claude");
        fs::write(&script, "#!/usr/bin/env node\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let error = locate("claude", Some(script)).unwrap_err();
        assert_eq!(error.code, "claude-wrapper");
        assert!(
            error.hint.contains("@anthropic-ai/claude-code-linux-x64"),
            "{}",
            error.hint
        );
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = locate("no-such-program-here", None).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            ("claude-not-found", "no program `no-such-program-here` is in PATH")
        );
    }
}
