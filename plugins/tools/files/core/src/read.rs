//! Reads lines of a text file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use capsule_guest::{Error, Output, StateEffect};

use crate::grants::{Access, refusal};
use crate::text::{SNIFFED, file_size, is_binary, not_text, without_mark};

/// Lines read where nothing else is asked for.
pub const DEFAULT_LINES: u64 = 500;
/// Lines read at most.
pub const MOST_LINES: u64 = 5000;
/// Bytes of an answer: half of the output limit that a tool has by default.
pub const MOST_BYTES: usize = 512 << 10;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The file.
    pub path: &'a str,
    /// The first line, counted from 1.
    pub from: u64,
    /// How many lines.
    pub lines: u64,
    /// Whether each line begins with its number.
    pub numbers: bool,
}

/// Lines of a file, as they are shown.
#[derive(Debug, Default, PartialEq, Eq)]
struct Part {
    text: String,
    /// Lines shown.
    shown: u64,
    /// Whether a line feed came after a carriage return, which is not shown.
    crlf: bool,
    /// Why it ends before the lines asked for or the end of the file.
    end: End,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum End {
    /// At the end of the file, which has so many lines.
    #[default]
    File,
    /// After the lines asked for; there are more.
    Lines,
    /// Before a line that no longer fits.
    Full,
    /// In a line that does not fit alone.
    LongLine,
}

/// Reads lines of a text file. Line ends are shown as line feeds.
///
/// # Errors
///
/// A sentence for the model: no grant, not there, no text, or fewer lines than asked for.
pub fn read(asked: Asked<'_>) -> Result<Output, Error> {
    let path = asked.path;
    found(asked)
        .map(|output| output.state_effect(StateEffect::Read).resource_id(path))
        .map_err(|why| why.metadata("state_effect", "read").metadata("resource_id", path))
}

fn found(asked: Asked<'_>) -> Result<Output, Error> {
    let Asked { path, .. } = asked;
    let from = asked.from.max(1);
    let size = file_size(path, Access::Read)?;
    let told = |error: io::Error| refusal(Access::Read, path, &error);
    let mut file = BufReader::with_capacity(64 << 10, File::open(path).map_err(told)?);
    let start = file.fill_buf().map_err(told)?;
    let sniffed = start[..start.len().min(SNIFFED)].to_vec();
    if is_binary(&sniffed) {
        return Err(not_text(path, &sniffed, 0));
    }
    let before = skip_lines(&mut file, from - 1).map_err(told)?;
    if before.lines < from - 1 || (from > 1 && before.at_end) {
        let lines = before.lines;
        return Err(Error::new(format!(
            "'{path}' has {lines} lines: there is no line {from}"
        )));
    }
    let part = take_lines(&mut file, &asked, from, before.bytes, &sniffed)?;
    Ok(output(path, from, size, part))
}

struct Skipped {
    /// Whole lines before here.
    lines: u64,
    bytes: u64,
    at_end: bool,
}

fn skip_lines(file: &mut impl BufRead, most: u64) -> io::Result<Skipped> {
    let mut skipped = Skipped {
        lines: 0,
        bytes: 0,
        at_end: false,
    };
    let mut open = false;
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            skipped.at_end = true;
            // A last line needs no line feed.
            skipped.lines += u64::from(open);
            return Ok(skipped);
        }
        if skipped.lines == most {
            return Ok(skipped);
        }
        let (used, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        file.consume(used);
        skipped.bytes += used as u64;
        skipped.lines += u64::from(ended);
        open = !ended;
    }
}

fn take_lines(
    file: &mut impl BufRead,
    asked: &Asked<'_>,
    from: u64,
    mut offset: u64,
    start: &[u8],
) -> Result<Part, Error> {
    let told = |error: io::Error| refusal(Access::Read, asked.path, &error);
    let most = asked.lines.clamp(1, MOST_LINES);
    let mut part = Part::default();
    while part.shown < most {
        let mut bytes = Vec::new();
        let read = file
            .by_ref()
            .take(MOST_BYTES as u64 + 1)
            .read_until(b'\n', &mut bytes)
            .map_err(told)? as u64;
        if read == 0 {
            return Ok(part);
        }
        let long = bytes.len() > MOST_BYTES;
        let line = line(asked.path, bytes, offset, start, long)?;
        let first = offset == 0;
        offset += read;
        let line = if first { without_mark(&line) } else { &line };
        let number = if asked.numbers {
            format!("{:>6}\t", from + part.shown)
        } else {
            String::new()
        };
        if part.text.len() + number.len() + line.len() > MOST_BYTES && part.shown > 0 {
            part.end = End::Full;
            return Ok(part);
        }
        part.text.push_str(&number);
        match line.strip_suffix("\r\n") {
            Some(line) => {
                part.crlf = true;
                part.text.push_str(line);
                part.text.push('\n');
            }
            None => part.text.push_str(line),
        }
        part.shown += 1;
        if long {
            part.end = End::LongLine;
            return Ok(part);
        }
    }
    if !file.fill_buf().map_err(told)?.is_empty() {
        part.end = End::Lines;
    }
    Ok(part)
}

/// One line as text. One that is cut may end in the middle of a character.
fn line(path: &str, mut bytes: Vec<u8>, offset: u64, start: &[u8], cut: bool) -> Result<String, Error> {
    if let Err(error) = std::str::from_utf8(&bytes) {
        if !(cut && error.error_len().is_none()) {
            return Err(not_text(path, start, offset + error.valid_up_to() as u64));
        }
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).map_err(|_| not_text(path, start, offset))
}

