//! Which files there are, and how large they may get.

use crate::repository::Repository;

/// What may lie at the top level besides names with a leading dot.
pub const TOP_LEVEL: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "clippy.toml",
    "deny.toml",
    "docs",
    "host",
    "plugins",
    "rustfmt.toml",
    "target",
    "tests",
    "transports",
    "wit",
];

/// Files that every transport has.
pub const OF_A_TRANSPORT: &[&str] = &[
    "README.md",
    "src/lib.rs",
    "src/settings.rs",
    "src/transport.rs",
    "tests/it/main.rs",
];

/// Lines of a source file at most.
pub const LONGEST: usize = 600;

/// Lines of a transport's `lib.rs` at most: it holds the descriptor and nothing else.
pub const LONGEST_DESCRIPTOR: usize = 60;

/// Files that a program writes; nobody reads them for pleasure, and their writer's lints are its own.
pub const GENERATED: &[&str] = &["plugins/tools/sdk/src/bindings.rs"];

/// The library that transports share lies beside them, but is none.
const NO_TRANSPORT: &str = "transports/process";

/// Entries at the top level that do not belong there.
pub fn top_level(repository: &Repository) -> Vec<String> {
    let entries = repository
        .top_level
        .iter()
        .filter(|name| !name.starts_with('.') && !TOP_LEVEL.contains(&name.as_str()));
    entries
        .map(|name| format!("`{name}` does not belong at the top level"))
        .collect()
}

/// Source files that are too long.
pub fn long_files(repository: &Repository) -> Vec<String> {
    let long = written(repository).filter_map(|(path, text)| {
        let (lines, limit) = (text.lines().count(), limit(path));
        (lines > limit).then(|| format!("{path} has {lines} lines; at most {limit} are meant to be"))
    });
    long.collect()
}

fn written(repository: &Repository) -> impl Iterator<Item = (&str, &str)> {
    repository.sources("").filter(|(path, _)| !GENERATED.contains(path))
}

fn limit(path: &str) -> usize {
    let descriptor =
        path.starts_with("transports/") && path.ends_with("/src/lib.rs") && !path.starts_with(NO_TRANSPORT);
    if descriptor { LONGEST_DESCRIPTOR } else { LONGEST }
}

/// Files that a transport lacks.
pub fn transports(repository: &Repository) -> Vec<String> {
    let directories = repository.crates.iter().map(|own| own.directory.as_str());
    let transports = directories.filter(|directory| directory.starts_with("transports/") && *directory != NO_TRANSPORT);
    let expected =
        transports.flat_map(|directory| OF_A_TRANSPORT.iter().map(move |file| format!("{directory}/{file}")));
    let missing = expected.filter(|path| !repository.files.contains_key(path));
    missing
        .map(|path| format!("{path} is missing; every transport has the same files"))
        .collect()
}

/// Rules of the linter that a source file switches off for itself.
pub fn lint_exceptions(repository: &Repository) -> Vec<String> {
    let switch = ["allow(", "clippy::"].concat();
    let found = written(repository).filter(|(_, text)| text.contains(&switch));
    found
        .map(|(path, _)| format!("{path} switches off a lint of clippy; fix what it finds"))
        .collect()
}

/// Crates that do not take the workspace's lints.
pub fn lint_tables(repository: &Repository) -> Vec<String> {
    let takes = |path: &String| {
        let manifest = repository.files.get(path);
        manifest.is_some_and(|text| text.contains("[lints]\nworkspace = true"))
    };
    let manifests = repository
        .crates
        .iter()
        .map(|own| format!("{}/Cargo.toml", own.directory));
    manifests
        .filter(|path| !takes(path))
        .map(|path| format!("{path} does not take the workspace's lints"))
        .collect()
}

/// Crates with more than one integration test binary. Each would link everything once more.
pub fn test_binaries(repository: &Repository) -> Vec<String> {
    let odd = repository.crates.iter().flat_map(|own| {
        let others = own.integration_tests.iter().filter(|name| *name != "it");
        others.map(move |name| format!("{}: the integration test `{name}` belongs into tests/it", own.name))
    });
    odd.collect()
}

/// What keeps a plugin of another contract from vanishing, and a panic in one from taking the host down.
pub fn build_settings(repository: &Repository) -> Vec<String> {
    let text = |path: &str| repository.files.get(path).map_or("", String::as_str);
    let mut found = Vec::new();
    if !text("host/api/Cargo.toml").contains("links = \"capsule-api\"") {
        found.push("host/api/Cargo.toml: `links` is missing; two versions of the contract could be linked".to_owned());
    }
    for profile in ["dev", "release"] {
        let section = text("Cargo.toml").split_once(&format!("[profile.{profile}]\n"));
        let section = section.map_or("", |(_, rest)| rest.split("\n[").next().unwrap_or(rest));
        if !section.contains("panic = \"unwind\"") {
            found.push(format!("Cargo.toml: the profile `{profile}` does not unwind"));
        }
    }
    found
}
