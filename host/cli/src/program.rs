//! A program that a manifest names: where it is, and what it says about itself.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use capsule_api::{Cancel, CancelReason, Clock, Error, Settings, timeout};

use crate::{
    child::{self, From},
    failure::{codes, internal},
};

/// How long `--version` may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where a program finds others, such as the interpreter of a script.
const SEARCH_PATH: &str = "/usr/bin:/bin";

/// Finds a program as the manifest names it: a name is looked up in PATH, a path starts at the manifest. Blocks on the file system.
///
/// # Errors
/// There is none, or the path leaves the manifest's directory.
pub(crate) fn find(command: &str, settings: &Settings) -> Result<PathBuf, Error> {
    let missing = |what: String| Error::new(&codes::PROGRAM_NOT_FOUND, what);
    if !command.contains('/') {
        return which::which(command).map_err(|_| missing(format!("no program `{command}` is in PATH")));
    }
    let path = settings.path("command", Path::new(command))?;
    match path.is_file() {
        true => Ok(path),
        false => Err(missing(format!("there is no program {}", path.display()))),
    }
}

/// The first line that the program prints for `--version`; `None` where it prints none within 10 s or cannot be started.
///
/// It runs as [`child::run`] has it, with an environment from nothing and directories that are removed afterwards. Dropping the future ends
/// it. To be awaited on the thread that runs the whole command.
///
/// # Errors
/// No temporary directory can be made.
pub(crate) async fn version(path: &Path, clock: &dyn Clock) -> Result<Option<String>, Error> {
    let place = tempfile::tempdir().map_err(|error| internal("make a temporary directory", &error))?;
    let (mut first, enough) = (None, Cancel::new());
    let each = |from, line: &str| {
        if from == From::Out && first.is_none() {
            first = Some(line.trim().to_owned());
            enough.cancel(CancelReason::Caller);
        }
    };
    let running = child::run(alone(path, place.path()), (clock, &enough), each);
    // One that cannot be started, or takes too long, says nothing; how it ends is of no interest.
    let _ = timeout(clock, PATIENCE, running).await;
    Ok(first.filter(|line| !line.is_empty()))
}

/// The program with nothing of the host's environment, at home in a directory of its own.
fn alone(path: &Path, home: &Path) -> Command {
    let mut command = Command::new(path);
    command
        .arg("--version")
        .current_dir(home)
        .env_clear()
        .env("PATH", SEARCH_PATH);
    for name in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
        command.env(name, home);
    }
    command
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use capsule_api::{SystemClock, async_trait};
    use std::time::{Instant, SystemTime};

    use super::*;

    /// Time-outs are over at once.
    struct Hasty;

    #[async_trait]
    impl Clock for Hasty {
        fn now(&self) -> Instant {
            Instant::now()
        }

        fn wall(&self) -> SystemTime {
            SystemTime::now()
        }

        async fn sleep(&self, _: Duration) {}
    }

    fn script(dir: &Path, body: &str) -> PathBuf {
        let path = dir.join("agent");
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[tokio::test]
    async fn what_a_program_prints_first_is_its_version() {
        let dir = tempfile::tempdir().unwrap();
        for (body, said) in [
            ("echo \"$1 is 1.2.3\"; echo more", Some("--version is 1.2.3")),
            ("printf 'no line end'; exit 3", Some("no line end")),
            ("echo only an error >&2", None),
        ] {
            let said_now = version(&script(dir.path(), body), &SystemClock).await.unwrap();
            assert_eq!(said_now.as_deref(), said, "{body}");
        }
        assert_eq!(version(Path::new("/nowhere/agent"), &SystemClock).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_program_sees_nothing_of_the_host_s_environment_and_home() {
        let dir = tempfile::tempdir().unwrap();
        let agent = script(dir.path(), "echo \"$(env | sort | cut -d= -f1 | tr '\\n' ' ')\"");
        let said = version(&agent, &SystemClock).await.unwrap().unwrap();
        let names: Vec<_> = said
            .split(' ')
            .filter(|name| !matches!(*name, "PWD" | "SHLVL" | "_" | "OLDPWD"))
            .collect();
        assert_eq!(names, ["HOME", "PATH", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"]);
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_ended_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let hang = format!("sleep 600 & echo $! $$ > {}; mv {0} {0}.whole; wait", pids.display());
        let agent = script(dir.path(), &hang);
        let whole = dir.path().join("pids.whole");
        let waiting = tokio::spawn(async move { version(&agent, &SystemClock).await });
        let text = loop {
            match fs::read_to_string(&whole) {
                Ok(text) => break text,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        waiting.abort();
        assert!(waiting.await.is_err(), "it hangs until it is dropped");
        let alive = |pid: &str| {
            let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // A zombie of this test's own, or of whatever adopts orphans here, is no longer running.
            !status.is_empty() && !status.contains(") Z ")
        };
        while text.split_whitespace().any(alive) {
            tokio::task::yield_now().await;
        }
        for body in ["sleep 600", "while :; do printf xxxxxxxx; done"] {
            let agent = script(dir.path(), body);
            assert_eq!(version(&agent, &Hasty).await.unwrap(), None, "time is up: {body}");
        }
    }
}
