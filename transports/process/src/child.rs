//! A running program: its input, its output, its end.

use std::{
    collections::VecDeque,
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use capsule_api::{Clock, Error, timeout};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    sync::{mpsc, watch},
    task::JoinHandle,
};

use crate::{
    Exit, Line, LineReader, Program, Stop, codes,
    ladder::{DRAIN, KILL},
    spawner::{self, KillOnDrop},
};

/// How much of the end of the program's stderr is kept, in bytes. All of it is read.
pub const STDERR_TAIL: usize = 16 * 1024;

/// Messages that wait for the program to read its input; a further one waits for room.
const INPUT_QUEUE: usize = 8;

/// What may still be read once the program has exited: more than a pipe holds, so that nothing of the program's is lost.
const REST: u64 = 2 * 1024 * 1024;

/// A program in its own process group.
///
/// Dropping it kills the group at once; a thread reaps it. The parent's death kills the program too.
pub struct Child {
    group: KillOnDrop,
    exit: watch::Receiver<Option<Exit>>,
    input: Option<mpsc::Sender<Vec<u8>>>,
    writer: OwnedTask,
    lines: LineReader<pipe::Receiver>,
    /// More output than that, in bytes, is a failure.
    most_output: u64,
    /// Where reading ends, in bytes, once the program has exited.
    last: Option<u64>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_reader: OwnedTask,
}

