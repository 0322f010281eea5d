//! What is to be started, and with what.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

use capsule_api::Secret;

use crate::escaped::Marks;

/// How much a program may write to standard output, in bytes, unless it is told otherwise. A line is a sign of life whatever is in it, so a
/// program that writes without an end would run without one.
pub const MOST_OUTPUT: u64 = 4 << 30;

/// A program with its arguments, directory and whole environment.
///
/// Nothing is inherited: a variable that is not set here is not there.
pub struct Program {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(String, OsString)>,
    pub(crate) directory: PathBuf,
    pub(crate) marks: Marks,
    pub(crate) most_output: u64,
}

impl Program {
    /// A native program that runs in `directory`.
    pub fn new(path: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            args: Vec::new(),
            env: Vec::new(),
            directory: directory.into(),
            marks: Marks::default(),
            most_output: MOST_OUTPUT,
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds an argument. Arguments can be read by every user of the machine: no secret, no prompt.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets a variable whose value no other run has. What the program starts inherits it: by it, a process that has left the group is
    /// found and killed when the program has ended.
    #[must_use]
    pub fn mark(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.marks.add(name, value.as_ref());
        self.env(name, value)
    }

    /// Sets how much it may write to standard output, in bytes, instead of [`MOST_OUTPUT`].
    #[must_use]
    pub fn most_output(mut self, bytes: u64) -> Self {
        self.most_output = bytes;
        self
    }

    /// Sets a variable to a secret.
    #[must_use]
    pub fn secret_env(self, name: &str, value: &Secret) -> Self {
        self.env(name, value.expose())
    }
}

/// Shows the names of the variables, not their values: some are secret.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Program")
            .field("path", &self.path)
            .field("args", &self.args)
            .field("env", &names)
            .field("directory", &self.directory)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_value_of_the_environment() {
        let program = Program::new("/bin/agent", "/run")
            .arg("-p")
            .secret_env("KEY", &Secret::new("sk-secret"));
        assert_eq!(
            format!("{program:?}"),
            r#"Program { path: "/bin/agent", args: ["-p"], env: ["KEY"], directory: "/run" }"#
        );
    }
}
