//! Asks the CLI what it is and what it knows, once per binary.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use capsule_api::{Clock, Error, Settings};
use capsule_transport_process::{CliSettings, Identity, Known, Locate, Program, RunDir, Said, Versions, ask};
use semver::Version;

use crate::{codes, command};

/// The oldest version whose containment was seen to hold, and the newest that was tested.
pub(crate) const VERSIONS: Versions = Versions {
    oldest: Version::new(0, 171, 0),
    newest_tested: Version::new(0, 171, 0),
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
    /// Features that this binary knows and a run turns off.
    pub(crate) denied: Vec<String>,
}

/// What a binary says about itself.
#[derive(Clone, Debug, PartialEq)]
struct About {
    version: Version,
    features: BTreeSet<String>,
    app_server: bool,
}

impl Binary {
    /// Finds the command, and refuses what is too old or cannot be contained.
    pub(crate) async fn find(config: &CliSettings, settings: &Settings, clock: &dyn Clock) -> Result<Self, Error> {
        let identity = LOCATE.binary(config, settings).await?;
        let about = about(&identity, clock).await?;
        judge(identity.path, &about)
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
        None => path.file_stem().is_some_and(|name| name == "codex"),
    }
}

/// `codex-cli 0.171.0`.
fn parse(text: &str) -> Option<Version> {
    let (name, version) = text.trim().split_once(' ')?;
    (name == "codex-cli").then(|| Version::parse(version).ok())?
}

/// Fails closed: what is needed for containment must be known to the binary.
fn judge(path: PathBuf, about: &About) -> Result<Binary, Error> {
    let version = &about.version;
    let named = |code, what: String| {
        Err(Error::new(
            code,
            format!("{} is version {version}; {what}", path.display()),
        ))
    };
    if *version < VERSIONS.oldest {
        return named(
            &codes::TOO_OLD,
            format!("the oldest that is run is {}", VERSIONS.oldest),
        );
    }
    for feature in command::MUST_BE_DENIED {
        if !about.features.contains(*feature) {
            return named(&codes::CONTAINMENT, format!("it does not know the feature `{feature}`"));
        }
    }
    if !about.app_server {
        return named(&codes::NO_APP_SERVER, "it has no app-server".to_owned());
    }
    let denied = command::DENIED.iter().filter(|name| about.features.contains(**name));
    Ok(Binary {
        denied: denied.map(|name| (*name).to_owned()).collect(),
        version: about.version.clone(),
        path,
    })
}

/// The binary that the wrapper `@openai/codex/bin/codex.js` would start: the platform's package is beside it or below it.
fn behind_script(script: &Path) -> Vec<PathBuf> {
    let wrapper = script.ancestors().find(|place| place.ends_with("@openai/codex"));
    let (Some((package, triple)), Some(wrapper)) = (platform(), wrapper) else {
        return Vec::new();
    };
    let places = [
        wrapper.with_file_name(package),
        wrapper.join("node_modules/@openai").join(package),
    ];
    places
        .map(|package| package.join("vendor").join(triple).join("bin/codex"))
        .into()
}

/// The package for this platform, and the name of its binaries' directory.
fn platform() -> Option<(&'static str, &'static str)> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some(("codex-linux-x64", "x86_64-unknown-linux-musl")),
        ("linux", "aarch64") => Some(("codex-linux-arm64", "aarch64-unknown-linux-musl")),
        ("macos", "x86_64") => Some(("codex-darwin-x64", "x86_64-apple-darwin")),
        ("macos", "aarch64") => Some(("codex-darwin-arm64", "aarch64-apple-darwin")),
        _ => None,
    }
}

async fn about(identity: &Identity, clock: &dyn Clock) -> Result<About, Error> {
    static KNOWN: OnceLock<Known<About>> = OnceLock::new();
    let known = KNOWN.get_or_init(Known::default);
    if let Some(about) = known.get(identity) {
        return Ok(about);
    }
    let place = tempfile::tempdir().map_err(|error| unreadable(&identity.path, &error.to_string()))?;
    let run = RunDir::create(place.path(), "codex")?;
    let version = asked(&identity.path, &run, &["--version"], clock).await?;
    let text = version.first();
    let Some(version) = parse(text) else {
        let shown: String = text.chars().take(200).collect();
        return Err(unreadable(&identity.path, &format!("it says {shown:?}")));
    };
    // Before the other questions, so that a version that cannot answer them is still named as what it is.
    let mut about = About {
        version,
        features: BTreeSet::new(),
        app_server: false,
    };
    if about.version >= VERSIONS.oldest {
        let listed = asked(&identity.path, &run, &["features", "list"], clock).await?;
        about.features = features(&listed.lines);
        let help = asked(&identity.path, &run, &["app-server", "--help"], clock).await?;
        about.app_server = help.exit.is_some_and(|exit| exit.code == Some(0)) && mentions(&help.lines, "--stdio");
    }
    known.insert(identity.clone(), about.clone());
    Ok(about)
}

