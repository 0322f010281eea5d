//! One JSON value per line.

use std::mem;

use capsule_api::{Error, Frame};

use super::{MAX_FRAME, text, too_long};

/// Decodes lines of JSON. Empty lines are skipped; the values themselves are the driver's to read.
#[derive(Debug, Default)]
pub struct JsonLines {
    line: Vec<u8>,
}

impl JsonLines {
    /// A decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and appends the lines that they complete.
    ///
    /// # Errors
    /// A line is longer than [`MAX_FRAME`].
    pub fn push(&mut self, mut bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), Error> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.take(&bytes[..end])?;
            self.dispatch(frames);
            bytes = &bytes[end + 1..];
        }
        self.take(bytes)
    }

    /// The stream ended; its last line may do without a line feed.
    pub fn finish(&mut self, frames: &mut Vec<Frame>) {
        self.dispatch(frames);
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.line.len() + bytes.len() > MAX_FRAME {
            return Err(too_long());
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn dispatch(&mut self, frames: &mut Vec<Frame>) {
        let data = text(mem::take(&mut self.line));
        let data = data.trim_matches(['\u{feff}', '\r', ' ', '\t']);
        if !data.is_empty() {
            frames.push(Frame {
                event: String::new(),
                data: data.to_owned(),
            });
        }
    }
}
