//! Frames, read as simply as can be: lines are collected until a frame is whole.

use capsule_api::{Frame, Framing};

/// A reader of frames from bytes that come in any pieces.
pub(super) struct Lines {
    framing: Framing,
    open: Vec<u8>,
    frame: Option<Frame>,
}

impl Lines {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            open: Vec::new(),
            frame: None,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) {
        self.open.extend_from_slice(bytes);
        while let Some(end) = self.open.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.open.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
            self.line(&line, frames);
        }
    }

    pub(super) fn finish(mut self, frames: &mut Vec<Frame>) {
        let rest = String::from_utf8_lossy(&std::mem::take(&mut self.open)).into_owned();
        self.line(&rest, frames);
        self.line("", frames);
    }

    fn line(&mut self, line: &str, frames: &mut Vec<Frame>) {
        match self.framing {
            Framing::JsonLines if line.trim().is_empty() => {}
            Framing::JsonLines => frames.push(Frame {
                event: String::new(),
                data: line.to_owned(),
            }),
            Framing::EventStream if line.is_empty() => {
                frames.extend(self.frame.take().filter(|frame| !frame.data.is_empty()));
            }
            Framing::EventStream => self.field(line),
        }
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        let frame = self.frame.get_or_insert_default();
        match name {
            "event" => value.clone_into(&mut frame.event),
            "data" if frame.data.is_empty() => value.clone_into(&mut frame.data),
            "data" => {
                frame.data.push('\n');
                frame.data.push_str(value);
            }
            _ => {}
        }
    }
}
