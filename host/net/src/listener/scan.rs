//! Finds requests whose length is ambiguous.
//!
//! A request with both `Content-Length` and `Transfer-Encoding` is the stuff of request smuggling. hyper lets the second win and takes
//! the first out of the headers, so the guard could not see it there; this scan of the raw head can.

/// Reads a head line by line, keeping no more of a line than the longest name looked for.
#[derive(Debug, Default)]
pub(super) struct HeadScan {
    name: Vec<u8>,
    named: bool,
    /// A line with something in it has come: empty lines before it are none of the head.
    begun: bool,
    line_is_empty: bool,
    length: bool,
    encoding: bool,
    done: bool,
}

const LONGEST: usize = "transfer-encoding".len();

impl HeadScan {
    /// Takes the next bytes of the head; what follows its end is ignored.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.done {
                return;
            }
            match byte {
                b'\n' => self.end_line(),
                b'\r' => {}
                _ => self.within_line(byte),
            }
        }
    }

    fn end_line(&mut self) {
        self.done = self.begun && self.line_is_empty;
        self.line_is_empty = true;
        self.named = false;
        self.name.clear();
    }

    fn within_line(&mut self, byte: u8) {
        (self.begun, self.line_is_empty) = (true, false);
        if self.named {
            return;
        }
        if byte == b':' {
            self.length |= self.name == b"content-length";
            self.encoding |= self.name == b"transfer-encoding";
        }
        if byte == b':' || self.name.len() == LONGEST {
            self.named = true;
        } else {
            self.name.push(byte.to_ascii_lowercase());
        }
    }

    /// Whether a whole head was seen, and it does not give its body two lengths.
    pub(super) fn is_sound(&self) -> bool {
        self.done && !(self.length && self.encoding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sound(head: &str, cut: usize) -> bool {
        let mut scan = HeadScan::default();
        let (first, second) = head.as_bytes().split_at(cut.min(head.len()));
        scan.take(first);
        scan.take(second);
        scan.is_sound()
    }

    const BOTH: &str = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nX: y\r\nCONTENT-length: 3\r\n\r\nabc";
    const BODY_HAS_ONE: &str = "POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\nTransfer-Encoding: chunked\r\n";
    const VALUE_HAS_ONE: &str =
        "POST / HTTP/1.1\r\nContent-Length: 9\r\nX: transfer-encoding: a\r\nX-Transfer-Encoding: b\r\n\r\n";

    proptest! {
        #[test]
        fn however_the_bytes_arrive(cut in 0..120usize) {
            prop_assert!(!sound(BOTH, cut));
            let after_empty_lines = ["\r\n\r\n\n", BOTH].concat();
            prop_assert!(!sound(&after_empty_lines, cut));
            prop_assert!(sound(BODY_HAS_ONE, cut));
            prop_assert!(!sound(&BODY_HAS_ONE[..cut.min(36)], cut), "half a head");
            prop_assert!(sound(VALUE_HAS_ONE, cut));
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let mut scan = HeadScan::default();
            scan.take(&bytes);
            prop_assert!(scan.name.len() <= LONGEST);
        }
    }
}