fn output(path: &str, from: u64, size: u64, part: Part) -> Output {
    let next = from + part.shown;
    let mut text = part.text;
    if part.shown == 0 {
        text.push_str("[an empty file]");
    }
    let mut notes = Vec::new();
    match part.end {
        End::File => {}
        End::Lines | End::Full => notes.push(format!("lines {from} to {}; go on with from_line {next}", next - 1)),
        End::LongLine => notes.push(format!(
            "line {} is longer than {MOST_BYTES} bytes and cut here",
            next - 1
        )),
    }
    if part.crlf {
        notes.push("lines end with CR LF".to_owned());
    }
    if !notes.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{}]", notes.join("; ")));
    }
    let truncated = part.end != End::File;
    let output = Output::text(text)
        .summary(format!(
            "{path}: {} lines from line {from}, of {size} bytes",
            part.shown
        ))
        .truncated(truncated);
    match part.end {
        End::Lines | End::Full => output.metadata("next_line", next.to_string()),
        _ => output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{directory_with, failed, output, text};

    fn content(bytes: &[u8], from: u64, lines: u64, numbers: bool) -> Result<Output, Error> {
        let dir = directory_with(&[("f", bytes)]);
        let path = text(&dir.path().join("f"));
        let asked = Asked {
            path: &path,
            from,
            lines,
            numbers,
        };
        // The path is another in each test: it is told as `f`.
        match found(asked) {
            Ok(output) => Ok(output),
            Err(error) => Err(Error::new(error.message().replace(&path, "f"))),
        }
    }

    fn shown(bytes: &[u8], from: u64, lines: u64, numbers: bool) -> String {
        content(bytes, from, lines, numbers).unwrap().data().to_owned()
    }

    #[test]
    fn a_short_file_is_read_whole() {
        let dir = directory_with(&[("f", "żółw\nb".as_bytes())]);
        let path = text(&dir.path().join("f"));
        let asked = Asked {
            path: &path,
            from: 1,
            lines: DEFAULT_LINES,
            numbers: false,
        };
        let expected = Output::text("żółw\nb").summary(format!("{path}: 2 lines from line 1, of 9 bytes"));
        assert_eq!(read(asked), Ok(output(expected, StateEffect::Read, &path)));
    }

    #[test]
    fn a_long_file_comes_in_parts_that_say_where_to_go_on() {
        let file = b"a\nb\nc\n";
        assert_eq!(shown(file, 1, 2, false), "a\nb\n[lines 1 to 2; go on with from_line 3]");
        assert_eq!(shown(file, 3, 2, false), "c\n");
        assert_eq!(
            shown(file, 2, 1, true),
            "     2\tb\n[lines 2 to 2; go on with from_line 3]"
        );
        assert_eq!(shown(b"", 1, 2, false), "[an empty file]");
    }

    #[test]
    fn a_part_that_begins_after_the_end_fails_and_says_how_many_lines_there_are() {
        let message = |bytes: &[u8], from| content(bytes, from, 1, false).unwrap_err().message().to_owned();
        assert_eq!(message(b"a\nb\n", 3), "'f' has 2 lines: there is no line 3");
        assert_eq!(message(b"a\nb", 3), "'f' has 2 lines: there is no line 3");
        assert_eq!(message(b"", 2), "'f' has 0 lines: there is no line 2");
        assert_eq!(shown(b"a\nb", 2, 1, false), "b");
    }

    #[test]
    fn line_ends_and_the_mark_of_the_encoding_are_not_shown() {
        assert_eq!(
            shown("\u{feff}a\r\nb\r\n".as_bytes(), 1, 9, false),
            "a\nb\n[lines end with CR LF]"
        );
    }

    #[test]
    fn one_answer_is_bounded_also_where_a_line_is_not() {
        let two = ["x".repeat(MOST_BYTES - 10), "y".repeat(20)].join("\n");
        let first = shown(two.as_bytes(), 1, 9, false);
        assert!(
            first.ends_with("x\n[lines 1 to 1; go on with from_line 2]"),
            "{}",
            &first[first.len() - 60..]
        );

        // Cut in the middle of a character of two bytes.
        let one = format!("x{}", "é".repeat(MOST_BYTES));
        let cut = shown(one.as_bytes(), 1, 9, false);
        assert!(
            cut.ends_with("é\n[line 1 is longer than 524288 bytes and cut here]"),
            "{}",
            cut.len()
        );
        assert!(cut.len() < MOST_BYTES + 100);
    }

    #[test]
    fn what_is_no_text_is_refused_in_words() {
        let message = |bytes: &[u8]| content(bytes, 1, 9, false).unwrap_err().message().to_owned();
        assert_eq!(
            message(b"\x7fELF\0\x01"),
            "'f' is a binary file: this tool takes UTF-8 text only"
        );
        assert_eq!(
            message(b"ab\nc\xff"),
            "'f' is not UTF-8 text (byte 4): this tool takes UTF-8 text only"
        );
        assert_eq!(
            message(b"ab\xc3"),
            "'f' is not UTF-8 text (byte 2): this tool takes UTF-8 text only"
        );
    }

    #[test]
    fn a_directory_and_a_device_are_no_files() {
        let dir = directory_with(&[]);
        for (path, what) in [
            (text(dir.path()), "a directory, not a file"),
            ("/dev/null".to_owned(), "not a regular file"),
        ] {
            let asked = Asked {
                path: &path,
                from: 1,
                lines: 1,
                numbers: false,
            };
            assert_eq!(read(asked), Err(failed(format!("'{path}' is {what}"), "read", &path)));
        }
    }
}
