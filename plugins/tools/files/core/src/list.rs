//! Lists directories.

use std::fs;
use std::path::Path;

use capsule_guest::{Error, Output, StateEffect};

use crate::grants::{Access, refusal, roots};
use crate::walk::{Entry, Go, walk};
use crate::{LONGEST_WALK, Until, wildcard};

/// Entries shown where nothing else is asked for.
pub const DEFAULT_ENTRIES: u64 = 200;
/// Entries shown at most.
pub const MOST_ENTRIES: u64 = 2000;
/// Levels shown at most.
pub const DEEPEST: u64 = 10;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The directory; none asks for the granted directories.
    pub path: Option<&'a str>,
    /// Levels to go down: 1 shows the directory's own entries.
    pub depth: u64,
    /// Only entries whose name fits; see [`wildcard`].
    pub pattern: Option<&'a str>,
    /// Entries to show.
    pub most: u64,
}

/// Lists a directory, one entry a line: its path from there, with a slash where it is a directory, with its size where it is a file.
///
/// # Errors
///
/// A sentence for the model: no grant, not there, or no directory.
pub fn list(asked: Asked<'_>) -> Result<Output, Error> {
    let Some(path) = asked.path else {
        return Ok(granted(&roots()));
    };
    listed(path, asked)
        .map(|output| output.state_effect(StateEffect::Read).resource_id(path))
        .map_err(|why| why.metadata("state_effect", "read").metadata("resource_id", path))
}

fn granted(roots: &[String]) -> Output {
    let text = match roots {
        [] => "[no directory is granted to this tool]".to_owned(),
        roots => roots
            .iter()
            .map(|root| format!("{}/", root.trim_end_matches('/')))
            .collect::<Vec<_>>()
            .join("\n"),
    };
    Output::text(text)
        .summary(format!("{} granted directories", roots.len()))
        .state_effect(StateEffect::Read)
}

fn listed(path: &str, asked: Asked<'_>) -> Result<Output, Error> {
    let metadata = fs::metadata(path).map_err(|error| refusal(Access::Read, path, &error))?;
    if !metadata.is_dir() {
        return Err(Error::new(format!(
            "'{path}' is a file, not a directory: read it instead"
        )));
    }
    let most = asked.most.clamp(1, MOST_ENTRIES) as usize;
    let deepest = asked.depth.clamp(1, DEEPEST) as usize;
    let mut lines = Vec::new();
    let start = Path::new(path);
    let walked = walk(start, Until::after(LONGEST_WALK), |entry, depth| {
        if asked
            .pattern
            .is_none_or(|pattern| wildcard::matches(pattern, &entry.name))
        {
            if lines.len() == most {
                return Go::Stop;
            }
            lines.push(line(start, entry));
        }
        if depth < deepest { Go::On } else { Go::Past }
    })
    .map_err(|error| refusal(Access::Read, path, &error))?;

    let shown = lines.len();
    if lines.is_empty() && !walked.cut {
        let nothing = match asked.pattern {
            None => "[an empty directory]".to_owned(),
            Some(pattern) => format!("[no name here fits '{pattern}']"),
        };
        lines.push(nothing);
    }
    if walked.unreadable > 0 {
        lines.push(format!("[{} directories could not be read]", walked.unreadable));
    }
    if walked.cut {
        lines.push(format!(
            "[there is more than these {shown} entries: list a directory below, or give a pattern]"
        ));
    }
    Ok(Output::text(lines.join("\n"))
        .summary(format!("{path}: {shown} entries"))
        .truncated(walked.cut))
}

fn line(start: &Path, entry: &Entry) -> String {
    let path = entry.path.strip_prefix(start).unwrap_or(&entry.path).to_string_lossy();
    if entry.kind.is_dir() {
        return format!("{path}/");
    }
    if entry.kind.is_symlink() {
        return format!("{path} (a symbolic link)");
    }
    if !entry.kind.is_file() {
        return format!("{path} (not a regular file)");
    }
    match fs::metadata(&entry.path) {
        Ok(metadata) => format!("{path} ({} bytes)", metadata.len()),
        Err(_) => path.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{directory_with, output, text};
    use std::os::unix::fs::symlink;

    fn all(path: Option<&str>) -> Asked<'_> {
        Asked {
            path,
            depth: 1,
            pattern: None,
            most: DEFAULT_ENTRIES,
        }
    }

    #[test]
    fn entries_come_in_order_and_say_what_they_are() {
        let dir = directory_with(&[("b.txt", b"12"), ("a/c.rs", b""), ("a/d.txt", b"123")]);
        symlink("/etc", dir.path().join("link")).unwrap();
        let path = text(dir.path());

        let expected =
            Output::text("a/\nb.txt (2 bytes)\nlink (a symbolic link)").summary(format!("{path}: 3 entries"));
        assert_eq!(list(all(Some(&path))), Ok(output(expected, StateEffect::Read, &path)));

        let deep = Asked {
            depth: 2,
            pattern: Some("*.txt"),
            ..all(Some(&path))
        };
        let expected = Output::text("a/d.txt (3 bytes)\nb.txt (2 bytes)").summary(format!("{path}: 2 entries"));
        assert_eq!(list(deep), Ok(output(expected, StateEffect::Read, &path)));
    }

    #[test]
    fn a_long_listing_is_cut_and_says_so() {
        let dir = directory_with(&[("1", b""), ("2", b""), ("3", b"")]);
        let path = text(dir.path());

        let cut =
            "1 (0 bytes)\n2 (0 bytes)\n[there is more than these 2 entries: list a directory below, or give a pattern]";
        let expected = Output::text(cut).summary(format!("{path}: 2 entries")).truncated(true);
        assert_eq!(
            list(Asked {
                most: 2,
                ..all(Some(&path))
            }),
            Ok(output(expected, StateEffect::Read, &path))
        );
        // As many as there are is not cut.
        let expected = Output::text("1 (0 bytes)\n2 (0 bytes)\n3 (0 bytes)").summary(format!("{path}: 3 entries"));
        assert_eq!(
            list(Asked {
                most: 3,
                ..all(Some(&path))
            }),
            Ok(output(expected, StateEffect::Read, &path))
        );
    }

    #[test]
    fn without_a_path_the_granted_directories_are_listed() {
        let roots = ["/notes".to_owned(), "/".to_owned()];
        let expected = Output::text("/notes/\n/")
            .summary("2 granted directories")
            .state_effect(StateEffect::Read);
        assert_eq!(granted(&roots), expected);
        let expected = Output::text("[no directory is granted to this tool]")
            .summary("0 granted directories")
            .state_effect(StateEffect::Read);
        assert_eq!(granted(&[]), expected);
    }

    #[test]
    fn what_cannot_be_listed_fails_in_words() {
        let dir = directory_with(&[("a", b"")]);
        let missing = text(&dir.path().join("missing"));
        let file = text(&dir.path().join("a"));
        let message = |path: &str| list(all(Some(path))).unwrap_err().message().to_owned();
        assert_eq!(message(&missing), format!("not found: '{missing}'"));
        assert_eq!(
            message(&file),
            format!("'{file}' is a file, not a directory: read it instead")
        );
    }
}
