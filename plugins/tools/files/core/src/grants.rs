//! The granted directories, and how a failed access is told.

use std::io::{self, ErrorKind};

use capsule_guest::Error;

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read, list or search.
    Read,
    /// To create or change.
    Write,
}

/// The granted directories, as this tool sees them, in order. None outside a component.
#[must_use]
pub fn roots() -> Vec<String> {
    #[cfg(target_os = "wasi")]
    {
        let directories = wasip2::filesystem::preopens::get_directories();
        let mut names: Vec<String> = directories.into_iter().map(|(_, name)| name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
    #[cfg(not(target_os = "wasi"))]
    Vec::new()
}

/// Why `path` could not be accessed, as a sentence for the model; a denial where no grant allows it.
#[must_use]
pub fn refusal(access: Access, path: &str, error: &io::Error) -> Error {
    refusal_among(&roots(), access, path, error)
}

fn refusal_among(roots: &[String], access: Access, path: &str, error: &io::Error) -> Error {
    let able = match access {
        Access::Read => "readable",
        Access::Write => "writable",
    };
    if no_grant(error) {
        let granted = match roots {
            [] => "no directory is granted to this tool".to_owned(),
            [one] => format!("the granted directory is {one}"),
            several => format!("the granted directories are {}", several.join(", ")),
        };
        return Error::denied(format!("not {able} here: no grant covers '{path}'; {granted}"));
    }
    if forbidden(error) {
        let why = match access {
            Access::Read => "is denied, or leads out of the granted directory",
            Access::Write => "is granted for reading only, or leads out of the granted directory",
        };
        return Error::denied(format!("not {able} here: '{path}' {why}"));
    }
    Error::new(match error.kind() {
        ErrorKind::NotFound => format!("not found: '{path}'"),
        ErrorKind::NotADirectory => format!("not found: a part of '{path}' is not a directory"),
        ErrorKind::IsADirectory => format!("'{path}' is a directory"),
        _ => format!("'{path}' is not {able}: {error}"),
    })
}

/// Whether the path lies below none of the granted directories. The standard library finds that out before it asks the host, and has
/// no kind of error for it.
fn no_grant(error: &io::Error) -> bool {
    error.raw_os_error().is_none() && error.to_string().contains("pre-opened file descriptor")
}

/// Whether the sandbox refused: it answers so for a path or link that leaves the granted directory, for a change where reading is
/// granted, and for what its owner may not do.
fn forbidden(error: &io::Error) -> bool {
    /// WASI's own number for a right that a descriptor lacks; the standard library has no kind for it.
    const ENOTCAPABLE: i32 = 76;
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    ) || (cfg!(target_os = "wasi") && error.raw_os_error() == Some(ENOTCAPABLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(roots: &[&str], access: Access, error: &io::Error) -> Error {
        let roots: Vec<String> = roots.iter().map(|root| (*root).to_owned()).collect();
        refusal_among(&roots, access, "/x", error)
    }

    #[test]
    fn a_path_without_a_grant_is_denied_and_the_granted_directories_are_named() {
        // The words of the standard library on this target.
        let error =
            io::Error::other("failed to find a pre-opened file descriptor through which \"/x\" could be opened");
        let expected = [
            (&[][..], "no directory is granted to this tool"),
            (&["/a"], "the granted directory is /a"),
            (&["/a", "/b"], "the granted directories are /a, /b"),
        ];
        for (roots, end) in expected {
            let message = format!("not readable here: no grant covers '/x'; {end}");
            assert_eq!(told(roots, Access::Read, &error), Error::denied(message));
        }
    }

    #[test]
    fn what_the_sandbox_refuses_is_denied_and_what_is_not_there_is_not() {
        let refused = io::Error::from(ErrorKind::PermissionDenied);
        let read = "not readable here: '/x' is denied, or leads out of the granted directory";
        let write = "not writable here: '/x' is granted for reading only, or leads out of the granted directory";
        assert_eq!(told(&[], Access::Read, &refused), Error::denied(read));
        assert_eq!(told(&[], Access::Write, &refused), Error::denied(write));

        let missing = io::Error::from(ErrorKind::NotFound);
        assert_eq!(told(&[], Access::Read, &missing), Error::new("not found: '/x'"));
    }
}
