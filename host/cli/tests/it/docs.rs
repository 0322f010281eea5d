//! What the documents say: the table of error codes, and every command in a shell block.
//!
//! A block that begins with three backquotes and `sh` is run, line by line, in a folder with a copy of the example capsules and `capsule` in the
//! path; each line must succeed. Blocks `sh rust` are run by `tool_author`, where there is a toolchain. A line that cannot succeed anywhere is written in a block `sh no-run`, below a sentence that says what it
//! needs: a key, a network, a toolchain. `cargo` lines are not run here: they build and test this very program.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use crate::support::{ROOT, Ran, Sandbox, copy, files};

const MARK: &str =
    "<!-- The rest is generated: UPDATE_DOCS=1 cargo test -p capsule-host --test it the_page_of_the_error_codes -->\n";

#[test]
fn the_page_of_the_error_codes_is_the_table_of_this_program() {
    let path = format!("{ROOT}/docs/errors.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, table) = page.split_once(MARK).unwrap();
    let now = capsule::error_table().unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        fs::write(&path, format!("{head}{MARK}{now}")).unwrap();
        return;
    }
    assert_eq!(table, now, "run it again with UPDATE_DOCS=1");
}

#[test]
fn error_codes_are_unique_and_begin_with_their_owner() {
    let mut seen = BTreeSet::new();
    let mut owner = String::new();
    for line in capsule::error_table().unwrap().lines() {
        if let Some(name) = line.strip_prefix("## ") {
            owner = name.to_owned();
        }
        let Some(code) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()) else {
            continue;
        };
        assert!(seen.insert(code.to_owned()), "{code} is there twice");
        let prefix = match owner.as_str() {
            "command line" => "cli",
            "tools" => "tool",
            "network" => "net",
            plugin => plugin.rsplit(' ').next().unwrap(),
        };
        // What every transport that runs a program may raise is its library's.
        let owned =
            code.starts_with(&format!("{prefix}-")) || owner.starts_with("transport ") && code.starts_with("process-");
        assert!(owned, "{code} of {owner}");
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(code.chars().all(good), "{code} is not kebab-case");
    }
    assert!(seen.len() > 50, "{seen:?}");
}

/// The lines of the shell blocks of a page, with their line numbers; continued lines are one.
fn commands(page: &str) -> Vec<(usize, String)> {
    commands_in(page, "sh")
}

/// The same of the blocks that begin with this word.
pub(crate) fn commands_in(page: &str, wanted: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut block = None;
    let mut open: Option<(usize, String)> = None;
    for (at, line) in page.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), block) {
            (Some(_), Some(_)) => block = None,
            (Some(tag), None) => block = Some(tag.trim().to_owned()).map(|tag| tag == wanted),
            (None, Some(true)) if !line.trim().is_empty() && !line.trim_start().starts_with('#') => {
                let (start, before) = open.take().unwrap_or((at + 1, String::new()));
                let joined = format!("{before}{}", line.trim());
                match joined.strip_suffix('\\') {
                    Some(rest) => open = Some((start, rest.to_owned())),
                    None => found.push((start, joined)),
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn the_commands_of_a_page_are_those_of_its_shell_blocks() {
    let page = "text\n```sh\n# a comment\necho a \\\n  b\necho c\n```\n```sh no-run\nno\n```\n```yaml\nno: 1\n```\n  ```sh\n  echo d\n  ```\n";
    let expected = [(4, "echo a b"), (6, "echo c"), (15, "echo d")];
    assert_eq!(commands(page), expected.map(|(at, line)| (at, line.to_owned())));
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut pages = files(&root.join("docs"));
    pages.push(root.join("README.md"));
    let capsules = fs::read_dir(root.join("plugins/capsules")).unwrap();
    pages.extend(capsules.map(|capsule| capsule.unwrap().path().join("README.md")));
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md") && page.exists());
    pages
}

#[test]
fn every_command_in_the_documents_works() {
    let mut failed = Vec::new();
    let mut run = 0;
    for page in pages() {
        let sandbox = Sandbox::new();
        copy(
            &Path::new(ROOT).join("plugins/capsules"),
            &sandbox.work("plugins/capsules"),
        );
        copy(&Path::new(ROOT).join("docs"), &sandbox.work("docs"));
        let name = page.strip_prefix(ROOT).unwrap().display().to_string();
        for (line, command) in commands(&fs::read_to_string(&page).unwrap()) {
            if command.starts_with("cargo ") {
                continue;
            }
            run += 1;
            let ran = shell(&sandbox, &command);
            if ran.code != 0 {
                failed.push(format!("{name}:{line}: {command}\n{ran:#?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(run > 0, "there is no shell block in the documents");
}

/// One line as a shell runs it, with `capsule` in the path.
pub(crate) fn shell(sandbox: &Sandbox, line: &str) -> Ran {
    let capsule = sandbox.command([""; 0]);
    let bin = sandbox.path("bin");
    if !bin.exists() {
        fs::create_dir(&bin).unwrap();
        symlink(capsule.get_program(), bin.join("capsule")).unwrap();
    }
    let mut command = Command::new("bash");
    // A pipe fails where one of its parts does.
    command
        .args(["-o", "pipefail", "-c", line])
        .env_clear()
        .current_dir(sandbox.work(""));
    command.envs(capsule.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let path = capsule
        .get_envs()
        .find(|(name, _)| *name == "PATH")
        .and_then(|(_, path)| path);
    let path = path.expect("a sandbox has one").to_string_lossy();
    command.env("PATH", format!("{}:{path}", bin.display()));
    Ran::of(&command.stdin(std::process::Stdio::null()).output().unwrap())
}
