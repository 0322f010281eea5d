//! Searches the text files of a tree, line by line.

use std::fs;
use std::path::Path;

use capsule_guest::{Error, Output, StateEffect};
use regex::{Regex, RegexBuilder};

use crate::grants::{Access, refusal, roots};
use crate::text::{SNIFFED, is_binary};
use crate::walk::{Entry, Go, Walked, walk};
use crate::{LONGEST_WALK, Until, text, wildcard};

/// Lines shown where nothing else is asked for.
pub const DEFAULT_RESULTS: u64 = 100;
/// Lines shown at most.
pub const MOST_RESULTS: u64 = 1000;
/// Lines shown around each, at most.
pub const MOST_CONTEXT: u64 = 10;
/// The largest file that is searched, in bytes.
pub const LARGEST_FILE: u64 = 8 << 20;
/// Characters of a line that are shown.
const LONGEST_LINE: usize = 300;
/// Bytes of an answer.
const MOST_BYTES: usize = 512 << 10;
/// The longest pattern, in bytes, and the largest program that one may become.
const LONGEST_PATTERN: usize = 4096;
const LARGEST_PROGRAM: usize = 1 << 20;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The text, or the regular expression.
    pub pattern: &'a str,
    /// Whether it is a regular expression.
    pub regex: bool,
    /// Whether upper and lower case are the same.
    pub ignore_case: bool,
    /// A file or directory; none searches all granted directories.
    pub path: Option<&'a str>,
    /// Only files whose name fits; see [`wildcard`].
    pub files: Option<&'a str>,
    /// Whether names that begin with a dot are searched too.
    pub hidden: bool,
    /// Lines to show around each.
    pub context: u64,
    /// Lines with a match to show.
    pub most: u64,
}

/// Searches for lines. The answer has `path:line: text` for each, and says what was left out.
///
/// # Errors
///
/// A sentence for the model: a broken expression, no grant, not there.
pub fn search(asked: Asked<'_>) -> Result<Output, Error> {
    let granted = roots();
    let starts: Vec<&str> = match asked.path {
        Some(path) => vec![path],
        None => granted.iter().map(String::as_str).collect(),
    };
    let resource = starts.join(", ");
    search_in(&starts, asked, Until::after(LONGEST_WALK))
        .map(|output| output.state_effect(StateEffect::Read).resource_id(&resource))
        .map_err(|why| why.metadata("state_effect", "read").metadata("resource_id", &resource))
}

fn search_in(starts: &[&str], asked: Asked<'_>, until: Until) -> Result<Output, Error> {
    if starts.is_empty() {
        return Err(Error::denied("not readable here: no directory is granted to this tool"));
    }
    let mut hunt = Hunt {
        pattern: compile(asked)?,
        asked,
        until,
        text: String::new(),
        found: 0,
        files: 0,
        left_out: LeftOut::default(),
        full: false,
    };
    for start in starts {
        hunt.tree(start).map_err(|error| refusal(Access::Read, start, &error))?;
    }
    Ok(hunt.output())
}

fn compile(asked: Asked<'_>) -> Result<Regex, Error> {
    if asked.pattern.len() > LONGEST_PATTERN {
        return Err(Error::new(format!(
            "the pattern is longer than {LONGEST_PATTERN} bytes"
        )));
    }
    let pattern = if asked.regex {
        asked.pattern.to_owned()
    } else {
        regex::escape(asked.pattern)
    };
    RegexBuilder::new(&pattern)
        .case_insensitive(asked.ignore_case)
        .size_limit(LARGEST_PROGRAM)
        .build()
        .map_err(|error| Error::new(format!("the pattern is no regular expression: {error}")))
}

/// A search on its way.
struct Hunt<'a> {
    pattern: Regex,
    asked: Asked<'a>,
    until: Until,
    text: String,
    /// Lines with a match.
    found: u64,
    /// Files that have some.
    files: u64,
    left_out: LeftOut,
    /// Whether there are more lines than may be shown.
    full: bool,
}

/// Files that were not searched, by reason.
#[derive(Default)]
struct LeftOut {
    binary: u64,
    large: u64,
    unreadable: u64,
    /// Whether the time was over, or the tree too large.
    cut: bool,
}

