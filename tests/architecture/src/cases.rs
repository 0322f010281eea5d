//! Bug cases as data, and the tests that hold them. The format is described in `tests/cases/README.md`.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::repository::Repository;

/// A failure that somebody met, and what is right instead.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Such as `R-01`.
    pub id: String,
    /// Where it was met.
    pub source: String,
    /// What brings it about.
    pub stimulus: String,
    /// What is right.
    pub expected: String,
    /// Its tests: a path from the root, `::`, the function's name.
    pub tests: Vec<String>,
}

/// Where the data lies.
const DIRECTORY: &str = "tests/cases/";

/// The beginning of the names of a case's tests: `r_01_`.
fn prefix(id: &str) -> String {
    id.to_lowercase().replace('-', "_") + "_"
}

/// Cases that cannot be read, are incomplete or name a test that does not exist, and tests of cases that do not list them.
pub fn violations(repository: &Repository) -> Vec<String> {
    let (mut found, mut ids, mut listed, mut families) =
        (Vec::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (path, text) in repository
        .files
        .iter()
        .filter(|(path, _)| path.starts_with(DIRECTORY) && path.ends_with(".json"))
    {
        let cases: Vec<Case> = match serde_json::from_str(text) {
            Ok(cases) => cases,
            Err(error) => {
                found.push(format!("{path}: {error}"));
                continue;
            }
        };
        for case in cases {
            found.extend(
                of_case(&case, repository)
                    .into_iter()
                    .map(|what| format!("{path}: {}: {what}", case.id)),
            );
            families.extend(case.id.split('-').next().map(str::to_lowercase));
            listed.extend(case.tests);
            if !ids.insert(case.id.clone()) {
                found.push(format!("{path}: {} is there twice", case.id));
            }
        }
    }
    found.extend(unlisted(repository, &families, &listed));
    found
}

fn of_case(case: &Case, repository: &Repository) -> Vec<String> {
    let mut found = Vec::new();
    if [&case.source, &case.stimulus, &case.expected]
        .iter()
        .any(|text| text.trim().is_empty())
    {
        found.push("source, stimulus and expected must say something".to_owned());
    }
    if case.tests.is_empty() {
        found.push("no test holds it".to_owned());
    }
    for test in &case.tests {
        let (path, name) = test.split_once("::").unwrap_or((test, ""));
        if !name.starts_with(&prefix(&case.id)) {
            found.push(format!(
                "the name of the test `{test}` does not begin with `{}`",
                prefix(&case.id)
            ));
        }
        let text = repository.files.get(path).map_or("", String::as_str);
        if !functions(text).any(|function| function == name) {
            found.push(format!("there is no test `{test}`"));
        }
    }
    found
}

/// Tests that are named after a case of these families, but that no case lists.
fn unlisted(repository: &Repository, families: &BTreeSet<String>, listed: &BTreeSet<String>) -> Vec<String> {
    let tests = repository.sources("").flat_map(|(path, text)| {
        let named = functions(text).filter(|name| of_family(name).is_some_and(|family| families.contains(family)));
        named.map(move |name| format!("{path}::{name}"))
    });
    tests
        .filter(|test| !listed.contains(test))
        .map(|test| format!("no case lists the test `{test}`"))
        .collect()
}

/// Tests that a page names, as `PATH.rs::NAME`, and that do not exist.
pub fn missing_from_pages(repository: &Repository) -> Vec<String> {
    let pages = repository.files.iter().filter(|(path, _)| path.ends_with(".md"));
    let named = pages.flat_map(|(page, text)| {
        let quoted = text.split('`').skip(1).step_by(2);
        quoted.filter_map(move |words| Some((page, words.split_once(".rs::")?)))
    });
    named
        .filter(|(_, (path, name))| {
            let text = repository.files.get(&format!("{path}.rs")).map_or("", String::as_str);
            !functions(text).any(|function| function == *name)
        })
        .map(|(page, (path, name))| format!("{page}: there is no test `{path}.rs::{name}`"))
        .collect()
}

/// `r` of `r_01_something`.
fn of_family(name: &str) -> Option<&str> {
    let mut parts = name.split('_');
    let (family, number) = (parts.next()?, parts.next()?);
    let digits = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    (digits && parts.next().is_some()).then_some(family)
}

/// Names of the functions that a source file defines.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim_start);
    let definitions = lines.filter_map(|line| line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn ")));
    definitions.filter_map(|rest| rest.split(['(', '<']).next())
}
