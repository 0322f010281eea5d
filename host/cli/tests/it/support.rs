//! What the stories share: the real binary in an environment of its own.

use std::{
    ffi::OsStr,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// The repository.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const BINARY: &str = env!("CARGO_BIN_EXE_capsule");

/// A home, the XDG directories and a folder to work in, all private and gone with this value.
pub(crate) struct Sandbox {
    dir: TempDir,
    env: Vec<(String, String)>,
}

/// What came of a command.
#[derive(Debug, PartialEq)]
pub(crate) struct Ran {
    /// The exit code; a signal's number plus 1000 where that ended it.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for name in ["home", "state", "cache", "run", "work"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        // Shared by all tests: compiling the same two components each time would prove nothing.
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("component-cache");
        fs::create_dir_all(&cache).unwrap();
        let mut made = Self { dir, env: Vec::new() };
        let place = |name: &str| made.dir.path().join(name).display().to_string();
        made.env = vec![
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), place("home")),
            ("XDG_STATE_HOME".to_owned(), place("state")),
            ("XDG_RUNTIME_DIR".to_owned(), place("run")),
            ("XDG_CACHE_HOME".to_owned(), cache.display().to_string()),
        ];
        made
    }

    /// Sets a variable of the environment.
    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// With a compile cache of its own.
    pub(crate) fn private_cache(self) -> Self {
        let cache = self.path("cache").display().to_string();
        self.env("XDG_CACHE_HOME", cache)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A path in the folder that commands run in.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.path("work").join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A copy of the capsule `hello` as `work/hello`, with its components as files.
    pub(crate) fn with_hello(self) -> Self {
        copy(&Path::new(ROOT).join("plugins/capsules/hello"), &self.work("hello"));
        self
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(BINARY);
        command.args(args).env_clear().current_dir(self.work(""));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `capsule` with these words to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&self.command(args).output().unwrap())
    }

    /// Runs `capsule` with this on its standard input.
    pub(crate) fn pipe(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ran::of(&child.wait_with_output().unwrap())
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// The one trace there is, line by line.
    pub(crate) fn trace(&self) -> Vec<Value> {
        let found: Vec<_> = files(&self.path("state"))
            .into_iter()
            .filter(|path| path.ends_with("trace.jsonl"))
            .collect();
        assert_eq!(found.len(), 1, "one run leaves one trace: {found:?}");
        lines(&fs::read_to_string(&found[0]).unwrap())
    }

    /// What is left in the runtime directory.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        fs::read_dir(self.path("run"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    }

    /// The text with this sandbox's own paths, times and ids taken out.
    pub(crate) fn filtered(&self, text: &str) -> String {
        filtered(&text.replace(&self.dir.path().display().to_string(), "DIR"))
    }
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        let code = output.status.code();
        Self {
            code: code.unwrap_or_else(|| 1000 + output.status.signal().unwrap()),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// Itself, if it ended with this code.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert!(!self.err.contains("panicked at"), "{self:#?}");
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Itself, if standard error has all of these.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is missing in {self:#?}");
        }
        self
    }

    /// The answer on standard output, without its last line end.
    pub(crate) fn answer(&self) -> &str {
        self.out.strip_suffix('\n').unwrap_or(&self.out)
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// JSON lines.
#[track_caller]
pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}")))
        .collect()
}

/// The kinds of records, in order.
pub(crate) fn kinds(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["kind"].as_str().unwrap()).collect()
}

/// All files below a directory, sorted.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Copies a folder; links become what they lead to.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(or_rebuilt(path), &target).unwrap();
        }
    }
}

/// A prebuilt component of the product.
pub(crate) fn prebuilt(name: &str) -> PathBuf {
    or_rebuilt(Path::new(ROOT).join("plugins/tools/prebuilt").join(name))
}

/// The file itself; of a prebuilt component, the rebuilt one where `CAPSULE_TEST_REBUILT` names a folder with those.
fn or_rebuilt(path: PathBuf) -> PathBuf {
    let Some(rebuilt) = std::env::var_os("CAPSULE_TEST_REBUILT") else {
        return path;
    };
    let file = path.canonicalize().unwrap();
    if file.extension().is_some_and(|extension| extension == "wasm") && file.parent().unwrap().ends_with("prebuilt") {
        return Path::new(&rebuilt).join(file.file_name().unwrap());
    }
    path
}

/// Times and ids of runs taken out.
fn filtered(text: &str) -> String {
    text.split_inclusive([' ', '\n', '/', ')'])
        .scan("", |before, word| {
            let bare = word.trim_end_matches([' ', '\n', '/', ')']);
            let end = &word[bare.len()..];
            let is_id = bare.len() == 36 && bare.matches('-').count() == 4;
            let shown = if is_id { format!("ID{end}") } else { word.to_owned() };
            *before = bare;
            Some(shown)
        })
        .collect::<String>()
        .lines()
        .map(without_times)
        .collect::<Vec<_>>()
        .join("\n")
}

/// `12 ms` as `N ms`.
fn without_times(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    for at in 1..words.len() {
        if words[at] == "ms" && words[at - 1].parse::<u64>().is_ok() {
            words[at - 1] = "N";
        }
    }
    words.join(" ")
}

/// Whether a test that this machine cannot run may be left out; says so.
pub(crate) fn skip(what: &str) {
    let must_run = std::env::var_os("CAPSULE_TEST_NO_SKIP").is_some_and(|value| value == "1");
    assert!(
        !must_run,
        "CAPSULE_TEST_NO_SKIP=1, and this machine cannot run it: {what}"
    );
    eprintln!("SKIPPED: {what}");
}
