//! One turn: one run of the CLI from its start to its last process gone.

use std::{collections::HashMap, sync::Arc, time::Duration};

use capsule_api::{BlockId, CallId, CancelReason, Clock, Error, Event, Events, Limit, Outcome, TurnIo, timeout};
use capsule_transport_process::{AttachedTurn, Child, Exit, Life, Line, Stop, Watchdog};

use crate::{
    command,
    reader::{Action, Ending, Reader},
};

/// How long the CLI may take to exit after its terminal event, with its input closed.
const EXIT_GRACE: Duration = Duration::from_secs(3);
/// How long it may take to end after each step of the ladder: the interrupt, then `SIGTERM`; `SIGKILL` follows.
const STEP: Duration = Duration::from_millis(1500);
/// How long the running tool calls may take to end before the interrupt is sent without them.
const CALLS_END: Duration = Duration::from_millis(500);

/// A running turn. Dropping it kills the program and cancels its calls.
pub(crate) struct Turn {
    pub(crate) child: Child,
    pub(crate) reader: Reader,
    pub(crate) io: TurnIo,
    pub(crate) calls: Option<AttachedTurn>,
    pub(crate) watchdog: Watchdog,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) blocks: Blocks,
}

/// The task's block ids for the reader's own.
#[derive(Default)]
pub(crate) struct Blocks(HashMap<BlockId, BlockId>);

/// Why a turn no longer reads.
enum Halt {
    /// The terminal event was read, or the output ended.
    Over,
    /// Cancelled from outside.
    Cancelled(CancelReason),
    /// A limit in time.
    Limit(Limit),
    /// The reader says so.
    Stop(Result<Outcome, Error>),
}

/// What a turn leaves.
pub(crate) struct Left {
    pub(crate) outcome: Result<Outcome, Error>,
    /// The CLI's id of the conversation.
    pub(crate) session: Option<String>,
    /// Processes that could not be ended.
    pub(crate) survivors: Vec<(u32, String)>,
}

impl Turn {
    /// Runs to the end. When it returns, the program's group is gone and its calls have ended.
    pub(crate) async fn run(mut self, prompt: &str) -> Left {
        let halt = match self.child.send(command::prompt_line(prompt)).await {
            Ok(()) => self.read().await,
            // It is gone already; its exit and stderr say more than the broken pipe.
            Err(_) => Halt::Over,
        };
        let (outcome, exit) = match halt {
            Halt::Over => self.finish().await,
            Halt::Cancelled(reason) => (Ok(Outcome::Cancelled), self.stop(reason).await),
            Halt::Limit(which) => {
                self.tell_limit(which);
                let exit = self.stop(CancelReason::Limit).await;
                (Ok(Outcome::LimitReached { which }), exit)
            }
            Halt::Stop(outcome) => (outcome, self.stop(CancelReason::Limit).await),
        };
        self.end_calls().await;
        let last = self.reader.close();
        self.act(last);
        let survivors = match exit {
            Some(exit) => {
                self.tell_leftovers(&exit);
                exit.survivors
            }
            None => self.child.members(),
        };
        Left {
            outcome,
            session: self.reader.session().map(str::to_owned),
            survivors,
        }
    }

    /// Reads until something ends the turn.
    async fn read(&mut self) -> Halt {
        let io = self.io.clone();
        loop {
            let line = {
                let life = || self.calls.as_ref().map_or_else(Life::default, AttachedTurn::life);
                tokio::select! {
                    biased;
                    reason = io.cancel.cancelled() => return Halt::Cancelled(reason),
                    line = self.child.next_line(&*self.clock) => line,
                    which = self.watchdog.expired(life) => return Halt::Limit(which),
                }
            };
            self.watchdog.alive();
            let actions = match line {
                Ok(Some(line)) => self.take(line),
                Ok(None) => return Halt::Over,
                Err(error) => {
                    self.warn("claude-stdout", format!("reading the CLI's output failed: {error}"));
                    return Halt::Over;
                }
            };
            if let Some(halt) = self.act(actions) {
                return halt;
            }
            if let Some(halt) = self.room(&io).await {
                return halt;
            }
        }
    }

    /// Waits until the log has room for more. The CLI is not silent meanwhile, it is not read.
    async fn room(&mut self, io: &TurnIo) -> Option<Halt> {
        let calls = &self.calls;
        let life = || Life {
            busy: true,
            waited: calls.as_ref().map_or(Duration::ZERO, |calls| calls.life().waited),
        };
        tokio::select! {
            biased;
            reason = io.cancel.cancelled() => Some(Halt::Cancelled(reason)),
            () = io.events.ready() => None,
            which = self.watchdog.expired(life) => Some(Halt::Limit(which)),
        }
    }

