//! The one thread that starts all programs.
//!
//! The kernel sends the parent-death signal when the *thread* that started a child ends, not the process. A worker of an asynchronous
//! runtime may end at any time; this thread lives as long as the host.

use std::{
    collections::BTreeMap,
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Command, Stdio},
    sync::{Arc, OnceLock, mpsc},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::sync::{oneshot, watch};

use crate::{
    Program,
    escaped::Marks,
    group::{Exit, Group, Stop},
};

/// A started program. Dropping it kills its group; a thread of its own reaps it in any case.
pub(crate) struct Spawned {
    pub(crate) group: KillOnDrop,
    pub(crate) exit: watch::Receiver<Option<Exit>>,
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Kills the group when dropped.
pub(crate) struct KillOnDrop(pub(crate) Arc<Group>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.signal(Stop::Kill);
    }
}

/// Names by ids.
type Processes = BTreeMap<u32, String>;

struct Job {
    program: Program,
    reply: oneshot::Sender<io::Result<Spawned>>,
}

/// Starts a program. Dropping the future ends what it may have started.
pub(crate) async fn spawn(program: Program) -> io::Result<Spawned> {
    static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, queue) = mpsc::channel::<Job>();
        let run = move || {
            for job in queue {
                // A caller that went away drops the reply, and with it the child.
                let _ = job.reply.send(start(&job.program));
            }
        };
        if let Err(error) = thread::Builder::new().name("capsule-spawner".into()).spawn(run) {
            tracing::error!(%error, "the thread that starts programs could not be started");
        }
        jobs
    });
    let (reply, started) = oneshot::channel();
    let gone = || io::Error::other("the thread that starts programs is gone");
    spawner.send(Job { program, reply }).map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}

fn start(program: &Program) -> io::Result<Spawned> {
    // The reaper first: a child without one would stay a zombie if this thread could not be had.
    let (child_in, children) = mpsc::channel::<(std::process::Child, Arc<Group>)>();
    let marks = program.marks.clone();
    let (exited, exit) = watch::channel(None);
    thread::Builder::new().name("capsule-reaper".into()).spawn(move || {
        if let Ok((child, group)) = children.recv() {
            exited.send_replace(Some(reap(child, &group, &marks)));
        }
    })?;
    let mut child = command(program).spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let group = Arc::new(Group::new(pid.expect("the id of a child is positive")));
    let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = taken else {
        unreachable!("all three are piped");
    };
    child_in
        .send((child, group.clone()))
        .expect("the reaper waits for exactly this");
    Ok(Spawned {
        group: KillOnDrop(group),
        exit,
        stdin: stdin.into(),
        stdout: stdout.into(),
        stderr: stderr.into(),
    })
}

fn command(program: &Program) -> Command {
    let mut command = Command::new(&program.path);
    command
        .args(&program.args)
        .env_clear()
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&program.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    die_with_parent(&mut command);
    command
}

#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
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

/// Where the kernel has no such signal, a program ends when its standard input does.
#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: &mut Command) {}

/// Waits for the child's end, kills what it left in its group and outside of it, then reaps it.
fn reap(mut child: std::process::Child, group: &Group, marks: &Marks) -> Exit {
    // Without reaping: the group keeps its name until the leftovers are gone.
    while waitid(
        WaitId::Pid(group.leader()),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    )
    .is_err_and(|error| error == rustix::io::Errno::INTR)
    {}
    let (leftovers, survivors) = end_leftovers(group, marks);
    let status = group.reap(|| child.wait());
    let mut exit = status.map_or(
        Exit {
            code: None,
            signal: None,
            leftovers: Vec::new(),
            survivors: Vec::new(),
        },
        Exit::new,
    );
    exit.leftovers = leftovers.into_iter().collect();
    exit.survivors = survivors.into_iter().collect();
    exit
}

/// Kills what a program has left, and gives what it was and what is still there a second later.
fn end_leftovers(group: &Group, marks: &Marks) -> (Processes, Processes) {
    let mut leftovers = Processes::new();
    for _ in 0..200 {
        let mut left: Processes = group.others().into_iter().collect();
        group.signal(Stop::Kill);
        // One that has left the group may start others until it is gone.
        let carriers = marks.carriers();
        marks.kill(&carriers);
        left.extend(carriers);
        if left.is_empty() {
            return (leftovers, left);
        }
        leftovers.extend(left);
        thread::sleep(Duration::from_millis(5));
    }
    let left = group.others().into_iter().chain(marks.carriers()).collect();
    (leftovers, left)
}
