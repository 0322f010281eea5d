//! What `capsule new` writes. The files are reached by committed links inside the crate, so that a packaged crate has them too; a name ends in
//! `.in` where cargo or git would take the file for one of this repository's own.

use std::{fs, io, path::Path};

/// A file of a template: where it goes, and what is in it.
type File = (&'static str, &'static [u8]);

/// What a new capsule begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Template {
    /// Two sandboxed tools and a recorded conversation; runs without a key
    Hello,
    /// A tool in Rust with its sources, to build with `capsule build`
    ToolRust,
}

macro_rules! files {
    ($from:literal: $($to:literal),* $(,)?) => {
        &[$(($to, include_bytes!(concat!("../", $from, "/", $to)))),*]
    };
}

const HELLO: &[File] = files!("capsules/hello":
    "capsule.yaml",
    "README.md",
    "notes/team.md",
    "tapes/hello.json",
    "tools/hello.wasm",
    "tools/read-file.wasm",
);

const TOOL_RUST: &[File] = files!("templates/tool-rust":
    "capsule.yaml",
    "README.md",
    "Cargo.toml.in",
    "Cargo.lock.in",
    "gitignore.in",
    "sdk/Cargo.toml.in",
    "tools/word-count/Cargo.toml.in",
    "tools/word-count/src/lib.rs",
);

/// The crate that tools are written with. It is on no registry, so a project carries it.
const SDK: &[File] = files!("sdk":
    "args.rs",
    "bindings.rs",
    "host.rs",
    "lib.rs",
    "section.rs",
    "tool.rs",
);

const WIT: &[File] = files!("wit":
    "worlds.wit",
    "deps/murmur-capsule-0.1.0/capsule.wit",
    "deps/murmur-stream-0.1.0/stream.wit",
    "deps/murmur-task-0.1.0/task.wit",
    "deps/murmur-text-0.1.0/text.wit",
    "deps/murmur-tool-0.1.0/tool.wit",
    "deps/murmur-tool-registry-0.1.0/tool-registry.wit",
);

impl Template {
    /// Its name, as in `--template`.
    fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::ToolRust => "tool-rust",
        }
    }

    /// What to do with the new capsule, as commands.
    pub(crate) fn next(self) -> &'static [&'static str] {
        match self {
            Self::Hello => &["run"],
            Self::ToolRust => &["build", "run"],
        }
    }

    /// The folders of a capsule, each with its files.
    fn folders(self) -> &'static [(&'static str, &'static [File])] {
        match self {
            Self::Hello => &[("", HELLO)],
            Self::ToolRust => &[("", TOOL_RUST), ("sdk/src", SDK), ("wit", WIT)],
        }
    }

    /// Writes the files into `dir`, for a capsule called `name`.
    pub(crate) fn write(self, dir: &Path, name: &str) -> io::Result<()> {
        for (folder, files) in self.folders() {
            for (path, bytes) in *files {
                write(&dir.join(folder).join(target(path)), &self.named(path, bytes, name))?;
            }
        }
        Ok(())
    }

    /// The file with the template's name in place of its own, where that is there, and with paths from where the capsule was made.
    fn named(self, path: &str, bytes: &[u8], name: &str) -> Vec<u8> {
        let line = match path {
            "capsule.yaml" => "name: ",
            "README.md" => "# ",
            _ => return bytes.to_vec(),
        };
        let (ours, theirs) = (format!("{line}{}\n", self.name()), format!("{line}{name}\n"));
        let text = String::from_utf8_lossy(bytes).replacen(&ours, &theirs, 1);
        match self {
            Self::Hello => text.replace(OF_COPIES, "").replace(HELLO_DIR, name).into_bytes(),
            Self::ToolRust => text.into_bytes(),
        }
    }
}

/// Where the capsule of [`Template::Hello`] is in the repository.
const HELLO_DIR: &str = "plugins/capsules/hello";
/// What its README says to somebody with a copy, in which nothing is left to be said.
const OF_COPIES: &str = "In a copy of this folder that `capsule new` made, name that folder in place of `plugins/capsules/hello`, here and below.\n\n";

/// Where a file of a template goes.
fn target(path: &str) -> &str {
    match path.strip_suffix(".in") {
        Some("gitignore") => ".gitignore",
        Some(path) => path,
        None => path,
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const CRATE: &str = env!("CARGO_MANIFEST_DIR");

    fn files_below(dir: &Path, base: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_below(&path, base, found);
            } else {
                found.insert(path.strip_prefix(base).unwrap().display().to_string());
            }
        }
    }

    #[test]
    fn every_file_of_a_template_the_sdk_and_the_interfaces_is_embedded() {
        let lists = [
            ("capsules/hello", HELLO),
            ("templates/tool-rust", TOOL_RUST),
            ("sdk", SDK),
            ("wit", WIT),
        ];
        for (folder, list) in lists {
            let base = Path::new(CRATE).join(folder);
            let mut there = BTreeSet::new();
            files_below(&base, &base, &mut there);
            // About the repository, not for a project.
            if folder == "wit" {
                there.remove("README.md");
            }
            let listed: BTreeSet<_> = list.iter().map(|(path, _)| (*path).to_owned()).collect();
            assert_eq!(listed, there, "{folder}");
        }
    }

    /// Name and version of every package of a lock file.
    fn pins(lock: &str) -> BTreeSet<(String, String)> {
        let value = |line: Option<&str>| line.unwrap().split('"').nth(1).unwrap().to_owned();
        let packages = lock.split("[[package]]\n").skip(1);
        packages
            .map(|package| {
                let mut lines = package.lines();
                (value(lines.next()), value(lines.next()))
            })
            .collect()
    }

    #[test]
    fn the_pins_of_a_new_project_are_those_that_the_repository_is_tested_with() {
        let ours = fs::read_to_string(Path::new(CRATE).join("../../plugins/tools/Cargo.lock")).unwrap();
        let lock = TOOL_RUST.iter().find(|(path, _)| *path == "Cargo.lock.in").unwrap();
        let mut theirs = pins(std::str::from_utf8(lock.1).unwrap());
        assert!(theirs.remove(&("word-count".into(), "0.1.0".into())));
        let unknown: Vec<_> = theirs.difference(&pins(&ours)).cloned().collect();
        assert_eq!(
            unknown,
            [],
            "copy the lock file of plugins/tools and build a new project with it"
        );
    }
}
