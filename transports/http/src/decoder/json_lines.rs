//! One JSON value per line.

use capsule_api::{Error, Frame};

use super::{BOM, MAX_FRAME, text, too_long};

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
            if self.line.is_empty() {
                // The common case: the whole line lies in this chunk and need not be copied together.
                fits(end)?;
                dispatch(&bytes[..end], frames);
            } else {
                self.take(&bytes[..end])?;
                dispatch(&self.line, frames);
                self.line.clear();
            }
            bytes = &bytes[end + 1..];
        }
        self.take(bytes)
    }

    /// The stream ended; its last line may do without a line feed.
    pub fn finish(&mut self, frames: &mut Vec<Frame>) {
        dispatch(&self.line, frames);
        self.line.clear();
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        fits(self.line.len() + bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }
}

fn fits(length: usize) -> Result<(), Error> {
    if length > MAX_FRAME { Err(too_long()) } else { Ok(()) }
}

fn dispatch(line: &[u8], frames: &mut Vec<Frame>) {
    let line = line.strip_prefix(BOM).unwrap_or(line).trim_ascii();
    if !line.is_empty() {
        let event = String::new();
        let data = text(line.to_vec());
        frames.push(Frame { event, data });
    }
}
