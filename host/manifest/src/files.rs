//! Small text files, read with bounds.

use std::{fmt, fs::File, io, io::Read as _, path::Path};

/// The most that a manifest, an `.env` or a system prompt may have.
const LARGEST: u64 = 1 << 20;

/// Why a file gives no text.
#[derive(Debug)]
pub(crate) enum Unreadable {
    Missing,
    NotAFile,
    TooLarge,
    NotText { line: u64, column: u64 },
    Io(io::Error),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the file does not exist"),
            Self::NotAFile => f.write_str("this is not a regular file"),
            Self::TooLarge => f.write_str("the file is larger than 1 MiB"),
            Self::NotText { line, column } => write!(f, "the file is not UTF-8 text (line {line}, column {column})"),
            Self::Io(error) => write!(f, "the file cannot be read: {error}"),
        }
    }
}

/// The file's text, at most 1 MiB. Asks for the kind of file first: to open a pipe would wait for its writer.
pub(crate) fn read(path: &Path) -> Result<String, Unreadable> {
    let by_kind = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Unreadable::Missing,
        _ => Unreadable::Io(error),
    };
    if !std::fs::metadata(path).map_err(by_kind)?.is_file() {
        return Err(Unreadable::NotAFile);
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(by_kind)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(Unreadable::Io)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Unreadable::TooLarge);
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
        let last = before.rsplit('\n').next().unwrap_or_default();
        Unreadable::NotText {
            line: 1 + before.matches('\n').count() as u64,
            column: 1 + last.chars().count() as u64,
        }
    })
}
