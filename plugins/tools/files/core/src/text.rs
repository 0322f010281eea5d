//! What counts as text, and how its lines end.

use std::fs;
use std::path::Path;

use capsule_guest::Error;

use crate::grants::{Access, refusal};

/// How many bytes at the start of a file are looked at to tell a binary one.
pub const SNIFFED: usize = 8 << 10;
const BYTE_ORDER_MARK: char = '\u{feff}';

/// How the lines of a text end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnds {
    /// All with a line feed, or there are none.
    Lf,
    /// All with a carriage return and a line feed.
    CrLf,
    /// Some this way, some that way.
    Mixed,
}

impl LineEnds {
    /// How the lines of `text` end.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let all = text.matches('\n').count();
        match text.matches("\r\n").count() {
            0 => Self::Lf,
            pairs if pairs == all => Self::CrLf,
            _ => Self::Mixed,
        }
    }
}

/// Whether bytes from the start of a file are those of a binary file: no text has a zero byte.
#[must_use]
pub fn is_binary(start: &[u8]) -> bool {
    start[..start.len().min(SNIFFED)].contains(&0)
}

/// Why bytes are no text, as a sentence for the model. `bad` is the offset of the first byte that is not UTF-8.
#[must_use]
pub fn not_text(path: &str, start: &[u8], bad: u64) -> Error {
    let what = match start {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "is UTF-16, not UTF-8".to_owned(),
        start if is_binary(start) => "is a binary file".to_owned(),
        _ => format!("is not UTF-8 text (byte {bad})"),
    };
    Error::new(format!("'{path}' {what}: this tool takes UTF-8 text only"))
}

/// A text without the mark of its encoding.
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Reads a whole text file of at most `largest` bytes.
///
/// # Errors
///
/// A sentence for the model: no grant, not there, not a file, too large, or no text.
pub fn read_whole(path: &str, largest: u64) -> Result<String, Error> {
    let size = file_size(path, Access::Read)?;
    if size > largest {
        return Err(Error::new(format!(
            "'{path}' has {size} bytes; this tool takes at most {largest}"
        )));
    }
    let bytes = fs::read(path).map_err(|error| refusal(Access::Read, path, &error))?;
    String::from_utf8(bytes)
        .map_err(|error| {
            let bad = error.utf8_error().valid_up_to() as u64;
            not_text(path, error.as_bytes(), bad)
        })
        .and_then(|text| match is_binary(text.as_bytes()) {
            true => Err(not_text(path, text.as_bytes(), 0)),
            false => Ok(text),
        })
}

/// The size of a file, asked for before it is opened: to open a FIFO would wait for a writer.
///
/// # Errors
///
/// A sentence for the model where it is not there, not granted, or not a file.
pub fn file_size(path: &str, access: Access) -> Result<u64, Error> {
    let metadata = fs::metadata(path).map_err(|error| refusal(access, path, &error))?;
    if metadata.is_dir() {
        return Err(Error::new(format!("'{path}' is a directory, not a file")));
    }
    if !metadata.is_file() {
        return Err(Error::new(format!("'{path}' is not a regular file")));
    }
    Ok(metadata.len())
}

/// `text` cut at a character so that it has at most `most` bytes, and whether it was cut.
#[must_use]
pub fn cut(text: &str, most: usize) -> (&str, bool) {
    if text.len() <= most {
        return (text, false);
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], true)
}

/// A path below a directory, as text. Bytes that are not UTF-8 are shown as U+FFFD.
#[must_use]
pub fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_those_of_all_lines() {
        let cases = [
            ("", LineEnds::Lf),
            ("a", LineEnds::Lf),
            ("a\nb\n", LineEnds::Lf),
            ("a\r\nb", LineEnds::CrLf),
            ("a\r\nb\n", LineEnds::Mixed),
            ("a\rb", LineEnds::Lf),
        ];
        for (text, ends) in cases {
            assert_eq!(LineEnds::of(text), ends, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_told_apart() {
        let message = |start: &[u8]| not_text("/x", start, 2).message().to_owned();
        assert_eq!(
            message(b"\xff\xfea\0"),
            "'/x' is UTF-16, not UTF-8: this tool takes UTF-8 text only"
        );
        assert_eq!(
            message(b"\x7fELF\0"),
            "'/x' is a binary file: this tool takes UTF-8 text only"
        );
        assert_eq!(
            message(b"ab\xff"),
            "'/x' is not UTF-8 text (byte 2): this tool takes UTF-8 text only"
        );
    }

    #[test]
    fn a_cut_is_between_characters() {
        assert_eq!(cut("aéb", 4), ("aéb", false));
        assert_eq!(cut("aéb", 2), ("a", true));
        assert_eq!(cut("é", 0), ("", true));
    }
}
