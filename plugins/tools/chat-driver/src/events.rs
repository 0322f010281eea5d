//! The data of a stream's events. Pure.

/// Splits bytes into events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The line that is not whole yet.
    line: Vec<u8>,
    /// The data of the event that is not whole yet.
    data: Option<String>,
    /// Whether the last byte was a CR, whose LF may follow.
    after_cr: bool,
}

impl Events {
    /// Takes more bytes; each event that became whole goes to `event`.
    pub(crate) fn take(&mut self, bytes: &[u8], mut event: impl FnMut(&str)) {
        for byte in bytes {
            let ends = match byte {
                b'\n' if self.after_cr => false,
                b'\n' | b'\r' => true,
                other => {
                    self.line.push(*other);
                    false
                }
            };
            self.after_cr = *byte == b'\r';
            if ends {
                let line = std::mem::take(&mut self.line);
                self.line(&String::from_utf8_lossy(&line), &mut event);
            }
        }
    }

    fn line(&mut self, line: &str, event: &mut impl FnMut(&str)) {
        if line.is_empty() {
            if let Some(data) = self.data.take() {
                event(&data);
            }
            return;
        }
        // A byte order mark may begin the stream.
        let line = line.trim_start_matches('\u{feff}');
        if let Some(more) = line.strip_prefix("data:") {
            let more = more.strip_prefix(' ').unwrap_or(more);
            match &mut self.data {
                Some(data) => *data = format!("{data}\n{more}"),
                none => *none = Some(more.to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_the_bytes_are_cut_the_events_are_the_same() {
        let stream =
            "\u{feff}data: one\r\n: comment\r\n\r\ndata:zw\u{f6}\ndata: lf\n\nevent: x\n\ndata: [DONE]\r\rdata: half";
        for size in 1..stream.len() {
            let (mut events, mut seen) = (Events::default(), Vec::new());
            for piece in stream.as_bytes().chunks(size) {
                events.take(piece, |data| seen.push(data.to_owned()));
            }
            assert_eq!(seen, ["one", "zw\u{f6}\nlf", "[DONE]"], "{size}");
        }
    }
}
