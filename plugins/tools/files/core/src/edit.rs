//! Replaces an exact piece of a text file.

use std::borrow::Cow;

use capsule_guest::{Error, Output, StateEffect};

use crate::grants::Access;
use crate::text::{LineEnds, file_size, read_whole};
use crate::write::{is_replaceable, put};

/// The largest file that is edited, in bytes.
pub const LARGEST_FILE: u64 = 8 << 20;
/// Places that an error names.
const MOST_PLACES: usize = 10;
/// Lines shown around what was replaced, and of it.
const CONTEXT: usize = 2;
const MOST_SHOWN: usize = 40;

/// What is to be replaced.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The file.
    pub path: &'a str,
    /// What is there now.
    pub old: &'a str,
    /// What is to be there.
    pub new: &'a str,
    /// Whether every place is meant, not the one that there is.
    pub all: bool,
}

/// A text after its change.
#[derive(Debug, PartialEq, Eq)]
struct Changed {
    text: String,
    /// Lines where a replacement begins, counted from 1, in the new text.
    lines: Vec<usize>,
}

/// Why a text was not changed.
#[derive(Debug, PartialEq, Eq)]
enum Unchanged {
    Empty,
    Same,
    /// Nowhere; where it would be if white space did not count, by line.
    NotFound(Option<usize>),
    /// At several places, by line.
    Ambiguous(Vec<usize>),
}

/// Replaces a piece of a file in one step. Where all lines end with CR LF, so do those of the new piece.
///
/// # Errors
///
/// A sentence for the model: no grant, not there, no text, or the piece is not there exactly once.
pub fn edit(asked: Asked<'_>) -> Result<Output, Error> {
    let path = asked.path;
    edited(asked)
        .map(|output| output.state_effect(StateEffect::Mutate).resource_id(path))
        .map_err(|why| why.metadata("state_effect", "mutate").metadata("resource_id", path))
}

fn edited(asked: Asked<'_>) -> Result<Output, Error> {
    let path = asked.path;
    file_size(path, Access::Write)?;
    is_replaceable(path)?;
    let before = read_whole(path, LARGEST_FILE)?;
    let changed = change(&before, asked.old, asked.new, asked.all).map_err(|why| why.error(path))?;
    put(path, &changed.text, true)?;
    let places = changed.lines.len();
    let first = changed.lines.first().copied().unwrap_or(1);
    let said = match places {
        1 => format!("'{path}': replaced 1 place, in line {first}"),
        places => format!("'{path}': replaced {places} places, the first in line {first}"),
    };
    let around = around(&changed.text, first, asked.new.lines().count());
    Ok(Output::text(format!("{said}\n{around}")).summary(said))
}

impl Unchanged {
    fn error(self, path: &str) -> Error {
        Error::new(match self {
            Self::Empty => "old_text is empty: give the text to be replaced".to_owned(),
            Self::Same => "old_text and new_text are the same: nothing to do".to_owned(),
            Self::NotFound(None) => format!("old_text is not in '{path}': read the file, and copy it exactly"),
            Self::NotFound(Some(line)) => format!(
                "old_text is not in '{path}', but in line {line} there is text that differs only in white space: copy it exactly"
            ),
            Self::Ambiguous(lines) => {
                let places: Vec<String> = lines.iter().take(MOST_PLACES).map(ToString::to_string).collect();
                let more = if lines.len() > MOST_PLACES { ", …" } else { "" };
                format!(
                    "old_text is at {} places in '{path}' (lines {}{more}): add lines around the one that is meant, or set replace_all",
                    lines.len(),
                    places.join(", ")
                )
            }
        })
    }
}

fn change(text: &str, old: &str, new: &str, all: bool) -> Result<Changed, Unchanged> {
    if old.is_empty() {
        return Err(Unchanged::Empty);
    }
    // A reader is shown line feeds; in a file of CR LF they stand for those.
    let (old, new) = match LineEnds::of(text) {
        LineEnds::CrLf => (with_crlf(old), with_crlf(new)),
        _ => (Cow::Borrowed(old), Cow::Borrowed(new)),
    };
    if old == new {
        return Err(Unchanged::Same);
    }
    let places = places(text, &old, !all);
    match places.len() {
        0 => return Err(Unchanged::NotFound(loosely(text, &old))),
        1 => {}
        _ if all => {}
        _ => {
            return Err(Unchanged::Ambiguous(
                places.iter().map(|at| line_of(text, *at)).collect(),
            ));
        }
    }
    let mut changed = String::with_capacity(text.len());
    let mut lines = Vec::with_capacity(places.len());
    let (mut from, mut line, mut counted) = (0, 1, 0);
    for at in places {
        changed.push_str(&text[from..at]);
        line += changed[counted..].matches('\n').count();
        counted = changed.len();
        lines.push(line);
        changed.push_str(&new);
        from = at + old.len();
    }
    changed.push_str(&text[from..]);
    Ok(Changed { text: changed, lines })
}

fn with_crlf(text: &str) -> Cow<'_, str> {
    match text.contains('\n') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n")),
        false => Cow::Borrowed(text),
    }
}

/// Offsets where `old` is. Those that overlap count too where one is meant: which of them would be a guess.
fn places(text: &str, old: &str, overlapping: bool) -> Vec<usize> {
    if !overlapping {
        return text.match_indices(old).map(|(at, _)| at).collect();
    }
    let mut found = Vec::new();
    let mut from = 0;
    let step = old.chars().next().map_or(1, char::len_utf8);
    while let Some(at) = text[from..].find(old) {
        found.push(from + at);
        from += at + step;
    }
    found
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The line where `old` would be if white space at the ends of lines did not count.
fn loosely(text: &str, old: &str) -> Option<usize> {
    let wanted: Vec<&str> = old.trim().lines().map(str::trim).collect();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    if wanted.iter().all(|line| line.is_empty()) {
        return None;
    }
    lines
        .windows(wanted.len())
        .position(|window| window == wanted)
        .map(|at| at + 1)
}

/// The lines from `line` on, with some around, numbered.
fn around(text: &str, line: usize, count: usize) -> String {
    let from = line.saturating_sub(1 + CONTEXT);
    let shown = (line - 1 - from + count.max(1) + CONTEXT).min(MOST_SHOWN);
    let lines = text.lines().enumerate().skip(from).take(shown);
    lines
        .map(|(at, line)| format!("{:>6}\t{}", at + 1, crate::text::cut(line, 500).0))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests;
