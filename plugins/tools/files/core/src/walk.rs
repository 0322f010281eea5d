//! Walks over the files below a directory, in order, within bounds.

use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

use crate::Until;

/// Entries that one walk looks at.
pub const MOST_SEEN: usize = 100_000;
/// Directories inside one another that a walk goes into.
pub const DEEPEST: usize = 64;

/// What lies in a directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its path, the start of the walk included.
    pub path: PathBuf,
    /// Its name; bytes that are not UTF-8 as U+FFFD.
    pub name: String,
    /// What it is. A symbolic link is a link, whatever it leads to.
    pub kind: FileType,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Whether it ended before it had seen all.
    pub cut: bool,
    /// Directories that could not be read.
    pub unreadable: usize,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// Go on, and into this entry where it is a directory.
    On,
    /// Go on, but not into this entry.
    Past,
    /// End here: there was enough.
    Stop,
}

/// Shows `each` what lies below `start`, each directory in the order of its names, a directory before what is in it. Symbolic links are shown
/// and not followed: they could lead round in circles.
///
/// # Errors
///
/// When `start` cannot be read. Directories below that cannot are counted.
pub fn walk(start: &Path, until: Until, mut each: impl FnMut(&Entry, usize) -> Go) -> io::Result<Walked> {
    let mut walked = Walked::default();
    let mut seen = 0;
    let first = entries(start, &mut seen)?;
    walked.cut |= seen >= MOST_SEEN;
    let mut open = vec![first.into_iter()];
    while let Some(top) = open.last_mut() {
        let Some(entry) = top.next() else {
            open.pop();
            continue;
        };
        if until.is_over() {
            walked.cut = true;
            return Ok(walked);
        }
        let depth = open.len();
        let go = each(&entry, depth);
        if go == Go::Stop {
            walked.cut = true;
            return Ok(walked);
        }
        if go == Go::Past || !entry.kind.is_dir() {
            continue;
        }
        if depth == DEEPEST || seen >= MOST_SEEN {
            walked.cut = true;
            continue;
        }
        match entries(&entry.path, &mut seen) {
            Ok(found) => open.push(found.into_iter()),
            Err(_) => walked.unreadable += 1,
        }
    }
    walked.cut |= seen >= MOST_SEEN;
    Ok(walked)
}

/// The entries of a directory in order, as many as the walk may still see.
fn entries(directory: &Path, seen: &mut usize) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        if *seen >= MOST_SEEN {
            break;
        }
        *seen += 1;
        // Gone since, or of a kind that the host does not tell: nothing to show.
        let Ok((entry, kind)) = entry.and_then(|entry| entry.file_type().map(|kind| (entry, kind))) else {
            continue;
        };
        found.push(Entry {
            path: entry.path(),
            name: entry.file_name().to_string_lossy().into_owned(),
            kind,
        });
    }
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}
