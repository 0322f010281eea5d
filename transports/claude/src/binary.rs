//! Finds the CLI and asks its version, once per binary.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use capsule_api::{Clock, Error, Settings};
use capsule_transport_process::{CliSettings, Identity, Known, Locate, Program, RunDir, Versions, ask};
use semver::Version;

use crate::codes;

/// The oldest version whose containment was seen to hold, and the newest that was tested.
pub(crate) const VERSIONS: Versions = Versions {
    oldest: Version::new(2, 1, 332),
    newest_tested: Version::new(2, 1, 332),
};

static LOCATE: Locate = Locate {
    behind_script,
    not_found: &codes::NOT_FOUND,
    wrapper: &codes::WRAPPER,
};

/// A CLI that may be run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Binary {
    pub(crate) path: PathBuf,
    pub(crate) version: Version,
}

impl Binary {
    /// Finds the command, and refuses a wrapper script without its binary and a version that is too old.
    pub(crate) async fn find(config: &CliSettings, settings: &Settings, clock: &dyn Clock) -> Result<Self, Error> {
        let identity = LOCATE.binary(config, settings).await?;
        let version = version_of(&identity, clock).await?;
        if version < VERSIONS.oldest {
            let (path, oldest) = (identity.path.display(), VERSIONS.oldest);
            let message = format!("{path} is version {version}; the oldest that is run is {oldest}");
            return Err(Error::new(&codes::TOO_OLD, message));
        }
        Ok(Self {
            path: identity.path,
            version,
        })
    }

    /// A remark for people, where the version is newer than those tested.
    pub(crate) fn untested(&self) -> Option<String> {
        VERSIONS.untested(&self.version)
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

/// The binaries that the package `@anthropic-ai/claude-code` may start: the platform's package is beside it or below it.
fn behind_script(script: &Path) -> Vec<PathBuf> {
    let package = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "claude-code-linux-x64",
        ("linux", "aarch64") => "claude-code-linux-arm64",
        ("macos", "x86_64") => "claude-code-darwin-x64",
        ("macos", "aarch64") => "claude-code-darwin-arm64",
        _ => return Vec::new(),
    };
    let wrapper = script
        .ancestors()
        .find(|place| place.ends_with("@anthropic-ai/claude-code"));
    let places =
        wrapper.and_then(|wrapper| Some([wrapper.parent()?.to_owned(), wrapper.join("node_modules/@anthropic-ai")]));
    let binaries = places
        .into_iter()
        .flatten()
        .map(|place| place.join(package).join("claude"));
    binaries.collect()
}

async fn version_of(identity: &Identity, clock: &dyn Clock) -> Result<Version, Error> {
    static KNOWN: OnceLock<Known<Version>> = OnceLock::new();
    let known = KNOWN.get_or_init(Known::default);
    if let Some(version) = known.get(identity) {
        return Ok(version);
    }
    let unreadable = |why: &str| {
        let message = format!("{} --version: {why}", identity.path.display());
        Error::new(&codes::VERSION_UNREADABLE, message)
    };
    // A private home, gone afterwards.
    let place = tempfile::tempdir().map_err(|error| unreadable(&error.to_string()))?;
    let run = RunDir::create(place.path(), "probe")?;
    let program = Program::new(&identity.path, run.work())
        .arg("--version")
        .env("PATH", "/usr/bin:/bin")
        .mark("HOME", run.home())
        .env("CLAUDE_CONFIG_DIR", run.config())
        .mark("TMPDIR", run.tmp())
        .env("XDG_CACHE_HOME", run.cache())
        .env("DISABLE_AUTOUPDATER", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    let said = ask(program, clock).await?.map_err(|why| unreadable(&why))?;
    let version = parse(said.first()).ok_or_else(|| {
        let shown: String = said.first().chars().take(200).collect();
        unreadable(&format!("it says {shown:?}"))
    })?;
    known.insert(identity.clone(), version.clone());
    Ok(version)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
    fn p_18_a_wrapper_script_stands_for_its_binary_and_is_refused_without_it() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("node_modules/@anthropic-ai/claude-code/cli.js");
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::write(&script, "#!/usr/bin/env node\n").unwrap();
        let error = LOCATE.find("claude", Some(script.clone())).unwrap_err();
        assert_eq!(error.code, "claude-wrapper");
        assert!(
            error.hint.contains("@anthropic-ai/claude-code-linux-x64"),
            "{}",
            error.hint
        );
        for binary in behind_script(&fs::canonicalize(&script).unwrap()) {
            fs::create_dir_all(binary.parent().unwrap()).unwrap();
            fs::write(&binary, b"\x7fELF and more").unwrap();
            assert_eq!(LOCATE.find("claude", Some(script.clone())).unwrap().path, binary);
            fs::remove_file(&binary).unwrap();
        }
    }
}
