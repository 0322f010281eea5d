//! Writes whole files, so that a reader sees the old content or the new and never a part.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use capsule_guest::{Error, Output, StateEffect};

use crate::grants::{Access, refusal};

/// The longest content, in bytes.
pub const MOST_BYTES: usize = 8 << 20;
/// Names tried for the file beside the target, before giving up.
const TRIES: u32 = 100;

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The file.
    pub path: &'a str,
    /// All that it is to hold.
    pub content: &'a str,
    /// Whether a file that is there may be replaced.
    pub overwrite: bool,
}

/// Writes a file, and the directories above it that are missing.
///
/// # Errors
///
/// A sentence for the model: no grant, already there, not a file, or too long.
pub fn write(asked: Asked<'_>) -> Result<Output, Error> {
    let path = asked.path;
    written(asked)
        .map(|output| output.state_effect(StateEffect::Mutate).resource_id(path))
        .map_err(|why| why.metadata("state_effect", "mutate").metadata("resource_id", path))
}

fn written(asked: Asked<'_>) -> Result<Output, Error> {
    let Asked {
        path,
        content,
        overwrite,
    } = asked;
    if content.len() > MOST_BYTES {
        let length = content.len();
        return Err(Error::new(format!(
            "the content has {length} bytes; this tool writes at most {MOST_BYTES}"
        )));
    }
    let there = is_replaceable(path)?;
    if there && !overwrite {
        return Err(already_there(path));
    }
    let target = Path::new(path);
    if let Some(above) = target.parent().filter(|above| !there && !above.as_os_str().is_empty()) {
        fs::create_dir_all(above).map_err(|error| refusal(Access::Write, path, &error))?;
    }
    put(path, content, overwrite)?;
    let said = format!("wrote '{path}': {} bytes", content.len());
    Ok(Output::text(said.clone()).summary(said))
}

fn already_there(path: &str) -> Error {
    Error::new(format!(
        "'{path}' is already there: edit it, or set overwrite to replace all of it"
    ))
}

/// Whether there is a file at `path`.
///
/// # Errors
///
/// Where there is something that is not to be replaced by a file. A symbolic link is not: the file it leads to would stay as it is.
pub(crate) fn is_replaceable(path: &str) -> Result<bool, Error> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(refusal(Access::Write, path, &error)),
        Ok(metadata) => metadata,
    };
    let what = match metadata.file_type() {
        kind if kind.is_file() => return Ok(true),
        kind if kind.is_dir() => "a directory, not a file",
        kind if kind.is_symlink() => "a symbolic link: name the file that it leads to",
        _ => "not a regular file",
    };
    Err(Error::new(format!("'{path}' is {what}")))
}

/// Puts `content` at `path` in one step, by a file beside it that takes its name.
pub(crate) fn put(path: &str, content: &str, overwrite: bool) -> Result<(), Error> {
    let told = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => already_there(path),
        _ => refusal(Access::Write, path, &error),
    };
    let target = Path::new(path);
    let (beside, mut file) = create_beside(target).map_err(told)?;
    let filled = file.write_all(content.as_bytes()).and_then(|()| file.sync_all());
    drop(file);
    let named = filled.and_then(|()| match overwrite {
        true => fs::rename(&beside, target),
        false => claim(&beside, target),
    });
    // Still there where it has not become the target.
    if named.is_err() || !overwrite {
        let _ = fs::remove_file(&beside);
    }
    named.map_err(told)
}

/// Gives the file the name `target` unless that is taken: a link is refused there, a rename would replace.
fn claim(beside: &Path, target: &Path) -> io::Result<()> {
    match fs::hard_link(beside, target) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists && fs::symlink_metadata(target).is_err() => {
            // A file system without hard links.
            fs::rename(beside, target)
        }
        linked => linked,
    }
}

fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let name = target.file_name().ok_or(ErrorKind::InvalidInput)?;
    let mut last = io::Error::from(ErrorKind::AlreadyExists);
    for number in 0..TRIES {
        let beside = target.with_file_name(format!(".{}.{number}.part", name.to_string_lossy()));
        match File::create_new(&beside) {
            Ok(file) => return Ok((beside, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{directory_with, failed, output, text};
    use std::os::unix::fs::symlink;

    fn say(path: &str, content: &str, overwrite: bool) -> Result<Output, Error> {
        write(Asked {
            path,
            content,
            overwrite,
        })
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_created_with_the_directories_above_it() {
        let dir = directory_with(&[]);
        let path = text(&dir.path().join("a/b/c.txt"));

        let said = format!("wrote '{path}': 3 bytes");
        let expected = output(Output::text(said.clone()).summary(said), StateEffect::Mutate, &path);
        assert_eq!(say(&path, "é\n", false), Ok(expected));
        assert_eq!(fs::read_to_string(&path).unwrap(), "é\n");
        assert_eq!(names(&dir.path().join("a/b")), ["c.txt"]);
    }

    #[test]
    fn a_file_that_is_there_is_replaced_only_when_asked() {
        let dir = directory_with(&[("f", b"old")]);
        let path = text(&dir.path().join("f"));

        let message = format!("'{path}' is already there: edit it, or set overwrite to replace all of it");
        assert_eq!(say(&path, "new", false), Err(failed(message, "mutate", &path)));
        assert_eq!(fs::read(&path).unwrap(), b"old");

        let _ = say(&path, "new", true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["f"]);
    }

    #[test]
    fn one_who_comes_between_is_not_overwritten() {
        let dir = directory_with(&[("f", b"theirs")]);
        let path = text(&dir.path().join("f"));
        assert!(put(&path, "ours", false).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(names(dir.path()), ["f"]);
    }

    #[test]
    fn links_and_directories_are_not_replaced() {
        let dir = directory_with(&[("f", b"old")]);
        symlink("f", dir.path().join("link")).unwrap();
        let link = text(&dir.path().join("link"));
        let message = format!("'{link}' is a symbolic link: name the file that it leads to");
        assert_eq!(say(&link, "new", true), Err(failed(message, "mutate", &link)));

        let directory = text(dir.path());
        let message = format!("'{directory}' is a directory, not a file");
        assert_eq!(say(&directory, "new", true), Err(failed(message, "mutate", &directory)));
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"old");
    }

    #[test]
    fn what_other_writers_left_beside_is_not_touched() {
        let dir = directory_with(&[(".f.0.part", b"theirs")]);
        let path = text(&dir.path().join("f"));
        let _ = say(&path, "new", false).unwrap();
        assert_eq!(names(dir.path()), [".f.0.part", "f"]);
        assert_eq!(fs::read(dir.path().join(".f.0.part")).unwrap(), b"theirs");
    }

    #[test]
    fn content_is_bounded() {
        let message = "the content has 8388609 bytes; this tool writes at most 8388608";
        assert_eq!(
            say("/x", &"a".repeat(MOST_BYTES + 1), false),
            Err(failed(message, "mutate", "/x"))
        );
    }
}
