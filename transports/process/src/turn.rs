//! One turn: one run of a CLI from its start to its last process gone. What is the same whatever the dialect.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use capsule_api::{BlockId, CallId, CancelReason, Clock, Error, Event, Events, Limit, Outcome, TurnIo, timeout};

use crate::{
    AttachedTurn, Child, Exit, Life, Line, Loan, Stop, Watchdog, codes,
    ladder::{CALLS, REST, STEP, until},
};

/// How long the CLI may take to exit after its terminal event, with its input closed.
const EXIT_GRACE: Duration = Duration::from_secs(3);

/// Codes of the events that every turn may tell, under a dialect's name.
#[derive(Debug)]
pub struct TurnCodes {
    /// Reading the output failed.
    pub stdout: &'static str,
    /// Bytes that are not UTF-8 were replaced.
    pub not_utf8: &'static str,
    /// A line was skipped.
    pub line_too_long: &'static str,
    /// A call did not come through the bridge.
    pub call_missed: &'static str,
    /// A call came through the bridge that the CLI never told of.
    pub call_untold: &'static str,
    /// A limit in time was reached.
    pub limit: &'static str,
    /// Processes outlived the CLI and were killed.
    pub leftovers: &'static str,
    /// The version is newer than those tested.
    pub untested: &'static str,
    /// Something about the lent login.
    pub login: &'static str,
}

/// The codes under a name, such as `turn_codes!("claude")`.
#[macro_export]
macro_rules! turn_codes {
    ($name:literal) => {
        $crate::TurnCodes {
            stdout: concat!($name, "-stdout"),
            not_utf8: concat!($name, "-not-utf8"),
            line_too_long: concat!($name, "-line-too-long"),
            call_missed: concat!($name, "-call-missed"),
            call_untold: concat!($name, "-call-untold"),
            limit: concat!($name, "-limit"),
            leftovers: concat!($name, "-leftovers"),
            untested: concat!($name, "-untested"),
            login: concat!($name, "-login"),
        }
    };
}

/// Why a turn no longer reads.
#[derive(Debug)]
pub enum Halt {
    /// The terminal event was read, or the output ended.
    Over,
    /// Cancelled from outside.
    Cancelled(CancelReason),
    /// A limit in time.
    Limit(Limit),
    /// The reader says so.
    Stop(Result<Outcome, Error>),
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that the host did not send; in words.
    Died(String),
    /// The host ended it, because it stayed after its terminal event.
    Stayed,
}

impl Ending {
    /// The end in words.
    pub fn words(&self) -> String {
        match self {
            Self::Exited(code) => format!("exit status {code}"),
            Self::Died(how) => how.clone(),
            Self::Stayed => "killed".to_owned(),
        }
    }

    /// The error with the exit and the end of what the CLI wrote to stderr.
    #[must_use]
    pub fn tell(&self, error: Error, stderr: &str) -> Error {
        let error = if stderr.is_empty() {
            error
        } else {
            error.with("stderr", stderr)
        };
        match self {
            Self::Exited(code) => error.with("exit", code.to_string()),
            Self::Died(how) => error.with("exit", how.clone()),
            Self::Stayed => error,
        }
    }
}

/// A running turn. Dropping it kills the program, cancels its calls and takes the login back.
pub struct Turn {
    /// The program.
    pub child: Child,
    io: TurnIo,
    calls: Option<AttachedTurn>,
    watchdog: Watchdog,
    clock: Arc<dyn Clock>,
    codes: &'static TurnCodes,
    /// The task's block ids for the reader's own.
    blocks: HashMap<BlockId, BlockId>,
    /// The calls that the CLI has told of.
    told: HashSet<CallId>,
    /// Everything that the CLI had to tell was read.
    heard_out: bool,
    /// The last field: given back when the program is killed.
    loan: Option<Loan>,
}

/// What a turn is made of.
pub struct TurnParts {
    /// The program, started.
    pub child: Child,
    /// Where the turn's events go.
    pub io: TurnIo,
    /// The bridge's slot, where there are tools.
    pub calls: Option<AttachedTurn>,
    /// The turn's limits in time.
    pub watchdog: Watchdog,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The login that was lent to the program.
    pub loan: Option<Loan>,
    /// The dialect's codes.
    pub codes: &'static TurnCodes,
}

/// The normal end of a program.
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// The end of its stderr.
    pub stderr: String,
    /// Its exit; `None` where it could not be ended.
    pub exit: Option<Exit>,
}

impl Turn {
    /// A turn that begins.
    pub fn new(parts: TurnParts) -> Self {
        Self {
            child: parts.child,
            io: parts.io,
            calls: parts.calls,
            watchdog: parts.watchdog,
            clock: parts.clock,
            codes: parts.codes,
            blocks: HashMap::new(),
            told: HashSet::new(),
            heard_out: false,
            loan: parts.loan,
        }
    }