/// A task that ends with its owner.
struct OwnedTask(JoinHandle<()>);

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Child {
    /// Starts a program. Dropping the future ends what it may have started.
    ///
    /// # Errors
    /// [`codes::SPAWN`] with the path and the system's reason.
    pub async fn spawn(program: Program) -> Result<Self, Error> {
        let (path, most_output) = (program.path().to_owned(), program.most_output);
        let failed = |error: io::Error| {
            let message = format!("{} could not be started: {error}", path.display());
            Error::new(&codes::SPAWN, message).caused_by(error)
        };
        let spawned = spawner::spawn(program).await.map_err(failed)?;
        let stdin = pipe::Sender::from_owned_fd(spawned.stdin).map_err(failed)?;
        let stdout = pipe::Receiver::from_owned_fd(spawned.stdout).map_err(failed)?;
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let stderr_reader = keep_tail(spawned.stderr, stderr.clone()).map_err(failed)?;
        let (input, queue) = mpsc::channel(INPUT_QUEUE);
        Ok(Self {
            group: spawned.group,
            exit: spawned.exit,
            input: Some(input),
            writer: OwnedTask(tokio::spawn(write(stdin, queue))),
            lines: LineReader::new(stdout),
            most_output,
            last: None,
            stderr,
            stderr_reader,
        })
    }

    /// The program's process id, which is also its group's.
    pub fn id(&self) -> u32 {
        self.group.0.leader().as_raw_nonzero().get().unsigned_abs()
    }

    /// Queues a message for standard input; waits while 8 others are queued. Cancel-safe.
    ///
    /// # Errors
    /// [`codes::STDIN`] where the input is closed, by [`Child::close_input`] or by the program.
    pub async fn send(&self, message: impl Into<Vec<u8>>) -> Result<(), Error> {
        let closed = || Error::new(&codes::STDIN, "the program's standard input is closed");
        let input = self.input.as_ref().ok_or_else(closed)?;
        input.send(message.into()).await.map_err(|_| closed())
    }

    /// The queue of [`Child::send`]; `None` where the input is closed.
    pub(crate) fn sender(&self) -> Option<mpsc::Sender<Vec<u8>>> {
        self.input.clone()
    }

    /// Closes standard input once what is queued is written.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Whether everything that was sent has been taken by the program's pipe and the input is closed.
    pub fn input_finished(&self) -> bool {
        self.writer.0.is_finished()
    }

    /// The next line of standard output; `None` at its end. Cancel-safe.
    ///
    /// Once the program and its group are gone, a process that left the group may still hold the output open: then it ends after half a
    /// second of silence, or 2 MiB later.
    ///
    /// # Errors
    /// Reading failed, or there is more than the program may write ([`io::ErrorKind::FileTooLarge`]).
    pub async fn next_line(&mut self, clock: &dyn Clock) -> io::Result<Option<Line>> {
        if self.lines.bytes() > self.most_output {
            let message = format!("there is more of it than {} bytes", self.most_output);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        if self.exit.borrow().is_some() {
            let last = *self.last.get_or_insert(self.lines.bytes() + REST);
            if self.lines.bytes() > last {
                return Ok(None);
            }
        }
        let exited = wait(&mut self.exit);
        tokio::select! {
            biased;
            line = self.lines.next() => line,
            () = async { exited.await; clock.sleep(DRAIN).await } => Ok(None),
        }
    }

    /// Waits for the program's end, reaped and its group gone. Cancel-safe.
    pub async fn exited(&mut self) -> Exit {
        wait(&mut self.exit).await
    }

    /// Signals the whole group; nothing once the program is reaped.
    pub fn signal(&self, stop: Stop) {
        self.group.0.signal(stop);
    }

    /// Processes of the group that are alive: id and name. Reads `/proc`.
    pub fn members(&self) -> Vec<(u32, String)> {
        self.group.0.members()
    }

    /// Climbs the ladder: each signal in turn, with its time to take effect, then `SIGKILL`. Output is read and dropped meanwhile.
    ///
    /// `None` where the program is still there a second after `SIGKILL`, which only the kernel can explain; its group is then listed by
    /// [`Child::members`].
    pub async fn stop(&mut self, clock: &dyn Clock, ladder: &[(Stop, Duration)]) -> Option<Exit> {
        for (signal, patience) in ladder.iter().copied().chain([(Stop::Kill, KILL)]) {
            self.signal(signal);
            if let Ok(exit) = timeout(clock, patience, self.drain_until_exit()).await {
                return Some(exit);
            }
        }
        None
    }

    /// Waits for the end and drops the output, so that a program that still writes is not kept from ending. Cancel-safe.
    pub async fn drain_until_exit(&mut self) -> Exit {
        let drain = async {
            if let Err(error) = self.lines.discard().await {
                // Nothing of it is wanted any more; how the program ends is told by its exit.
                tracing::debug!(%error, "standard output of a program broke");
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            exit = wait(&mut self.exit) => exit,
            () = drain => unreachable!("the drain never ends by itself"),
        }
    }

    /// The end of what the program wrote to stderr. After its exit, waits up to half a second for the last of it.
    pub async fn stderr_tail(&mut self, clock: &dyn Clock) -> String {
        if self.exit.borrow().is_some() {
            // Only the text matters here; a task that was aborted or is late has kept what it read.
            let _ = timeout(clock, DRAIN, &mut self.stderr_reader.0).await;
        }
        let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

async fn wait(exit: &mut watch::Receiver<Option<Exit>>) -> Exit {
    let exit = exit.wait_for(Option::is_some).await;
    let exit = exit.expect("the reaper reports before it ends");
    exit.clone().expect("waited for it to be there")
}

async fn write(mut stdin: pipe::Sender, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = queue.recv().await {
        if let Err(error) = stdin.write_all(&message).await {
            // The program no longer reads. Senders see it as a closed input; how it ends is told by its exit.
            tracing::debug!(%error, "standard input of a program broke");
            return;
        }
    }
}

fn keep_tail(stderr: OwnedFd, tail: Arc<Mutex<VecDeque<u8>>>) -> io::Result<OwnedTask> {
    let mut stderr = pipe::Receiver::from_owned_fd(stderr)?;
    Ok(OwnedTask(tokio::spawn(async move {
        let mut chunk = vec![0; 4096];
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.extend(&chunk[..read]);
            let over = tail.len().saturating_sub(STDERR_TAIL);
            tail.drain(..over);
        }
    })))
}
