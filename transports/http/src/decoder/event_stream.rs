//! `text/event-stream` as the WHATWG HTML standard defines it (section 9.2.6).

use std::{mem, time::Duration};

use capsule_api::{Error, Frame};
use memchr::memchr2;

use super::{BOM, MAX_FRAME, text, too_long};

/// Decodes server-sent events.
///
/// It departs from the standard in one point: an event whose lines are whole but whose closing blank line is missing at the end of the
/// stream counts, because some providers leave that line out after their last event.
#[derive(Debug, Default)]
pub struct EventStream {
    /// The line that is not whole yet.
    line: Vec<u8>,
    event: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a CR that ended a line; an LF that follows belongs to it.
    after_cr: bool,
    past_first_line: bool,
    last_event_id: String,
    reconnection: Option<Duration>,
}

impl EventStream {
    /// A decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// The last `id` of the stream; empty where none was sent.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// The reconnection time that the stream asked for with `retry`.
    pub fn reconnection(&self) -> Option<Duration> {
        self.reconnection
    }

    /// Takes the next bytes and appends the events that they complete.
    ///
    /// # Errors
    /// An event is longer than [`MAX_FRAME`].
    pub fn push(&mut self, mut bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        if mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
            bytes = &bytes[1..];
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            self.whole_line(&bytes[..end], frames)?;
            let crlf = bytes[end] == b'\r' && bytes.get(end + 1) == Some(&b'\n');
            self.after_cr = bytes[end] == b'\r' && end + 1 == bytes.len();
            bytes = &bytes[end + 1 + usize::from(crlf)..];
        }
        self.fits(bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// The stream ended. A line without its end is dropped.
    pub fn finish(&mut self, frames: &mut Vec<Frame>) {
        self.line.clear();
        self.dispatch(frames);
    }

    fn whole_line(&mut self, rest: &[u8], frames: &mut Vec<Frame>) -> Result<(), Error> {
        self.fits(rest.len())?;
        if self.line.is_empty() {
            // The common case: the whole line lies in this chunk and need not be copied together.
            self.process(rest, frames);
        } else {
            let mut line = mem::take(&mut self.line);
            line.extend_from_slice(rest);
            self.process(&line, frames);
            line.clear();
            self.line = line;
        }
        Ok(())
    }

    fn process(&mut self, mut line: &[u8], frames: &mut Vec<Frame>) {
        if !mem::replace(&mut self.past_first_line, true) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(frames);
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => self.last_event_id = text(value.to_vec()),
            b"retry" => {
                let digits = str::from_utf8(value)
                    .ok()
                    .filter(|v| v.bytes().all(|b| b.is_ascii_digit()));
                if let Some(ms) = digits.and_then(|digits| digits.parse().ok()) {
                    self.reconnection = Some(Duration::from_millis(ms));
                }
            }
            // A comment (nothing before the colon) or a field that the standard does not know.
            _ => {}
        }
    }

    fn dispatch(&mut self, frames: &mut Vec<Frame>) {
        let event = mem::take(&mut self.event);
        if mem::take(&mut self.has_data) {
            let data = text(mem::take(&mut self.data));
            frames.push(Frame {
                event: text(event),
                data,
            });
        }
    }

    fn fits(&self, more: usize) -> Result<(), Error> {
        let held = self.line.len() + self.data.len() + self.event.len();
        if held + more > MAX_FRAME {
            Err(too_long())
        } else {
            Ok(())
        }
    }
}
