//! A Cargo package, built into a component.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use capsule_api::{Cancel, Clock, Error};
use serde_json::Value;

use crate::{
    child::{self, From},
    failure::codes,
    view::plain,
};

pub(super) const TARGET: &str = "wasm32-wasip2";

/// What cargo and the compiler get of this program's environment: where they and their files are, how the network is reached, and what
/// people set for them. No flags (`RUSTFLAGS`): those are for this machine's own target. No tokens.
const ENVIRONMENT: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_JOBS",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_HTTP_PROXY",
    "CARGO_HTTP_CAINFO",
    "RUSTC",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// The most of cargo's messages that is shown for one package, in bytes.
const MOST_SHOWN: usize = 4 << 20;
/// The longest line of them, in bytes.
const LONGEST_SHOWN: usize = 4 << 10;

/// How a package is built.
pub(super) struct Cargo<'a> {
    pub(super) env: &'a (dyn Fn(&str) -> Option<OsString> + Send + Sync),
    pub(super) clock: &'a dyn Clock,
    pub(super) cancel: &'a Cancel,
    /// Whether cargo may change the lock file.
    pub(super) unlocked: bool,
}

/// What came of a package.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Built {
    /// The component, as cargo left it.
    pub(super) component: PathBuf,
    /// Every file of the project that it was made of; the crates of registries are pinned by the lock file.
    pub(super) files: Vec<PathBuf>,
}

impl Cargo<'_> {
    /// Checks that there is a compiler with a standard library for [`TARGET`]: `RUSTC`, else the one that `dir` selects.
    ///
    /// # Errors
    /// [`codes::BUILD_TARGET`], or the compiler does not run.
    pub(super) async fn check_compiler(&self, dir: &Path) -> Result<(), Error> {
        let rustc = (self.env)("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = self.command(&rustc, dir);
        command.args(["--print", "target-libdir", "--target", TARGET]);
        let mut at = None;
        let mut said = Vec::new();
        let each = |from, line: &str| match from {
            From::Out => at = Some(PathBuf::from(line)),
            From::Err => said.push(plain(line)),
        };
        let ran = child::run(command, (self.clock, self.cancel), each).await;
        let name = rustc.to_string_lossy().into_owned();
        let status = ran.map_err(|error| unstarted(&name, &error))?;
        let has = |dir: PathBuf| {
            let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
            names
                .map(|entry| entry.file_name())
                .any(|file| file.to_string_lossy().starts_with("libstd-"))
        };
        if at.filter(|_| status.success()).is_some_and(has) {
            return Ok(());
        }
        let message = format!("the compiler `{name}` has no standard library for {TARGET}");
        said.truncate(8);
        let error = Error::new(&codes::BUILD_TARGET, message);
        Err(match said.is_empty() {
            true => error,
            false => error.with("it said", said.join("\n")),
        })
    }

    /// Builds the package in `dir`; what cargo says goes to standard error as it comes.
    ///
    /// # Errors
    /// [`codes::BUILD`]: cargo did not run, failed, or left not exactly one component.
    pub(super) async fn build(&self, dir: &Path) -> Result<Built, Error> {
        let workspace = self.workspace(dir).await?;
        let mut command = self.command("cargo".as_ref(), dir);
        command.args(["build", "--release", "--target", TARGET]);
        command.arg("--message-format=json-render-diagnostics");
        let lock = workspace.with_file_name("Cargo.lock");
        let locked = lock.is_file() && !self.unlocked;
        if locked {
            command.arg("--locked");
        }
        let (mut shown, mut seen) = (Shown::default(), Seen::default());
        let each = |from, line: &str| match from {
            From::Out => seen.message(line),
            From::Err => shown.line(line),
        };
        let ran = child::run(command, (self.clock, self.cancel), each).await;
        let status = ran.map_err(|error| unstarted("cargo", &error))?;
        if !status.success() {
            let message = format!("cargo could not build {}: {status}", dir.display());
            let error = Error::new(&codes::BUILD, message);
            return Err(match locked && shown.lock {
                true => error.hint("The dependencies changed: `capsule build --unlocked` lets cargo write Cargo.lock."),
                false => error,
            });
        }
        seen.into_built(dir, &[workspace, lock])
    }

    /// The manifest of the workspace that the package in `dir` belongs to; its own, where it is in none.
    async fn workspace(&self, dir: &Path) -> Result<PathBuf, Error> {
        let mut command = self.command("cargo".as_ref(), dir);
        command.args(["locate-project", "--workspace", "--message-format=plain"]);
        let (mut shown, mut found) = (Shown::default(), None);
        let each = |from, line: &str| match from {
            From::Out => found = Some(PathBuf::from(line)),
            From::Err => shown.line(line),
        };
        let ran = child::run(command, (self.clock, self.cancel), each).await;
        let status = ran.map_err(|error| unstarted("cargo", &error))?;
        let failed = || {
            let message = format!("cargo does not read the package in {}: {status}", dir.display());
            Error::new(&codes::BUILD, message)
        };
        found.filter(|_| status.success()).ok_or_else(failed)
    }

    fn command(&self, program: &std::ffi::OsStr, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(dir).env_clear();
        command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, (self.env)(name)?))));
        command.env("CARGO_TERM_COLOR", "never");
        command
    }
}

