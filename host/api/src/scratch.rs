//! What lies in the directory of a run before it is removed.

use std::{fs, ops::AddAssign, path::Path};

/// Entries of directories that are looked at, at most: what lies there was made by a program that nobody trusts.
const MOST_ENTRIES: u32 = 100_000;

/// Files that went with the directory of a run: the host's own for its peer, and those that the peer made there. For information; they are
/// no residue, since they are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scratch {
    /// Regular files.
    pub files: u64,
    /// Their lengths, in bytes.
    pub bytes: u64,
    /// There was more than was counted: over 100 000 entries, or a directory that cannot be read.
    pub partial: bool,
}

impl Scratch {
    /// Counts what lies below a directory. Links are neither followed nor counted. Blocks on the file system.
    pub fn count(directory: &Path) -> Self {
        let mut found = Self::default();
        let mut looked_at = 0;
        let mut directories = vec![directory.to_owned()];
        while let Some(directory) = directories.pop() {
            let Ok(entries) = fs::read_dir(&directory) else {
                found.partial = true;
                continue;
            };
            for entry in entries {
                looked_at += 1;
                if looked_at > MOST_ENTRIES {
                    found.partial = true;
                    return found;
                }
                // The metadata of an entry are those of a link itself.
                match entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) {
                    Ok((path, metadata)) if metadata.is_dir() => directories.push(path),
                    Ok((_, metadata)) if metadata.is_file() => {
                        found.files += 1;
                        found.bytes = found.bytes.saturating_add(metadata.len());
                    }
                    Ok(_) => {}
                    Err(_) => found.partial = true,
                }
            }
        }
        found
    }
}

impl AddAssign for Scratch {
    fn add_assign(&mut self, other: Self) {
        self.files = self.files.saturating_add(other.files);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.partial = self.partial || other.partial;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn regular_files_are_counted_at_any_depth_and_links_are_not_followed() {
        let base = std::env::temp_dir().join(format!("capsule-scratch-{}", std::process::id()));
        let (run, elsewhere) = (base.join("run"), base.join("elsewhere"));
        fs::create_dir_all(run.join("a/b")).unwrap();
        fs::create_dir_all(&elsewhere).unwrap();
        fs::write(elsewhere.join("big"), [0; 1000]).unwrap();
        fs::write(run.join("one"), "12345").unwrap();
        fs::write(run.join("a/b/two"), "678").unwrap();
        for (to, name) in [
            (elsewhere.join("big"), "file"),
            (elsewhere, "directory"),
            (run.clone(), "itself"),
        ] {
            std::os::unix::fs::symlink(to, run.join(name)).unwrap();
        }
        let mut found = Scratch::count(&run);
        fs::remove_dir_all(&base).unwrap();
        let wanted = Scratch {
            files: 2,
            bytes: 8,
            partial: false,
        };
        assert_eq!(found, wanted);
        found += Scratch::count(&base);
        let gone = Scratch {
            partial: true,
            ..wanted
        };
        assert_eq!(found, gone, "a directory that is not there cannot be counted");
    }
}
