//! Reads what a path names. All failures are sentences for the model.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use capsule_guest::Error;

/// What a path named.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Text(Part),
    Directory(Listing),
}

/// A part of a text file. It begins and ends between two characters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) text: String,
    /// Offset of the first byte of `text` in the file.
    pub(crate) from: u64,
    /// Offset after the last byte of `text`.
    pub(crate) to: u64,
    /// Bytes in the file.
    pub(crate) size: u64,
}

/// The entries of a directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    /// Names in order, a directory's with a slash; at most [`MOST_ENTRIES`].
    pub(crate) entries: Vec<String>,
    /// How many there are.
    pub(crate) total: usize,
}

pub(crate) const MOST_ENTRIES: usize = 1000;

/// Reads at most `max_bytes` of the file from `offset` on, or lists the directory.
///
/// # Errors
///
/// A sentence that says why not; a denial where no grant allows it.
pub(crate) fn read(path: &str, offset: u64, max_bytes: u64) -> Result<Found, Error> {
    // Before opening: to open a FIFO would wait for a writer.
    let metadata = fs::metadata(path).map_err(|error| refusal(path, &error))?;
    if metadata.is_dir() {
        return list(path).map(Found::Directory).map_err(|error| refusal(path, &error));
    }
    if !metadata.is_file() {
        return Err(Error::new(format!("'{path}' is neither a file nor a directory")));
    }
    if offset > metadata.len() {
        return Err(Error::new(format!(
            "offset {offset} is after the end: '{path}' has {} bytes",
            metadata.len()
        )));
    }
    let bytes = read_bytes(path, offset, max_bytes).map_err(|error| refusal(path, &error))?;
    // The file may have grown since its size was read.
    let size = metadata.len().max(offset + bytes.len() as u64);
    part(path, bytes, offset, size).map(Found::Text)
}

fn read_bytes(path: &str, offset: u64, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn part(path: &str, mut bytes: Vec<u8>, offset: u64, size: u64) -> Result<Part, Error> {
    let at_end = offset + bytes.len() as u64 >= size;
    // A caller may name any offset: begin at the next character, not in the middle of one.
    let skip = if offset == 0 { 0 } else { leading_continuation(&bytes) };
    bytes.drain(..skip);
    let from = offset + skip as u64;
    if let Err(error) = std::str::from_utf8(&bytes) {
        let cut_by_limit = error.error_len().is_none() && !at_end;
        if !cut_by_limit {
            let bad = from + error.valid_up_to() as u64;
            return Err(Error::new(format!(
                "'{path}' is not UTF-8 text (byte {bad}): this tool reads text only"
            )));
        }
        bytes.truncate(error.valid_up_to());
    }
    let to = from + bytes.len() as u64;
    let text = String::from_utf8(bytes).map_err(|_| Error::new(format!("'{path}' is not UTF-8 text")))?;
    Ok(Part { text, from, to, size })
}

/// How many bytes at the start belong to a character that began before: three at most.
fn leading_continuation(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|byte| *byte & 0b1100_0000 == 0b1000_0000)
        .count()
}

fn list(path: &str) -> io::Result<Listing> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let slash = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            "/"
        } else {
            ""
        };
        entries.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    entries.sort_unstable();
    let total = entries.len();
    entries.truncate(MOST_ENTRIES);
    Ok(Listing { entries, total })
}

fn refusal(path: &str, error: &io::Error) -> Error {
    if no_grant(error) {
        return Error::denied(format!(
            "not readable here: no grant covers '{path}'; a path begins with a directory that the \
             capsule grants this tool"
        ));
    }
    if forbidden(error) {
        return Error::denied(format!(
            "not readable here: '{path}' is denied, or leads out of the granted directory"
        ));
    }
    Error::new(match error.kind() {
        ErrorKind::NotFound => format!("not found: '{path}'"),
        ErrorKind::NotADirectory => format!("not found: a part of '{path}' is not a directory"),
        _ => format!("cannot read '{path}': {error}"),
    })
}

/// Whether the path lies below none of the granted directories. The standard library finds that
/// out before it asks the host, and has no kind of error for it.
fn no_grant(error: &io::Error) -> bool {
    error.raw_os_error().is_none() && error.to_string().contains("pre-opened file descriptor")
}

/// Whether the sandbox refused: it answers so for a path or link that leaves the granted directory,
/// and for what its owner may not read (EPERM, EACCES).
fn forbidden(error: &io::Error) -> bool {
    /// WASI's own number for a right that a descriptor lacks; the standard library has no kind for it.
    const ENOTCAPABLE: i32 = 76;
    error.kind() == ErrorKind::PermissionDenied
        || (cfg!(target_os = "wasi") && error.raw_os_error() == Some(ENOTCAPABLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_a_grant_is_denied() {
        // The words of the standard library on this target.
        let words = "failed to find a pre-opened file descriptor through which \"/etc\" could be opened";

        let message = "not readable here: no grant covers '/etc'; a path begins with a directory that \
            the capsule grants this tool";
        assert_eq!(refusal("/etc", &io::Error::other(words)), Error::denied(message));
    }

    #[test]
    fn what_the_sandbox_refuses_is_denied_and_what_is_not_there_is_not() {
        let message = "not readable here: '/x' is denied, or leads out of the granted directory";
        assert_eq!(
            refusal("/x", &io::Error::from(ErrorKind::PermissionDenied)),
            Error::denied(message)
        );
        assert_eq!(
            refusal("/x", &io::Error::from(ErrorKind::NotFound)),
            Error::new("not found: '/x'")
        );
    }
}