impl Hunt<'_> {
    fn tree(&mut self, start: &str) -> std::io::Result<()> {
        let metadata = fs::metadata(start)?;
        if metadata.is_file() {
            self.file(Path::new(start));
            return Ok(());
        }
        let until = self.until;
        let Walked { cut, unreadable } = walk(Path::new(start), until, |entry, _| self.entry(entry))?;
        self.left_out.cut |= cut && !self.full;
        self.left_out.unreadable += unreadable as u64;
        Ok(())
    }

    fn entry(&mut self, entry: &Entry) -> Go {
        if self.full {
            return Go::Stop;
        }
        if entry.name.starts_with('.') && !self.asked.hidden {
            return Go::Past;
        }
        let wanted = self
            .asked
            .files
            .is_none_or(|files| wildcard::matches(files, &entry.name));
        if entry.kind.is_file() && wanted {
            self.file(&entry.path);
        }
        Go::On
    }

    fn file(&mut self, path: &Path) {
        let Ok(metadata) = fs::metadata(path) else {
            self.left_out.unreadable += 1;
            return;
        };
        if metadata.len() > LARGEST_FILE {
            self.left_out.large += 1;
            return;
        }
        let Ok(bytes) = fs::read(path) else {
            self.left_out.unreadable += 1;
            return;
        };
        if is_binary(&bytes[..bytes.len().min(SNIFFED)]) {
            self.left_out.binary += 1;
            return;
        }
        // Bytes that are not UTF-8 spoil no search: they match nothing, and are shown as U+FFFD.
        let content = String::from_utf8_lossy(&bytes);
        self.lines(&text::shown(path), &content);
    }

    fn lines(&mut self, path: &str, content: &str) {
        let lines: Vec<&str> = content.lines().collect();
        let context = self.asked.context.min(MOST_CONTEXT) as usize;
        // The first line that is not shown yet.
        let mut next = 0;
        let before = self.found;
        for (at, line) in lines.iter().enumerate() {
            let Some(found) = self.pattern.find(line) else {
                continue;
            };
            if self.found == self.asked.most.clamp(1, MOST_RESULTS) || self.text.len() >= MOST_BYTES {
                self.full = true;
                break;
            }
            if at % 1024 == 0 && self.until.is_over() {
                self.left_out.cut = true;
                break;
            }
            self.found += 1;
            let from = at.saturating_sub(context).max(next);
            if context > 0 && !self.text.is_empty() && (from > next || next == 0) {
                self.text.push_str("--\n");
            }
            for (number, around) in lines.iter().enumerate().take(at).skip(from) {
                self.show(path, number, '-', &clipped(around, 0));
            }
            self.show(path, at, ':', &clipped(line, found.start()));
            next = at + 1;
            let last = (at + 1 + context).min(lines.len());
            // Lines after the match, up to the next one: that shows itself.
            while next < last && !self.pattern.is_match(lines[next]) {
                self.show(path, next, '-', &clipped(lines[next], 0));
                next += 1;
            }
        }
        self.files += u64::from(self.found > before);
    }

    fn show(&mut self, path: &str, at: usize, mark: char, line: &str) {
        self.text.push_str(&format!("{path}{mark}{}{mark} {line}\n", at + 1));
    }

    fn output(self) -> Output {
        let Self {
            found, files, left_out, ..
        } = self;
        let mut text = self.text;
        if found == 0 {
            text.push_str("[nothing found]\n");
        }
        if self.full {
            text.push_str(&format!(
                "[there is more than these {found} lines: search for less, or in a smaller part]\n"
            ));
        }
        if left_out.cut {
            text.push_str("[not all was searched: there is too much; search in a smaller part]\n");
        }
        let reasons = [
            (left_out.binary, "binary".to_owned()),
            (left_out.large, format!("over {LARGEST_FILE} bytes")),
            (left_out.unreadable, "unreadable".to_owned()),
        ];
        let reasons: Vec<String> = reasons
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, why)| format!("{count} {why}"))
            .collect();
        if !reasons.is_empty() {
            text.push_str(&format!("[files left out: {}]\n", reasons.join(", ")));
        }
        text.pop();
        Output::text(text)
            .summary(format!("{found} lines in {files} files"))
            .truncated(self.full || left_out.cut)
    }
}

/// A part of a long line that has what begins at `start`.
fn clipped(line: &str, start: usize) -> String {
    if line.chars().count() <= LONGEST_LINE {
        return line.to_owned();
    }
    let before = line[..start].chars().count();
    let skip = before.saturating_sub(LONGEST_LINE / 4);
    let shown: String = line.chars().skip(skip).take(LONGEST_LINE).collect();
    let rest = line.chars().nth(skip + LONGEST_LINE).is_some();
    format!(
        "{}{shown}{}",
        if skip > 0 { "…" } else { "" },
        if rest { "…" } else { "" }
    )
}

#[cfg(test)]
mod tests;
