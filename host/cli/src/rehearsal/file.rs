//! The files of tapes.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use capsule_api::{Error, NotATape, Tape};

use crate::failure::codes;

/// Whether a tape could be written here: told before a run that may cost something, not after it.
pub(crate) fn check_place(path: &Path) -> Result<(), Error> {
    let temporary = beside(path);
    let made = new_file(&temporary).map(drop);
    let removed = made.and_then(|()| fs::remove_file(&temporary));
    let checked = match removed {
        Ok(()) if path.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        other => other,
    };
    checked.map_err(|error| about(path, &format!("it cannot be written: {error}")))
}

/// Writes a tape whole or not at all, readable by its owner alone.
pub(crate) fn write(path: &Path, tape: &Tape) -> Result<(), Error> {
    let temporary = beside(path);
    let written = new_file(&temporary).and_then(|mut file| {
        file.write_all(tape.to_text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    written.map_err(|error| {
        // Half a tape is of no use; the error to report is the first one.
        let _ = fs::remove_file(&temporary);
        let message = format!("cannot write the tape {}: {error}", path.display());
        Error::new(&codes::TAPE_FILE, message)
    })
}

/// Reads a tape.
pub(crate) fn read(path: &Path) -> Result<Tape, Error> {
    let mut text = Vec::new();
    let limit = Tape::MAX_BYTES as u64 + 1;
    // A pipe would be waited for, and the driver that plays the tape reads it a second time.
    let file = fs::metadata(path).and_then(|found| match found.is_file() {
        true => fs::File::open(path),
        false => Err(io::Error::other("it is not a regular file")),
    });
    let read = file.and_then(|file| file.take(limit).read_to_end(&mut text));
    read.map_err(|error| about(path, &format!("it cannot be read: {error}")))?;
    if text.len() > Tape::MAX_BYTES {
        return Err(about(path, &format!("it is larger than {} MiB", Tape::MAX_BYTES >> 20)));
    }
    Tape::parse(&text).map_err(|problem| match problem {
        NotATape::Version(other) => {
            let what = format!("it has version {other}; this program reads {}", Tape::VERSION);
            about(path, &what)
        }
        NotATape::Malformed(what) => about(path, &what),
        other => about(path, &format!("{other:?}")),
    })
}

/// Where the tape of a run that failed or was cancelled goes: beside the file that it was to replace, under a name that `capsule test` does not
/// take for a tape. `None` where there is no file to lose.
pub(crate) fn beside_what_is_there(path: &Path) -> Option<PathBuf> {
    let mut name = path.file_name()?.to_owned();
    name.push(".partial");
    path.exists().then(|| path.with_file_name(name))
}

fn new_file(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// A name in the same directory, so that renaming replaces the file in one step.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.new", std::process::id()))
}

fn about(path: &Path, what: &str) -> Error {
    Error::new(&codes::TAPE, format!("the tape {}: {what}", path.display()))
}