/// Names in the first column. A feature that was removed has no effect, so naming it does no harm.
fn features(lines: &[String]) -> BTreeSet<String> {
    let names = lines.iter().filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

fn mentions(lines: &[String], flag: &str) -> bool {
    lines
        .iter()
        .any(|line| line.split_whitespace().any(|word| word == flag))
}

async fn asked(path: &Path, run: &RunDir, args: &[&str], clock: &dyn Clock) -> Result<Said, Error> {
    let program = command::environment(Program::new(path, run.work()).args(args), run, &run.config());
    let said = ask(program, clock).await?;
    said.map_err(|why| unreadable(path, &format!("{}: {why}", args.join(" "))))
}

fn unreadable(path: &Path, why: &str) -> Error {
    Error::new(&codes::VERSION_UNREADABLE, format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn file(path: &Path, content: &[u8]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn p_18_the_packages_wrapper_is_resolved_to_the_native_binary() {
        let Some((package, triple)) = platform() else { return };
        for place in ["@openai", "@openai/codex/node_modules/@openai"] {
            let dir = tempfile::tempdir().unwrap();
            let modules = dir.path().join("node_modules");
            let script = modules.join("@openai/codex/bin/codex.js");
            file(&script, b"#!/usr/bin/env node\n");
            let command = modules.join(".bin/codex");
            fs::create_dir_all(command.parent().unwrap()).unwrap();
            symlink(&script, &command).unwrap();
            let error = LOCATE.find("codex", Some(command.clone())).unwrap_err();
            assert_eq!(error.code, "codex-wrapper");
            assert!(error.hint.contains("@openai/codex-linux-x64"), "{}", error.hint);
            let package = modules.join(place).join(package);
            let binary = package.join("vendor").join(triple).join("bin/codex");
            file(&binary, b"\x7fELF and more");
            let found = LOCATE.find("codex", Some(command)).unwrap();
            assert_eq!(found.path, fs::canonicalize(binary).unwrap());
        }
    }

    fn about_with(version: &str, features: &[&str], app_server: bool) -> About {
        About {
            version: version.parse().unwrap(),
            features: features.iter().map(|name| (*name).to_owned()).collect(),
            app_server,
        }
    }

    #[test]
    fn the_version_line_is_read_and_nothing_like_it() {
        assert_eq!(parse("codex-cli 0.171.0\n"), Some(Version::new(0, 171, 0)));
        for other in ["0.171.0", "2.1.332 (Claude Code)", "codex 0.171.0", ""] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_program_is_recognised_by_its_version_before_its_name() {
        assert!(recognises(Path::new("/opt/x"), Some("codex-cli 0.171.0")));
        assert!(!recognises(Path::new("/opt/codex"), Some("2.1.332 (Claude Code)")));
        assert!(recognises(Path::new("/opt/codex"), None));
    }

    #[test]
    fn p_18_a_binary_whose_shell_cannot_be_turned_off_is_refused() {
        let path = || PathBuf::from("/opt/codex");
        let table = [
            (
                about_with("0.170.9", &["shell_tool", "unified_exec"], true),
                "codex-too-old",
            ),
            (about_with("0.171.0", &["unified_exec"], true), "codex-containment"),
            (about_with("0.171.0", &["shell_tool"], true), "codex-containment"),
            (
                about_with("0.171.0", &["shell_tool", "unified_exec"], false),
                "codex-no-app-server",
            ),
        ];
        for (about, code) in table {
            let error = judge(path(), &about).unwrap_err();
            assert_eq!(error.code, code);
            assert!(
                error.message.contains(&about.version.to_string()),
                "the version is named: {}",
                error.message
            );
        }
    }

    #[test]
    fn p_18_only_what_the_binary_knows_is_turned_off() {
        let about = about_with("0.172.0", &["shell_tool", "unified_exec", "hooks", "new_thing"], true);
        let binary = judge("/opt/codex".into(), &about).unwrap();
        assert_eq!(binary.denied, ["shell_tool", "unified_exec", "hooks"]);
        assert_eq!(
            binary.untested().unwrap(),
            "the CLI is version 0.172.0; the newest that was tested is 0.171.0"
        );
    }

    #[test]
    fn the_list_of_features_is_its_first_column() {
        let lines = ["shell_tool      stable             true", "", "undo   removed   false"].map(str::to_owned);
        let names: Vec<_> = features(&lines).into_iter().collect();
        assert_eq!(names, ["shell_tool", "undo"]);
    }
}
