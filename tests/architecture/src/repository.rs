//! The repository as the rules see it.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use cargo_metadata::{DependencyKind, MetadataCommand, TargetKind};

/// A crate of the workspace.
#[derive(Clone, Debug, Default)]
pub struct Crate {
    /// The package's name.
    pub name: String,
    /// Its directory, from the root, such as `host/api`.
    pub directory: String,
    /// Crates of the workspace that it is built with.
    pub needs: Vec<String>,
    /// Crates of the workspace that only its tests are built with.
    pub dev_needs: Vec<String>,
    /// Names of its integration tests.
    pub integration_tests: Vec<String>,
}

/// Crates and files of a repository.
#[derive(Clone, Debug, Default)]
pub struct Repository {
    /// The workspace's members.
    pub crates: Vec<Crate>,
    /// Text files by path from the root: sources, manifests and Markdown.
    pub files: BTreeMap<String, String>,
    /// Names of what lies at the top level.
    pub top_level: Vec<String>,
}

impl Repository {
    /// Reads this repository.
    ///
    /// # Errors
    /// `cargo metadata` fails or a file cannot be read.
    pub fn read() -> io::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let top_level = fs::read_dir(&root)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let top_level = top_level.collect::<io::Result<_>>()?;
        let mut files = BTreeMap::new();
        read_files(&root, &root, &mut files)?;
        Ok(Self {
            crates: crates(&root)?,
            files,
            top_level,
        })
    }

    /// Paths and texts of Rust sources under a directory.
    pub fn sources<'a>(&'a self, under: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let files = self
            .files
            .iter()
            .filter(move |(path, _)| path.starts_with(under) && path.ends_with(".rs"));
        files.map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

fn crates(root: &Path) -> io::Result<Vec<Crate>> {
    // Without dependencies: the members' own manifests are all that the rules are about, and nothing is fetched.
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec();
    let metadata = metadata.map_err(io::Error::other)?;
    let members: Vec<_> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let described = metadata.packages.iter().map(|package| {
        let manifest = package.manifest_path.as_std_path();
        let directory = manifest.parent().and_then(|path| path.strip_prefix(root).ok());
        let own = |dev: bool| {
            let edges = package.dependencies.iter();
            let edges = edges.filter(|edge| (edge.kind == DependencyKind::Development) == dev);
            edges
                .map(|edge| edge.name.clone())
                .filter(|name| members.contains(name))
                .collect()
        };
        let tests = package
            .targets
            .iter()
            .filter(|target| target.kind.contains(&TargetKind::Test));
        Crate {
            name: package.name.to_string(),
            directory: directory.unwrap_or(Path::new("")).to_string_lossy().into_owned(),
            needs: own(false),
            dev_needs: own(true),
            integration_tests: tests.map(|target| target.name.clone()).collect(),
        }
    });
    Ok(described.collect())
}

fn read_files(root: &Path, directory: &Path, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path: PathBuf = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let wanted = [".rs", ".toml", ".md", ".json"]
            .iter()
            .any(|ending| name.ends_with(ending));
        // Symbolic links lead to files that are read where they lie.
        if path.is_symlink() || name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            read_files(root, &path, files)?;
        } else if wanted {
            let from_root = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.insert(from_root, fs::read_to_string(&path)?);
        }
    }
    Ok(())
}
