//! Nothing in `host/` names a transport, a program behind one, or a driver, but the list of links.

use crate::repository::Repository;

/// The one file of the host that names plugins.
pub const LINKS: &str = "host/cli/src/links.rs";

/// Names that are also ordinary words: a scheme, what an operating system runs, what a test tool does, what a tool is made of. They may
/// occur; what they may not do is decide anything, and that a reviewer sees.
pub const GENERIC: &[&str] = &["http", "process", "echo", "component"];

/// Names of plugins: the directories that hold them.
pub fn of_plugins(repository: &Repository) -> Vec<&str> {
    let parents = ["transports/", "plugins/drivers/"];
    let directories = repository.crates.iter().map(|own| own.directory.as_str());
    let names = directories.filter_map(|directory| parents.iter().find_map(|parent| directory.strip_prefix(parent)));
    names.filter(|name| !GENERIC.contains(name)).collect()
}

/// Places in the host's code, tests and comments apart, that name a plugin.
pub fn violations(repository: &Repository) -> Vec<String> {
    let names = of_plugins(repository);
    let mut found = Vec::new();
    for (path, text) in repository
        .sources("host/")
        .filter(|(path, _)| *path != LINKS && !is_test(path))
    {
        for (number, line) in code(text).lines().enumerate() {
            let line = line.to_lowercase();
            let named = names.iter().filter(|name| line.contains(**name));
            found.extend(named.map(|name| format!("{path}:{}: names the plugin `{name}`", number + 1)));
        }
    }
    found
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
}

/// The text without comments and without the unit tests at its end; every line keeps its number.
pub fn code(text: &str) -> String {
    let tests = text
        .find("#[cfg(test)]\nmod ")
        .filter(|start| text[*start..].contains('{'));
    let text = &text[..tests.unwrap_or(text.len())];
    let mut code = String::with_capacity(text.len());
    let (mut rest, mut in_text) = (text, false);
    while let Some(next) = rest.chars().next() {
        let skip = match next {
            // A quote as a character literal is no quote.
            '\'' if !in_text && rest.starts_with("'\"'") => 3,
            '\\' if in_text => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '/' if !in_text && rest.starts_with("//") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '"' => {
                in_text = !in_text;
                1
            }
            other => other.len_utf8(),
        };
        code.push_str(&rest[..skip]);
        rest = &rest[skip..];
    }
    code
}
