//! `capsule new`: a capsule that runs at once.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use crate::{Failure, args::New, failure};

pub(crate) fn new(args: &New) -> Result<ExitCode, Failure> {
    let name = args.name.as_str();
    if !can_name(name) {
        let message = format!(
            "`{name}` cannot name a capsule: use 1 to 100 lower-case letters, digits and `-`, and begin with a letter or a digit"
        );
        return Err(Failure::usage(message, "For example `capsule new my-agent`."));
    }
    let dir = Path::new(name);
    // `create_dir`, so that nothing that is already there is ever overwritten.
    fs::create_dir(dir).map_err(|error| cannot_make(name, &error))?;
    if let Err(error) = args.template.write(dir, name) {
        // Made above, so nothing of anybody else's is in it. Where it stays, the next attempt says so.
        let _ = fs::remove_dir_all(dir);
        let hint = "Check the disk, and that nothing else changes the directory meanwhile.";
        return Err(Failure::usage(format!("cannot write `{name}`: {error}"), hint));
    }
    let mut told = format!("made {name}/; run it with:");
    for (at, command) in args.template.next().iter().enumerate() {
        let and = if at == 0 { "" } else { " &&" };
        told.push_str(&format!("{and} capsule {command} {name}"));
    }
    writeln!(io::stdout().lock(), "{told}").map_err(|error| failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn cannot_make(name: &str, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            "Choose another name, or move away what is there: nothing that exists is overwritten."
        }
        _ => "Run it in a directory that you may write to.",
    };
    Failure::usage(format!("cannot make the directory `{name}`: {error}"), hint)
}

/// Stricter than a manifest: a name that begins with `-` is a directory that every later command takes for an option.
fn can_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=100).contains(&name.len()) && !name.starts_with('-') && name.chars().all(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_directory_that_commands_can_be_given() {
        for good in ["a", "my-agent", "2nd", &"a".repeat(100)] {
            assert!(can_name(good), "{good}");
        }
        for bad in [
            "",
            "-x",
            "--help",
            "A",
            "a b",
            "../a",
            "a/b",
            ".",
            "ä",
            &"a".repeat(101),
        ] {
            assert!(!can_name(bad), "{bad}");
        }
    }
}
