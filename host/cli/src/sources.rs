//! Tools that the manifest names by their sources: the component that `capsule build` made of them, and whether it still is theirs.
//!
//! The component is `target/capsule/component.wasm` in the directory of the sources. Beside it, `sources.json` has the SHA-256 of the
//! component and of every file that it was made of, so that a component which is older than its sources is an error and not a riddle.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use capsule_api::Error;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::failure::codes;

const VERSION: u32 = 1;
/// The longest record that is read, in bytes: tens of thousands of files.
const LARGEST_RECORD: u64 = 16 << 20;

/// Where a build puts the component of the sources in `dir`.
pub(crate) fn component_of(dir: &Path) -> PathBuf {
    dir.join("target/capsule/component.wasm")
}

fn record_of(dir: &Path) -> PathBuf {
    dir.join("target/capsule/sources.json")
}

/// What a component was made of.
#[derive(Debug, Deserialize, Serialize, PartialEq, Eq)]
struct Record {
    v: u32,
    /// SHA-256 of the component.
    component: String,
    /// SHA-256 of each source, by its path from the directory of the sources.
    sources: BTreeMap<PathBuf, String>,
}

/// The component at `path`: the file itself, or what was built of the sources in this directory.
///
/// # Errors
/// [`codes::NOT_BUILT`], [`codes::STALE`]; `who` begins the message.
pub(crate) fn resolve(path: PathBuf, who: &str) -> Result<PathBuf, Error> {
    if !path.is_dir() {
        return Ok(path);
    }
    let shown = path.display();
    let component = component_of(&path);
    let record = match read_record(&path) {
        Ok(Some(record)) if component.is_file() => record,
        Ok(_) => {
            let message = format!("{who}: the sources in {shown} are not built yet");
            return Err(Error::new(&codes::NOT_BUILT, message));
        }
        Err(why) => {
            let message = format!("{who}: what {shown} was built of cannot be read: {why}");
            return Err(Error::new(&codes::STALE, message));
        }
    };
    match changed(&path, &record) {
        None => Ok(component),
        Some(file) => {
            let message = format!(
                "{who}: the sources in {shown} changed since they were built: {}",
                file.display()
            );
            Err(Error::new(&codes::STALE, message))
        }
    }
}

/// Puts a component in its place, with a record of the files that it was made of. A failure leaves the old one, or one that counts as stale.
pub(crate) fn install(dir: &Path, built: &Path, files: &[PathBuf]) -> io::Result<PathBuf> {
    let dir = dir.canonicalize()?;
    let mut sources = BTreeMap::new();
    for file in files {
        sources.insert(relative(&dir, &file.canonicalize()?), digest(file)?);
    }
    let (component, record) = (component_of(&dir), record_of(&dir));
    if let Some(parent) = component.parent() {
        fs::create_dir_all(parent)?;
    }
    let digest = digest(built)?;
    replace(&component, &fs::read(built)?)?;
    let made = Record {
        v: VERSION,
        component: digest,
        sources,
    };
    replace(&record, serde_json::to_string_pretty(&made)?.as_bytes())?;
    Ok(component)
}

fn read_record(dir: &Path) -> io::Result<Option<Record>> {
    let mut text = String::new();
    match File::open(record_of(dir)) {
        Ok(file) => file.take(LARGEST_RECORD).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let record: Record = serde_json::from_str(&text)?;
    match record.v {
        VERSION => Ok(Some(record)),
        other => Err(io::Error::other(format!("it is of version {other}"))),
    }
}

/// The first file that is not as it was.
fn changed(dir: &Path, record: &Record) -> Option<PathBuf> {
    let component = component_of(dir);
    let same = |file: &Path, was: &str| digest(file).is_ok_and(|now| now == was);
    let source = record.sources.iter().find(|(path, was)| !same(&dir.join(path), was));
    let source = source.map(|(path, _)| path.clone());
    source.or_else(|| (!same(&component, &record.component)).then_some(component))
}

fn digest(file: &Path) -> io::Result<String> {
    // Asked first: to open a pipe would wait for its writer.
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut hash = Sha256::new();
    io::copy(&mut File::open(file)?, &mut hash)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a file so that a reader sees all of it or the one before.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let done = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        // The error that matters is the one above.
        let _ = fs::remove_file(&beside);
    }
    done
}

/// `to`, seen from the directory `from`; both absolute and without links. So a project that moves as a whole stays built.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[common..].iter().map(|_| Component::ParentDir);
    up.chain(to[common..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with sources that are built.
    fn built() -> (tempfile::TempDir, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("tools/a");
        fs::create_dir_all(dir.join("src")).unwrap();
        fs::create_dir(top.path().join("sdk")).unwrap();
        let (own, shared) = (dir.join("src/lib.rs"), top.path().join("sdk/lib.rs"));
        fs::write(&own, "own").unwrap();
        fs::write(&shared, "shared").unwrap();
        let made = top.path().join("made.wasm");
        fs::write(&made, "component").unwrap();
        install(&dir, &made, &[own, shared]).unwrap();
        (top, dir)
    }

    fn code(dir: &Path) -> Option<&'static str> {
        resolve(dir.to_owned(), "tool `a`").err().map(|error| error.code)
    }

    #[test]
    fn a_file_is_itself_and_a_directory_what_was_built_of_it() {
        let (top, dir) = built();
        let file = top.path().join("made.wasm");
        assert_eq!(resolve(file.clone(), "tool `a`").unwrap(), file);
        assert_eq!(resolve(dir.clone(), "tool `a`").unwrap(), component_of(&dir));
        let missing = top.path().join("nothing");
        assert_eq!(resolve(missing.clone(), "tool `a`").unwrap(), missing);
    }

    #[test]
    fn sources_that_were_never_built_say_so() {
        let dir = tempfile::tempdir().unwrap();
        let error = resolve(dir.path().to_owned(), "tool `a`").unwrap_err();
        assert_eq!(error.code, "cli-not-built");
        assert!(error.hint.contains("capsule build"), "{}", error.hint);
    }

    #[test]
    fn any_change_of_a_source_makes_the_component_stale() {
        let files: [fn(&Path) -> PathBuf; 4] = [
            |dir| dir.join("src/lib.rs"),
            |dir| dir.join("../../sdk/lib.rs"),
            component_of,
            record_of,
        ];
        for file in files {
            let (_top, dir) = built();
            assert_eq!(code(&dir), None);
            fs::write(file(&dir), "changed").unwrap();
            assert_eq!(code(&dir), Some("cli-stale"), "{}", file(&dir).display());
        }
        let (_top, dir) = built();
        fs::remove_file(dir.join("src/lib.rs")).unwrap();
        assert_eq!(code(&dir), Some("cli-stale"), "a source is gone");
    }

    #[test]
    fn a_project_that_moves_as_a_whole_stays_built() {
        let (top, _) = built();
        let other = tempfile::tempdir().unwrap();
        let moved = other.path().join("moved");
        fs::rename(top.path(), &moved).unwrap();
        assert_eq!(code(&moved.join("tools/a")), None);
        fs::create_dir(top.path()).unwrap();
    }

    #[test]
    fn paths_are_seen_from_a_directory() {
        let cases = [
            ("/a/b", "/a/b/c", "c"),
            ("/a/b", "/a/c/d", "../c/d"),
            ("/a", "/b", "../b"),
        ];
        for (from, to, expected) in cases {
            assert_eq!(relative(Path::new(from), Path::new(to)), Path::new(expected));
        }
    }
}
