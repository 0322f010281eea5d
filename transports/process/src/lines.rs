//! Output of a program, line by line, whatever way the bytes arrive.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest line that is kept, in bytes without its newline. A longer one is skipped.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// How much is read at once.
const READ: usize = 64 * 1024;

/// A line without its end (`\n` or `\r\n`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line of text.
    Text {
        /// The text.
        text: String,
        /// Whether bytes that are not UTF-8 were replaced by U+FFFD.
        lossy: bool,
    },
    /// A line over the limit. Its text is gone; the lines after it are whole.
    TooLong {
        /// How long it was, in bytes.
        bytes: usize,
    },
}

/// Cuts bytes into lines. The same bytes give the same lines, however they are split over the calls.
#[derive(Debug)]
pub struct LineSplitter {
    buffer: BytesMut,
    /// Bytes of the buffer that are known to hold no newline, so that a long line is not scanned again with every read.
    scanned: usize,
    /// Bytes of an over-long line that were already thrown away.
    skipped: usize,
    limit: usize,
}

impl LineSplitter {
    /// A splitter that skips lines longer than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            skipped: 0,
            limit,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, if there is one.
    pub fn next_line(&mut self) -> Option<Line> {
        let end = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n');
        if let Some(end) = end.map(|end| end + self.scanned) {
            let line = self.buffer.split_to(end);
            self.buffer.advance(1);
            self.scanned = 0;
            return Some(self.line(&line));
        }
        self.scanned = self.buffer.len();
        // One byte of grace: a carriage return at the limit is not part of the line.
        if self.buffer.len() > self.limit + 1 {
            // The last byte stays: it may be the carriage return of this line's end.
            self.skipped += self.buffer.len() - 1;
            self.buffer.advance(self.buffer.len() - 1);
            self.scanned = 1;
        }
        None
    }

    /// What is left when the output ends: a last line without a newline.
    pub fn finish(&mut self) -> Option<Line> {
        if self.buffer.is_empty() && self.skipped == 0 {
            return None;
        }
        let line = self.buffer.split();
        self.scanned = 0;
        Some(self.line(&line))
    }

    fn line(&mut self, bytes: &[u8]) -> Line {
        let skipped = std::mem::take(&mut self.skipped);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if skipped > 0 || bytes.len() > self.limit {
            return Line::TooLong {
                bytes: skipped + bytes.len(),
            };
        }
        let text = String::from_utf8_lossy(bytes);
        Line::Text {
            lossy: matches!(text, std::borrow::Cow::Owned(_)),
            text: text.into_owned(),
        }
    }
}

/// Reads lines from a stream.
#[derive(Debug)]
pub struct LineReader<R> {
    stream: R,
    splitter: LineSplitter,
    chunk: Vec<u8>,
    bytes: u64,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// A reader of lines of at most [`MAX_LINE`] bytes.
    pub fn new(stream: R) -> Self {
        Self {
            stream,
            splitter: LineSplitter::new(MAX_LINE),
            chunk: vec![0; READ],
            bytes: 0,
            ended: false,
        }
    }

    /// Reads until the stream ends and keeps nothing, in pieces that are not cut into lines: what writes without an end takes little time
    /// from others. Lines that come after it, where it was dropped before the end, may be parts of lines. Cancel-safe.
    ///
    /// # Errors
    /// Reading failed.
    pub async fn discard(&mut self) -> io::Result<()> {
        self.splitter = LineSplitter::new(self.splitter.limit);
        while !self.ended {
            match self.stream.read(&mut self.chunk).await? {
                0 => self.ended = true,
                read => self.bytes += read as u64,
            }
        }
        Ok(())
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next line; `None` at the end of the stream. Cancel-safe: what was read stays in the reader.
    ///
    /// # Errors
    /// Reading failed.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.splitter.next_line() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(self.splitter.finish());
            }
            match self.stream.read(&mut self.chunk).await? {
                0 => self.ended = true,
                read => {
                    self.bytes += read as u64;
                    self.splitter.push(&self.chunk[..read]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 8;

    fn text(text: &str) -> Line {
        Line::Text {
            text: text.into(),
            lossy: false,
        }
    }

    fn lines(pieces: &[&[u8]]) -> Vec<Line> {
        let mut splitter = LineSplitter::new(LIMIT);
        let mut lines = Vec::new();
        for piece in pieces {
            splitter.push(piece);
            while let Some(line) = splitter.next_line() {
                lines.push(line);
            }
        }
        lines.extend(splitter.finish());
        lines
    }

    #[test]
    fn p_16_the_last_line_needs_no_newline() {
        assert_eq!(
            lines(&[b"one\ntw", b"o\r\n\nend"]),
            [text("one"), text("two"), text(""), text("end")]
        );
        assert_eq!(lines(&[b"one\n"]), [text("one")]);
        assert_eq!(lines(&[]), []);
    }

    #[test]
    fn p_16_a_character_cut_at_a_read_is_whole_and_bad_bytes_are_told() {
        let (head, tail) = "é\n".as_bytes().split_at(1);
        assert_eq!(lines(&[head, tail]), [text("é")]);
        let lossy = Line::Text {
            text: "a\u{fffd}b".into(),
            lossy: true,
        };
        assert_eq!(lines(&[b"a\xffb\n"]), [lossy]);
    }

    #[test]
    fn p_16_a_line_over_the_limit_is_skipped_and_the_next_is_whole() {
        let long = Line::TooLong { bytes: 9 };
        assert_eq!(
            lines(&[b"12345678\n123456789\nok\n"]),
            [text("12345678"), long.clone(), text("ok")]
        );
        assert_eq!(lines(&[b"12345678\r\n123", b"456789"]), [text("12345678"), long]);
    }

    #[tokio::test]
    async fn a_stream_of_one_long_line_is_read_whole() {
        let sent = vec![b'x'; 300_000];
        let mut reader = LineReader::new(&sent[..]);
        let Some(Line::Text { text, lossy: false }) = reader.next().await.unwrap() else {
            panic!("a line of text");
        };
        assert_eq!((text.len(), reader.next().await.unwrap()), (300_000, None));
    }

    #[tokio::test]
    async fn what_is_discarded_is_counted_and_gives_no_line() {
        let mut reader = LineReader::new(&b"one\ntwo\nthree"[..]);
        assert_eq!(reader.next().await.unwrap(), Some(text("one")));
        reader.discard().await.unwrap();
        assert_eq!((reader.bytes(), reader.next().await.unwrap()), (13, None));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines(bytes in prop::collection::vec(prop_oneof![
            Just(b'\n'), Just(b'\r'), Just(b'a'), Just(0xc3), Just(0xa9), any::<u8>()
        ], 0..80), cuts in prop::collection::vec(0usize..80, 0..8)) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(lines(&pieces), lines(&[&bytes]));
        }
    }
}