    fn take(&mut self, line: Line) -> Vec<Action> {
        match line {
            Line::Text { text, lossy } => {
                if lossy {
                    self.warn(
                        "claude-not-utf8",
                        "the CLI wrote bytes that are not UTF-8; they were replaced".into(),
                    );
                }
                self.reader.line(&text)
            }
            Line::TooLong { bytes } => {
                self.warn("claude-line-too-long", format!("a line of {bytes} bytes was skipped"));
                Vec::new()
            }
        }
    }

    fn act(&mut self, actions: Vec<Action>) -> Option<Halt> {
        for action in actions {
            match action {
                Action::Say(event) => self.io.events.emit(self.blocks.translate(event, &self.io.events)),
                Action::Returned { call, told } => self.check_call(call, &told),
                Action::Silence(after) => self.watchdog.quiet_for(after),
                Action::Stop(outcome) => return Some(Halt::Stop(outcome)),
                Action::Ended => return Some(Halt::Over),
            }
        }
        None
    }

    /// A call whose result the CLI reports must have come through the bridge.
    fn check_call(&self, call: CallId, told: &str) {
        if self.calls.as_ref().is_some_and(|calls| calls.saw(&call)) {
            return;
        }
        let message = format!("the call {call} did not reach the capsule; the CLI answered it itself: {told}");
        self.io.tools.missed(call, told);
        self.warn("claude-call-missed", message);
    }

    /// The normal end: input closed, exit awaited, everything judged together.
    async fn finish(&mut self) -> (Result<Outcome, Error>, Option<Exit>) {
        self.child.close_input();
        let exited = timeout(&*self.clock, EXIT_GRACE, self.child.drain_until_exit()).await;
        let (exit, ending) = match exited {
            Ok(exit) => {
                let ending = match exit.code {
                    Some(code) => Ending::Exited(code),
                    None => Ending::Died(exit.to_string()),
                };
                (Some(exit), ending)
            }
            Err(_) => (
                self.child.stop(&*self.clock, &[(Stop::Terminate, STEP)]).await,
                Ending::Stayed,
            ),
        };
        let stderr = self.child.stderr_tail(&*self.clock).await;
        (self.reader.outcome(&ending, &stderr), exit)
    }

    /// The ladder: running calls first, then the protocol's interrupt, `SIGTERM`, `SIGKILL`.
    async fn stop(&mut self, reason: CancelReason) -> Option<Exit> {
        if let Some(calls) = &self.calls {
            // Calls that take longer are waited for at the end, when nothing can call any more.
            let _ = timeout(&*self.clock, CALLS_END, calls.finish(reason)).await;
        }
        // It may be gone already, or not read its input: the next steps do not depend on it.
        let _ = timeout(&*self.clock, STEP, self.child.send(command::interrupt_line())).await;
        self.child.close_input();
        if let Ok(exit) = timeout(&*self.clock, STEP, self.child.drain_until_exit()).await {
            return Some(exit);
        }
        self.child.stop(&*self.clock, &[(Stop::Terminate, STEP)]).await
    }

    async fn end_calls(&mut self) {
        if let Some(calls) = self.calls.take() {
            calls.finish(CancelReason::Shutdown).await;
        }
    }

    fn tell_limit(&self, which: Limit) {
        let silence = self.watchdog.silence().as_secs();
        let message = format!(
            "the limit `{}` was reached; the last sign of life was {silence} s ago",
            which.as_str()
        );
        self.warn("claude-limit", message);
    }

    fn tell_leftovers(&self, exit: &Exit) {
        if !exit.leftovers.is_empty() {
            let names: Vec<_> = exit
                .leftovers
                .iter()
                .map(|(id, name)| format!("{name} ({id})"))
                .collect();
            self.warn(
                "claude-leftovers",
                format!("processes outlived the CLI and were killed: {}", names.join(", ")),
            );
        }
    }

    fn warn(&self, code: &'static str, message: String) {
        self.io.events.emit(Event::Warning { code, message });
    }
}

impl Blocks {
    /// The event with the task's block ids in place of the reader's.
    fn translate(&mut self, event: Event, events: &Events) -> Event {
        let mut of = |block: BlockId| *self.0.entry(block).or_insert_with(|| events.block());
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
}
