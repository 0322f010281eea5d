//! Which crate may depend on which.

use crate::repository::{Crate, Repository};

/// What the crates of a directory may depend on, among the crates of the workspace.
#[derive(Debug)]
pub struct Rule {
    /// A directory, or all directories below one: `transports/*`. The first rule that fits counts.
    pub directory: &'static str,
    /// Directories of the crates that it may be built with, in the same notation; `*` stands for all.
    pub may_need: &'static [&'static str],
    /// The same for its tests, besides `may_need` and [`TESTS_MAY_NEED`].
    pub tests_may_need: &'static [&'static str],
}

/// All rules. A crate that no rule fits is a violation.
pub const RULES: &[Rule] = &[
    rule("host/api", &[]),
    rule("host/net", &["host/api"]),
    rule("host/mcp", &["host/api", "host/net"]),
    rule("host/manifest", &["host/api"]),
    rule("host/tools", &["host/api", "host/net"]),
    rule("host/session", &["host/api"]),
    // Its module `links.rs` alone names plugins; `names` holds that.
    rule("host/cli", &["host/*", "transports/*", "plugins/drivers/*"]),
    rule("transports/process", &["host/api", "host/net", "host/mcp"]),
    // Tests use real parts: a transport over drivers is tested with those that there are.
    Rule {
        directory: "transports/*",
        may_need: &["host/api", "host/net", "host/mcp", "transports/process"],
        tests_may_need: &["plugins/drivers/*"],
    },
    rule("plugins/drivers/*", &["host/api"]),
    // A third party that runs the kit compiles nothing but the contract.
    rule("tests/kit", &["host/api"]),
    rule("tests/*", &["*"]),
];

/// What the tests of any crate may be built with besides.
pub const TESTS_MAY_NEED: &[&str] = &["tests/fakes", "tests/kit"];

const fn rule(directory: &'static str, may_need: &'static [&'static str]) -> Rule {
    Rule {
        directory,
        may_need,
        tests_may_need: &[],
    }
}

fn fits(pattern: &str, directory: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(parent) => directory.starts_with(parent),
        None => pattern == directory,
    }
}

/// Edges that no rule allows.
pub fn violations(repository: &Repository) -> Vec<String> {
    repository
        .crates
        .iter()
        .flat_map(|own| of_crate(own, repository))
        .collect()
}

fn of_crate(own: &Crate, repository: &Repository) -> Vec<String> {
    let Some(rule) = RULES.iter().find(|rule| fits(rule.directory, &own.directory)) else {
        return vec![format!(
            "{}: no rule says what a crate in `{}` may depend on",
            own.name, own.directory
        )];
    };
    let directory_of = |name: &String| {
        let other = repository.crates.iter().find(|other| other.name == *name);
        other.map_or("", |other| other.directory.as_str())
    };
    let allowed = |name: &String, patterns: &[&str]| {
        let directory = directory_of(name);
        patterns.iter().any(|pattern| fits(pattern, directory))
    };
    let for_tests = [rule.may_need, rule.tests_may_need, TESTS_MAY_NEED].concat();
    let needs = own.needs.iter().filter(|name| !allowed(name, rule.may_need));
    let needs = needs.map(|name| format!("{} must not depend on {name}", own.name));
    let dev_needs = own.dev_needs.iter().filter(|name| !allowed(name, &for_tests));
    let dev_needs = dev_needs.map(|name| format!("the tests of {} must not depend on {name}", own.name));
    needs.chain(dev_needs).collect()
}
