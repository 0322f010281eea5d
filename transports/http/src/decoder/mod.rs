//! Bytes to frames, for every driver. Pure: no I/O, no time.
//!
//! However the bytes are cut (inside a character, between CR and LF, byte by byte), the frames are the same.

mod event_stream;
mod json_lines;
#[cfg(test)]
mod tests;

use capsule_api::{Error, Frame, Framing};

use crate::codes;

pub use event_stream::EventStream;
pub use json_lines::JsonLines;

/// The longest frame in bytes; a longer one is an error, not a cut.
pub const MAX_FRAME: usize = 16 << 20;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// A decoder of one stream, of whichever framing.
#[derive(Debug)]
pub enum Framer {
    /// Server-sent events.
    EventStream(EventStream),
    /// JSON values, one per line.
    JsonLines(JsonLines),
}

impl Framer {
    /// A decoder at the start of a stream.
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::EventStream => Self::EventStream(EventStream::new()),
            Framing::JsonLines => Self::JsonLines(JsonLines::new()),
        }
    }

    /// Takes the next bytes and appends the frames that they complete.
    ///
    /// # Errors
    /// A frame is longer than [`MAX_FRAME`]. The decoder is of no use after that.
    pub fn push(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), Error> {
        match self {
            Self::EventStream(decoder) => decoder.push(bytes, frames),
            Self::JsonLines(decoder) => decoder.push(bytes, frames),
        }
    }

    /// The stream ended: appends the frame whose end mark is missing, if its last line is whole.
    pub fn finish(&mut self, frames: &mut Vec<Frame>) {
        match self {
            Self::EventStream(decoder) => decoder.finish(frames),
            Self::JsonLines(decoder) => decoder.finish(frames),
        }
    }
}

fn too_long() -> Error {
    let message = format!("a frame of the stream is longer than {} MiB", MAX_FRAME >> 20);
    Error::new(&codes::FRAME_TOO_LONG, message)
}

/// Text of whole lines. A character is never cut here; bytes that are no UTF-8 become U+FFFD, as the standard asks.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