fn unstarted(program: &str, error: &io::Error) -> Error {
    let message = format!("`{program}` could not be started: {error}");
    match error.kind() {
        io::ErrorKind::NotFound => Error::new(&codes::BUILD, message).hint(format!(
            "Install Rust (https://rustup.rs), then `rustup target add {TARGET}`."
        )),
        _ => Error::new(&codes::BUILD, message),
    }
}

/// Cargo's own words, as far as they are shown.
#[derive(Default)]
struct Shown {
    bytes: usize,
    /// Whether cargo would have changed the lock file.
    lock: bool,
}

impl Shown {
    fn line(&mut self, line: &str) {
        self.lock |= line.contains("--locked");
        let before = self.bytes;
        self.bytes += line.len();
        if before > MOST_SHOWN {
            return;
        }
        let end = line.floor_char_boundary(LONGEST_SHOWN);
        let line = match self.bytes > MOST_SHOWN {
            true => "(cargo says more than is shown here)".to_owned(),
            false => plain(&line[..end]),
        };
        // Without standard error there is nobody to show it to; the build goes on.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

/// What cargo's messages tell.
#[derive(Default)]
struct Seen {
    /// Manifests of the packages that lie in the file system, the project's own among them.
    manifests: Vec<PathBuf>,
    /// Components, each with the manifest of its package.
    components: Vec<(PathBuf, PathBuf)>,
}

impl Seen {
    /// One message: https://doc.rust-lang.org/cargo/reference/external-tools.html#artifact-messages
    fn message(&mut self, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return;
        };
        let manifest = message["manifest_path"].as_str().map(PathBuf::from);
        let (Some("compiler-artifact"), Some(manifest)) = (message["reason"].as_str(), manifest) else {
            return;
        };
        if message["package_id"].as_str().is_some_and(|id| id.starts_with("path+")) {
            self.manifests.push(manifest.clone());
        }
        let files = message["filenames"].as_array().into_iter().flatten();
        let files = files.filter_map(Value::as_str).filter(|file| file.ends_with(".wasm"));
        self.components
            .extend(files.map(|file| (manifest.clone(), PathBuf::from(file))));
    }

    fn into_built(self, dir: &Path, more: &[PathBuf]) -> Result<Built, Error> {
        let own = dir.join("Cargo.toml").canonicalize();
        let own = own.map_err(|error| unreadable(dir, &error))?;
        let of_package = |manifest: &Path| manifest.canonicalize().is_ok_and(|path| path == own);
        let components = self.components.iter().filter(|(manifest, _)| of_package(manifest));
        let component = match components.map(|(_, file)| file).collect::<Vec<_>>().as_slice() {
            [one] => (*one).clone(),
            several => {
                let names: Vec<_> = several.iter().map(|file| file.display().to_string()).collect();
                let found = if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                };
                let message = format!("the package in {} makes not one component but: {found}", dir.display());
                return Err(Error::new(&codes::BUILD, message).hint(
                    "Give the package one library with `crate-type = [\"cdylib\"]`, or one program, and name each package as a tool of its own.",
                ));
            }
        };
        let list = component.with_extension("d");
        let list = std::fs::read_to_string(&list).map_err(|error| unreadable(&list, &error))?;
        let mut files = dependencies(&list);
        files.extend(self.manifests);
        files.extend(more.iter().filter(|file| file.is_file()).cloned());
        files.sort();
        files.dedup();
        Ok(Built { component, files })
    }
}

