//! Reads the file.

use std::{fs::File, io::Read, path::Path};

use capsule_api::{Error, NotATape, Tape};

use crate::codes;

/// Reads a tape.
///
/// # Errors
/// The file cannot be read, is no regular file, is too large, is no tape, or has another version.
pub(crate) fn load(path: &Path) -> Result<Tape, Error> {
    let unreadable = |error: std::io::Error| {
        let message = format!("the tape {} cannot be read: {error}", path.display());
        Error::new(&codes::UNREADABLE, message).caused_by(error)
    };
    // Asks first: to open a pipe would wait for its writer, and a device may have no end.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        let message = format!("the tape {} is not a regular file", path.display());
        return Err(Error::new(&codes::UNREADABLE, message));
    }
    let mut text = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(Tape::MAX_BYTES as u64 + 1)
        .read_to_end(&mut text)
        .map_err(unreadable)?;
    let about = |code, what: String| Error::new(code, format!("the tape {}: {what}", path.display()));
    if text.len() > Tape::MAX_BYTES {
        let what = format!("it is larger than {} MiB", Tape::MAX_BYTES >> 20);
        return Err(about(&codes::TOO_LARGE, what));
    }
    Tape::parse(&text).map_err(|error| match error {
        NotATape::Version(other) => {
            let what = format!("it has version {other}; this program reads {}", Tape::VERSION);
            about(&codes::VERSION, what)
        }
        NotATape::Malformed(what) => about(&codes::MALFORMED, what),
        other => about(&codes::MALFORMED, format!("{other:?}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &[u8]) -> (&'static str, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tape.json");
        std::fs::write(&path, text).unwrap();
        let error = load(&path).unwrap_err();
        let dir = format!("{}/", directory.path().display());
        (error.code, error.message.replace(&dir, ""))
    }

    #[test]
    fn what_is_no_tape_is_told_with_its_file() {
        let expected = "the tape tape.json: it has version 2; this program reads 1";
        assert_eq!(problem(br#"{"version": 2}"#), ("cassette-version", expected.to_owned()));
        let expected = "the tape tape.json: it has no `version`";
        assert_eq!(problem(b"{}"), ("cassette-malformed", expected.to_owned()));
        let none = load(Path::new("/nonexistent/tape.json")).unwrap_err();
        assert_eq!(none.code, "cassette-unreadable");
    }

    #[test]
    fn a_pipe_a_device_and_a_directory_are_refused_without_being_opened() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for path in [pipe.as_path(), Path::new("/dev/zero"), directory.path()] {
            let error = load(path).unwrap_err();
            let expected = format!("the tape {} is not a regular file", path.display());
            assert_eq!(
                (error.code, error.message.as_str()),
                ("cassette-unreadable", expected.as_str())
            );
        }
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read_into_memory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tape.json");
        let file = File::create(&path).unwrap();
        file.set_len(Tape::MAX_BYTES as u64 + 1).unwrap();
        assert_eq!(load(&path).unwrap_err().code, "cassette-too-large");
    }
}
