//! Text that may have to be taken back from a terminal.

use unicode_width::UnicodeWidthChar as _;

/// Where the cursor is, as far as what was written since a mark tells.
#[derive(Debug)]
pub(super) struct Screen {
    columns: usize,
    rows: usize,
    /// Cursor column of the mark, and now.
    mark: usize,
    column: usize,
    /// Rows that the cursor went down since the mark.
    down: usize,
}

impl Screen {
    /// A screen of this size with the cursor at the beginning of a line.
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self {
            columns: columns.max(1),
            rows: rows.max(1),
            mark: 0,
            column: 0,
            down: 0,
        }
    }

    /// What follows may be taken back.
    pub(super) fn mark(&mut self) {
        self.mark = self.column;
        self.down = 0;
    }

    /// Text was written.
    pub(super) fn wrote(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\n' => self.next_line(),
                '\t' => self.column = (self.column / 8 * 8 + 8).min(self.columns - 1),
                c => {
                    let width = c.width().unwrap_or(0);
                    if self.column + width > self.columns {
                        self.next_line();
                    }
                    self.column += width;
                }
            }
        }
    }

    /// Whether the cursor is at the beginning of a line.
    pub(super) fn at_line_start(&self) -> bool {
        self.column == 0
    }

    /// The sequence that takes back what was written since the mark. `None` where it has scrolled out of the screen.
    pub(super) fn erase(&mut self) -> Option<String> {
        if self.down >= self.rows {
            return None;
        }
        let up = if self.down > 0 {
            format!("\x1b[{}A", self.down)
        } else {
            String::new()
        };
        let sequence = format!(
            "{up}\r{}\x1b[J",
            if self.mark > 0 {
                format!("\x1b[{}C", self.mark)
            } else {
                String::new()
            }
        );
        (self.column, self.down) = (self.mark, 0);
        Some(sequence)
    }

    fn next_line(&mut self) {
        self.column = 0;
        self.down += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal of 10 columns shows after `kept`, then `taken` and its erasure, then `after`.
    fn seen(kept: &str, taken: &str, after: &str) -> String {
        let mut terminal = vt100::Parser::new(6, 10, 0);
        let mut screen = Screen::new(10, 6);
        let feed = |terminal: &mut vt100::Parser, text: &str| terminal.process(text.replace('\n', "\r\n").as_bytes());
        feed(&mut terminal, kept);
        screen.wrote(kept);
        screen.mark();
        feed(&mut terminal, taken);
        screen.wrote(taken);
        let erase = screen.erase().unwrap();
        terminal.process(erase.as_bytes());
        feed(&mut terminal, after);
        terminal.screen().contents()
    }

    #[test]
    fn what_was_taken_back_is_gone_and_the_rest_is_not() {
        assert_eq!(seen("kept\n", "one", "two"), "kept\ntwo");
        assert_eq!(seen("kept ", "a\nb\nc", "two"), "kept two");
        assert_eq!(seen("kept\n", "wraps over three lines!", "two"), "kept\ntwo");
        assert_eq!(seen("kept\n", "漢字漢字漢字漢", "two"), "kept\ntwo");
        assert_eq!(seen("", "", "two"), "two");
    }

    #[test]
    fn what_scrolled_away_cannot_be_taken_back() {
        let mut screen = Screen::new(10, 3);
        screen.mark();
        screen.wrote("1\n2\n3\n4");
        assert_eq!(screen.erase(), None);
    }
}