    /// The turn's own time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The next line of output, unless something ends the turn before; `None` for one that is too long to be read. `ends` is another thing
    /// that may end it. Cancel-safe.
    ///
    /// # Errors
    /// What ended the turn.
    pub async fn next_line(&mut self, ends: impl Future<Output = Halt>) -> Result<Option<String>, Halt> {
        let calls = &self.calls;
        let life = || calls.as_ref().map_or_else(Life::default, AttachedTurn::life);
        let line = tokio::select! {
            biased;
            reason = self.io.cancel.cancelled() => return Err(Halt::Cancelled(reason)),
            halt = ends => return Err(halt),
            line = self.child.next_line(&*self.clock) => line,
            which = self.watchdog.expired(life) => return Err(Halt::Limit(which)),
        };
        self.watchdog.alive();
        match line {
            Ok(Some(Line::Text { text, lossy })) => {
                if lossy {
                    let message = "the CLI wrote bytes that are not UTF-8; they were replaced";
                    self.warn(self.codes.not_utf8, message.to_owned());
                }
                Ok(Some(text))
            }
            Ok(Some(Line::TooLong { bytes })) => {
                self.warn(self.codes.line_too_long, format!("a line of {bytes} bytes was skipped"));
                Ok(None)
            }
            Ok(None) => Err(Halt::Over),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let message = format!("the CLI does not stop writing to its standard output: {error}");
                Err(Halt::Stop(Err(Error::new(&codes::OUTPUT_LIMIT, message))))
            }
            Err(error) => {
                self.warn(self.codes.stdout, format!("reading the CLI's output failed: {error}"));
                Err(Halt::Over)
            }
        }
    }

    /// Waits until the log has room for more. The CLI is not silent meanwhile, it is not read. Cancel-safe.
    pub async fn room(&mut self) -> Option<Halt> {
        let calls = &self.calls;
        let life = || Life {
            busy: true,
            ..calls.as_ref().map_or_else(Life::default, AttachedTurn::life)
        };
        tokio::select! {
            biased;
            reason = self.io.cancel.cancelled() => Some(Halt::Cancelled(reason)),
            () = self.io.events.ready() => None,
            which = self.watchdog.expired(life) => Some(Halt::Limit(which)),
        }
    }

    /// Waits for `work`, unless the turn is cancelled or reaches a limit before. Cancel-safe where the work is.
    ///
    /// # Errors
    /// What ended the turn.
    pub async fn unless_ended<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Halt> {
        let calls = &self.calls;
        let life = || calls.as_ref().map_or_else(Life::default, AttachedTurn::life);
        tokio::select! {
            biased;
            reason = self.io.cancel.cancelled() => Err(Halt::Cancelled(reason)),
            value = work => Ok(value),
            which = self.watchdog.expired(life) => Err(Halt::Limit(which)),
        }
    }

    /// Queues a message for the CLI, which need not read it: whether it does is seen by what it says next. Cancel-safe.
    ///
    /// # Errors
    /// What ended the turn while the queue was full.
    pub async fn send(&mut self, message: Vec<u8>) -> Result<(), Halt> {
        let sender = self.child.sender();
        self.unless_ended(async move {
            if let Some(sender) = sender {
                // Where it is gone already, the end of its output follows.
                let _ = sender.send(message).await;
            }
        })
        .await
    }

    /// Tells an event, with the task's block ids in place of the reader's.
    pub fn say(&mut self, event: Event) {
        if let Event::CallStarted { call, .. } | Event::Call { call, .. } = &event {
            self.told.insert(call.clone());
        }
        let event = translate(event, &mut self.blocks, &self.io.events);
        self.io.events.emit(event);
    }

    /// The CLI will be silent for so long.
    pub fn quiet_for(&mut self, after: Duration) {
        self.watchdog.quiet_for(after);
    }

    /// A call whose result the CLI reports must have come through the bridge.
    pub fn check_call(&mut self, call: CallId, told: &str) {
        self.told.insert(call.clone());
        if self.calls.as_ref().is_some_and(|calls| calls.saw(&call)) {
            return;
        }
        let message = format!("the call {call} did not reach the capsule; the CLI answered it itself: {told}");
        self.io.tools.missed(call, told);
        self.warn(self.codes.call_missed, message);
    }

    /// The normal end: input closed, exit awaited for 3 s, or for 1.5 s more where the turn is cancelled meanwhile; else the program is ended.
    pub async fn finish(&mut self) -> Finished {
        self.heard_out = true;
        self.child.close_input();
        let (clock, cancel) = (&self.clock, &self.io.cancel);
        let patience = async {
            tokio::select! {
                _ = cancel.cancelled() => clock.sleep(STEP).await,
                () = clock.sleep(EXIT_GRACE) => {}
            }
        };
        let exited = tokio::select! {
            biased;
            exit = self.child.drain_until_exit() => Some(exit),
            () = patience => None,
        };
        let (exit, ending) = match exited {
            Some(exit) => {
                let ending = match exit.code {
                    Some(code) => Ending::Exited(code),
                    None => Ending::Died(exit.to_string()),
                };
                (Some(exit), ending)
            }
            None => (self.terminate().await, Ending::Stayed),
        };
        let stderr = self.child.stderr_tail(&*self.clock).await;
        Finished { ending, stderr, exit }
    }

    /// The first step of the ladder: cancels the running calls, and gives them half a second. Those that take longer are waited for at the
    /// end, when nothing can call any more.
    pub async fn cancel_calls(&self, reason: CancelReason) {
        if let Some(calls) = &self.calls {
            let _ = timeout(&*self.clock, CALLS, calls.finish(reason)).await;
        }
    }

    /// When an interrupt that is sent now must have ended the program.
    pub fn interrupt_ends(&self) -> Instant {
        self.clock.now() + STEP
    }

    /// The rest of the ladder: input closed and the exit awaited until the interrupt's time is over; `SIGTERM`, 1.5 s, `SIGKILL`.
    pub async fn end(&mut self, interrupt_ends: Instant) -> Option<Exit> {
        self.child.close_input();
        match until(&*self.clock, interrupt_ends, self.child.drain_until_exit()).await {
            Ok(exit) => Some(exit),
            Err(_) => self.terminate().await,
        }
    }

    async fn terminate(&mut self) -> Option<Exit> {
        self.child.stop(&*self.clock, &[(Stop::Terminate, STEP)]).await
    }

    /// Tells that a limit in time was reached.
    pub fn tell_limit(&self, which: Limit) {
        let silence = self.watchdog.silence().as_secs();
        let which = which.as_str();
        let message = format!("the limit `{which}` was reached; the last sign of life was {silence} s ago");
        self.warn(self.codes.limit, message);
    }

    /// The last of a turn, when the program is gone: waits half a second for its calls and takes the login back.
    pub async fn settle(&mut self) {
        if let Some(calls) = self.calls.take() {
            let ended = timeout(&*self.clock, REST, calls.finish(CancelReason::Shutdown)).await;
            if ended.is_err() {
                let message = "tool calls of the turn have not ended with it; nobody waits for them any more";
                self.warn(self.codes.leftovers, message.to_owned());
            }
            self.check_untold(&calls);
        }
        if let Some(loan) = self.loan.take() {
            let settled = loan.end().await;
            if settled.renewed {
                let data = serde_json::json!({"renewed": true});
                self.io.events.emit(Event::Note {
                    code: self.codes.login,
                    data,
                });
            }
            for warning in settled.warnings {
                self.warn(self.codes.login, warning);
            }
        }
    }

    /// The other way round: a call that came through the bridge must have been told by the CLI, where all of that was read.
    fn check_untold(&self, calls: &AttachedTurn) {
        for call in calls.beside(&self.told).into_iter().filter(|_| self.heard_out) {
            let message = format!("the call {call} reached the capsule, and the CLI told nothing of it");
            self.warn(self.codes.call_untold, message);
        }
    }

    /// Tells of processes that outlived the program; gives those that could not be ended.
    pub fn survivors(&self, exit: Option<Exit>) -> Vec<(u32, String)> {
        let Some(exit) = exit else {
            return self.child.members();
        };
        if !exit.leftovers.is_empty() {
            let names = exit.leftovers.iter().map(|(id, name)| format!("{name} ({id})"));
            let names = names.collect::<Vec<_>>().join(", ");
            self.warn(
                self.codes.leftovers,
                format!("processes outlived the CLI and were killed: {names}"),
            );
        }
        exit.survivors
    }

    fn warn(&self, code: &'static str, message: String) {
        self.io.events.emit(Event::Warning { code, message });
    }
}

fn translate(event: Event, blocks: &mut HashMap<BlockId, BlockId>, events: &Events) -> Event {
    let mut of = |block: BlockId| *blocks.entry(block).or_insert_with(|| events.block());
    match event {
        Event::Delta { block, kind, text } => Event::Delta {
            block: of(block),
            kind,
            text,
        },
        Event::Block { block, kind, text } => Event::Block {
            block: of(block),
            kind,
            text,
        },
        Event::Retracted { block } => Event::Retracted { block: of(block) },
        other => other,
    }
}
