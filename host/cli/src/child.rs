//! A program that a command needs, watched to its end: its own process group, bounded output, a ladder of signals, reaped.

use std::{
    io,
    os::unix::process::CommandExt as _,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use capsule_api::{Cancel, Clock, timeout};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader};

/// What is kept of a line, in bytes; the rest of it is read and dropped.
const LONGEST_LINE: usize = 1 << 20;
/// How long a program may take to end after each signal.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the end of the output may take once the program has ended: a process that left the group may hold the pipe open.
const DRAIN: Duration = Duration::from_millis(500);

/// How long what was killed may take to be gone, and how often it is looked for.
const GONE_WITHIN: Duration = Duration::from_secs(1);
const GONE_EVERY: Duration = Duration::from_millis(5);

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Out,
    Err,
}

/// Runs the program to its end, and hands each line of its output to `each`. Its whole group is ended when `cancel` fires
/// (`SIGINT`, 2 s, `SIGTERM`, 2 s, `SIGKILL`), and killed when the future is dropped or the host dies.
///
/// To be awaited on the thread that runs the whole command: the kernel kills the program when the thread that started it ends.
///
/// # Errors
/// The program could not be started or waited for.
pub(crate) async fn run(
    mut command: std::process::Command,
    (clock, cancel): (&dyn Clock, &Cancel),
    mut each: impl FnMut(From, &str),
) -> io::Result<ExitStatus> {
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    die_with_parent(&mut command);
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let mut group = KillOnDrop(id);
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (tx, mut lines) = tokio::sync::mpsc::channel(64);
    // Both end with their pipe, or with `lines`.
    let readers = [
        tokio::spawn(read(out.map(BufReader::new), From::Out, tx.clone())),
        tokio::spawn(read(err.map(BufReader::new), From::Err, tx)),
    ];
    let ended = ended(id, clock, cancel);
    tokio::pin!(ended);
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some((from, line)) => each(from, &line),
                None => break ended.as_mut().await,
            },
            () = &mut ended => {
                let rest = async { while let Some((from, line)) = lines.recv().await { each(from, &line) } };
                // Late output of a process that is not ours any more is not waited for.
                let _ = timeout(clock, DRAIN, rest).await;
                break;
            }
        }
    }
    readers.iter().for_each(tokio::task::JoinHandle::abort);
    // The leader is not reaped yet, so its id still names the group: what it left goes too.
    signal_group(id, Signal::KILL);
    group.0 = None;
    let status = child.wait().await;
    gone(id, clock).await;
    status
}

/// Waits until nobody is left in a group that was killed; the kernel takes a moment. Asking is harmless, should the id be somebody else's by now.
async fn gone(leader: Option<Pid>, clock: &dyn Clock) {
    for _ in 0..GONE_WITHIN.as_millis() / GONE_EVERY.as_millis() {
        if leader.is_none_or(|leader| test_kill_process_group(leader).is_err()) {
            return;
        }
        clock.sleep(GONE_EVERY).await;
    }
}

/// Waits for the program's end without reaping it, and climbs the ladder once `cancel` fires.
async fn ended(id: Option<Pid>, clock: &dyn Clock, cancel: &Cancel) {
    let Some(id) = id else { return };
    let waiting = tokio::task::spawn_blocking(move || {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(id), how).is_err_and(|error| error == rustix::io::Errno::INTR) {}
    });
    tokio::pin!(waiting);
    tokio::select! {
        _ = &mut waiting => return,
        _ = cancel.cancelled() => {}
    }
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        signal_group(Some(id), signal);
        if timeout(clock, PATIENCE, &mut waiting).await.is_ok() {
            return;
        }
    }
}

/// Signals the group of a leader that is not reaped yet.
fn signal_group(leader: Option<Pid>, signal: Signal) {
    if let Some(leader) = leader {
        // ESRCH is the only failure for a group of our own, and means that nobody is there.
        let _ = kill_process_group(leader, signal);
    }
}

/// Kills the group when dropped.
struct KillOnDrop(Option<Pid>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        signal_group(self.0, Signal::KILL);
    }
}

#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut std::process::Command) {
    let host = rustix::process::getpid();
    // SAFETY: between fork and exec the closure makes two system calls and nothing else; it allocates nothing, takes no lock and
    // touches no memory of the parent but the captured process id.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The host may have died before the call above; then the signal never comes.
            if rustix::process::getppid() == Some(host) {
                Ok(())
            } else {
                Err(io::Error::from(rustix::io::Errno::SRCH))
            }
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: &mut std::process::Command) {}

type Sender = tokio::sync::mpsc::Sender<(From, String)>;

async fn read(pipe: Option<impl AsyncBufRead + Unpin>, from: From, to: Sender) {
    let Some(mut pipe) = pipe else { return };
    let mut line = Vec::new();
    loop {
        // An error of a pipe is its end; how the program ended tells the rest.
        let Ok(bytes) = pipe.fill_buf().await else { return };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |end| end + 1);
        let room = LONGEST_LINE.saturating_sub(line.len());
        line.extend_from_slice(&bytes[..end.unwrap_or(taken).min(room)]);
        let last = bytes.is_empty();
        pipe.consume(taken);
        if end.is_some() || (last && !line.is_empty()) {
            let text = String::from_utf8_lossy(&line).into_owned();
            if to.send((from, text)).await.is_err() {
                return;
            }
            line.clear();
        }
        if last {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
