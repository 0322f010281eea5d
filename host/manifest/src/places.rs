//! Where a value came from: a place in the file, or a flag that overrode it.

use std::{collections::BTreeSet, path::Path};

use crate::{
    report::{Origin, Problem},
    tree::{Position, Tree, parts},
};

/// The origins of all values, by JSON pointer.
#[derive(Debug, Default)]
pub(crate) struct Places {
    tree: Tree,
    lines: Vec<String>,
    flags: Vec<(String, String)>,
}

/// Longer lines are not shown below a problem.
const LONGEST_EXCERPT: usize = 160;

impl Places {
    /// The places in a file. The tree's value is taken by the caller.
    pub(crate) fn new(tree: Tree, text: &str) -> Self {
        let lines = text.lines().map(str::to_owned).collect();
        Self {
            tree,
            lines,
            flags: Vec::new(),
        }
    }

    /// From now on everything at and below `pointer` comes from the flag.
    pub(crate) fn set_by_flag(&mut self, pointer: &str, flag: &str) {
        self.flags.push((pointer.to_owned(), flag.to_owned()));
    }

    /// The places alone, without the text of the file.
    pub(crate) fn without_text(mut self) -> Self {
        self.lines = Vec::new();
        self
    }

    /// Where the value stands, and its key: `box/capsule.yaml:7:12: inference.api_key`; for one of a flag, the flag.
    pub(crate) fn tell(&self, file: &Path, pointer: &str) -> String {
        let key = dotted(pointer);
        match self.value(pointer) {
            Origin::Line(at) => format!("{}:{}:{}: {key}", file.display(), at.line, at.column),
            Origin::Flag(flag) if flag.ends_with(&format!(" {key}")) => flag,
            Origin::Flag(flag) => format!("{flag}: {key}"),
            Origin::File => format!("{}: {key}", file.display()),
        }
    }

    fn flag(&self, pointer: &str) -> Option<Origin> {
        let above = |(set, _): &&(String, String)| is_within(pointer, set);
        self.flags
            .iter()
            .rev()
            .find(above)
            .map(|(_, flag)| Origin::Flag(flag.clone()))
    }

    /// Where the value stands; for one that is not in the file, the nearest place above it.
    pub(crate) fn value(&self, pointer: &str) -> Origin {
        self.flag(pointer).unwrap_or_else(|| self.nearest(pointer, false))
    }

    /// Where the key of the value stands.
    pub(crate) fn key(&self, pointer: &str) -> Origin {
        self.flag(pointer).unwrap_or_else(|| self.nearest(pointer, true))
    }

    fn nearest(&self, pointer: &str, keys: bool) -> Origin {
        let mut at = pointer;
        loop {
            let (first, second) = if keys {
                (&self.tree.keys, &self.tree.values)
            } else {
                (&self.tree.values, &self.tree.keys)
            };
            if let Some(position) = first.get(at).or_else(|| second.get(at)) {
                return Origin::Line(*position);
            }
            match at.rfind('/') {
                Some(end) => at = &at[..end],
                None => return Origin::File,
            }
        }
    }

    /// Adds the lines of the file to problems. Of a line that holds something of `hidden` (secrets, values of unknown keys) no value is
    /// shown.
    pub(crate) fn excerpt(&self, problems: &mut [Problem], hidden: &BTreeSet<String>) {
        let concealed = |pointer: &str| {
            let ends = pointer.match_indices('/').map(|(end, _)| end).chain([pointer.len()]);
            ends.map(|end| &pointer[..end]).any(|above| hidden.contains(above))
        };
        let values = self.tree.values.iter().filter(|(pointer, _)| concealed(pointer));
        let repeated = self.tree.duplicates.iter().filter_map(|duplicate| duplicate.second);
        let secret_lines: BTreeSet<u64> = values.map(|(_, at)| *at).chain(repeated).map(|at| at.line).collect();
        let keys: BTreeSet<Position> = self.tree.keys.values().copied().collect();
        for problem in problems {
            let Origin::Line(at) = &problem.origin else { continue };
            let line = usize::try_from(at.line - 1)
                .ok()
                .and_then(|index| self.lines.get(index));
            let plain = |line: &&String| {
                line.chars().count() <= LONGEST_EXCERPT && line.chars().all(|c| c == '\t' || !c.is_control())
            };
            problem.excerpt = match line.filter(plain) {
                Some(line) if !secret_lines.contains(&at.line) => Some(line.clone()),
                Some(line) if keys.contains(at) => key_alone(line, *at),
                _ => None,
            };
        }
    }
}

/// The line with nothing but the key at this place, and the indentation before it.
fn key_alone(line: &str, at: Position) -> Option<String> {
    let column = usize::try_from(at.column - 1).ok()?;
    let before: String = line.chars().take(column).collect();
    let key = line.get(before.len()..)?.split([':', ',', '}']).next()?.trim_end();
    if before.chars().all(|c| c == ' ' || c == '-') {
        return Some(format!("{before}{key}: …"));
    }
    // Inside `{…}` other values are before it, and some may be secret.
    Some(format!("{}…{key}: …", " ".repeat(column.checked_sub(1)?)))
}

/// Of a line in a file that is no tree: the key that it begins with, if a manifest has such a key. Whether the rest is secret nobody knows.
pub(crate) fn known_key(line: &str, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let (before, _) = line.split_once(':')?;
    let key = before.trim_start_matches([' ', '\t', '-']);
    is_known(key).then(|| format!("{before}: …"))
}

/// Whether `pointer` is `above` or below it.
pub(crate) fn is_within(pointer: &str, above: &str) -> bool {
    pointer
        .strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A pointer as people write it: `tools[0].name`.
pub(crate) fn dotted(pointer: &str) -> String {
    let mut text = String::new();
    for part in parts(pointer) {
        if !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()) {
            text.push_str(&format!("[{part}]"));
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.extend(part.escape_debug());
        }
    }
    text
}
