//! A program that a manifest names: where it is, and what it says about itself.

use std::{
    io,
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use capsule_api::{Clock, Error, Settings, timeout};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{io::AsyncReadExt as _, net::unix::pipe};

use crate::failure::{codes, internal};

/// How long `--version` may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of its output that are read.
const MOST: usize = 4096;
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
/// It runs in a process group of its own, with an environment from nothing and directories that are removed afterwards. Dropping the future
/// ends it.
///
/// # Errors
/// No temporary directory can be made.
pub(crate) async fn version(path: &Path, clock: &dyn Clock) -> Result<Option<String>, Error> {
    let place = tempfile::tempdir().map_err(|error| internal("make a temporary directory", &error))?;
    let (path, home) = (path.to_owned(), place.path().to_owned());
    let started = tokio::task::spawn_blocking(move || Running::start(&path, &home)).await;
    let Ok(Ok((running, output))) = started else {
        return Ok(None);
    };
    let line = timeout(clock, PATIENCE, first_line(output)).await;
    // Before the directory that it lives in.
    drop(running);
    let line = line.ok().and_then(Result::ok);
    Ok(line.filter(|line| !line.is_empty()))
}

async fn first_line(output: OwnedFd) -> io::Result<String> {
    let output = pipe::Receiver::from_owned_fd(output)?;
    let mut output = output.take(MOST as u64);
    let mut bytes = Vec::new();
    while !bytes.contains(&b'\n') && output.read_buf(&mut bytes).await? > 0 {}
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// A program that ends, with its group, when this is dropped.
struct Running(Option<Child>);

impl Running {
    fn start(path: &Path, home: &Path) -> io::Result<(Self, OwnedFd)> {
        let mut command = Command::new(path);
        command
            .arg("--version")
            .env_clear()
            .env("PATH", SEARCH_PATH)
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0);
        for name in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, home);
        }
        let mut child = command.spawn()?;
        let output = child.stdout.take();
        let running = Self(Some(child));
        let output = output.ok_or_else(|| io::Error::other("its output is not piped"))?;
        Ok((running, output.into()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It is not reaped yet, so the number is still its own. A group that is gone already is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
        // Waiting may block, so a thread of its own does it; where there is none to be had the kernel reaps it after this process.
        let reap = move || child.wait().map(drop);
        if let Err(error) = thread::Builder::new().name("capsule-reaper".into()).spawn(reap) {
            tracing::warn!(%error, "a program that printed its version could not be waited for");
        }
    }
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
            ("while :; do printf xxxxxxxx; done", None),
        ] {
            let said_now = version(&script(dir.path(), body), &SystemClock).await.unwrap();
            match said {
                Some(_) => assert_eq!(said_now.as_deref(), said, "{body}"),
                // Endless output is cut, not waited for.
                None => assert!(said_now.is_none_or(|text| text.len() == MOST), "{body}"),
            }
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
        let agent = script(dir.path(), "sleep 600");
        assert_eq!(version(&agent, &Hasty).await.unwrap(), None, "time is up");
    }
}