fn unreadable(what: &Path, error: &io::Error) -> Error {
    Error::new(&codes::BUILD, format!("{} cannot be read: {error}", what.display()))
}

/// The files that a make rule of cargo's lists (`target: file file`); a space in a path is escaped.
fn dependencies(rule: &str) -> Vec<PathBuf> {
    let Some((_, files)) = rule.lines().next().unwrap_or_default().split_once(": ") else {
        return Vec::new();
    };
    let (mut found, mut path, mut escaped) = (Vec::new(), String::new(), false);
    for c in files.chars().chain([' ']) {
        match c {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            ' ' if !escaped => found.push(PathBuf::from(std::mem::take(&mut path))),
            // Only a space is ever escaped; any other backslash is part of the name.
            c => path.extend(['\\'].iter().filter(|_| escaped && c != ' ').chain([&c])),
        }
        escaped = false;
    }
    found.retain(|path| !path.as_os_str().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_rule_are_read_with_their_spaces() {
        let cases: [(&str, &[&str]); 4] = [
            (
                "/t/a.wasm: /p/src/lib.rs /p/sdk/lib.rs\n",
                &["/p/src/lib.rs", "/p/sdk/lib.rs"],
            ),
            ("/t/a.wasm: /my\\ project/lib.rs /b\n", &["/my project/lib.rs", "/b"]),
            ("/t/a.wasm: /a\\b/c\n", &["/a\\b/c"]),
            ("", &[]),
        ];
        for (rule, expected) in cases {
            let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(dependencies(rule), expected, "{rule}");
        }
    }

    #[test]
    fn a_package_makes_exactly_one_component() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = dir.path().join("Cargo.toml");
        std::fs::write(&manifest, "").unwrap();
        let artifact = |file: &str| {
            let file = dir.path().join(file).display().to_string();
            let manifest = manifest.display();
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///p#a@0.1.0","manifest_path":"{manifest}","filenames":["{file}"]}}"#
            )
        };
        std::fs::write(dir.path().join("a.d"), "a.wasm: /p/lib.rs\n").unwrap();
        let of = |lines: &[String]| {
            let mut seen = Seen::default();
            lines.iter().for_each(|line| seen.message(line));
            seen.into_built(dir.path(), &[dir.path().join("Cargo.lock")])
        };
        let built = of(&[artifact("liba.rlib"), artifact("a.wasm"), "no JSON".into()]).unwrap();
        assert_eq!(built.component, dir.path().join("a.wasm"));
        let mut files = [PathBuf::from("/p/lib.rs"), manifest.clone()];
        files.sort();
        assert_eq!(built.files, files, "a lock file that is not there is no source");

        let none = of(&[artifact("liba.rlib")]).unwrap_err();
        assert!(
            none.message.ends_with("makes not one component but: none"),
            "{}",
            none.message
        );
        let two = of(&[artifact("a.wasm"), artifact("b.wasm")]).unwrap_err();
        assert!(
            two.message.contains("a.wasm, ") && two.hint.contains("cdylib"),
            "{}",
            two.message
        );
    }
}
