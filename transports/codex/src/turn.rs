//! One turn: one run of the app-server from its start to its last process gone.

use std::{collections::BTreeSet, future::pending, sync::Arc};

use capsule_api::{CallId, CancelReason, Catalogue, Clock, Error, Limit, Outcome, timeout};
use capsule_transport_process::{self as process, Exit, Halt, Line, Listed, TurnCodes, turn_codes, until};
use tokio::sync::watch;

use crate::{
    codes,
    command::TOOLS_PATIENCE,
    last::LastCalls,
    protocol,
    reader::{Action, Reader},
};

/// Codes of the events that every turn may tell.
pub(crate) const CODES: TurnCodes = turn_codes!("codex");

/// A running turn. Dropping it kills the program and cancels its calls.
pub(crate) struct Turn {
    pub(crate) run: process::Turn,
    pub(crate) reader: Reader,
    pub(crate) tools: Option<Tools>,
}

/// What the bridge told the CLI, and the calls of the last request.
pub(crate) struct Tools {
    pub(crate) listed: watch::Receiver<Option<Listed>>,
    pub(crate) last: Arc<LastCalls>,
    /// The number of the request whose calls are the last; `None` where the CLI does not tell where an answer ends.
    pub(crate) last_request: Option<u32>,
}

/// What a turn leaves.
pub(crate) struct Left {
    pub(crate) outcome: Result<Outcome, Error>,
    /// The CLI's id of the conversation.
    pub(crate) thread: Option<String>,
    /// Processes that could not be ended.
    pub(crate) survivors: Vec<(u32, String)>,
}

impl Turn {
    /// Runs to the end. When it returns, the program's group is gone and its calls have ended.
    pub(crate) async fn run(mut self, open: Vec<u8>, prompt: &str) -> Left {
        let halt = match self.run.child.send(open).await {
            Ok(()) => self.read(prompt).await,
            // It is gone already; its exit and stderr say more than the broken pipe.
            Err(_) => Halt::Over,
        };
        let (outcome, exit) = match halt {
            Halt::Over => self.finish().await,
            Halt::Cancelled(reason) => (Ok(Outcome::Cancelled), self.stop(reason, true).await),
            Halt::Limit(which) => {
                self.run.tell_limit(which);
                let exit = self.stop(CancelReason::Limit, true).await;
                (Ok(Outcome::LimitReached { which }), exit)
            }
            // Where calls are kept, their end would let the CLI go on.
            Halt::Stop(outcome) => (outcome, self.stop(CancelReason::Limit, false).await),
        };
        self.run.settle().await;
        let last = self.reader.close();
        self.act(last).await;
        Left {
            outcome,
            thread: self.reader.thread().map(str::to_owned),
            survivors: self.run.survivors(exit),
        }
    }

    /// Reads until something ends the turn.
    async fn read(&mut self, prompt: &str) -> Halt {
        let mut awaited: Option<Vec<CallId>> = None;
        loop {
            let last = async {
                match (&awaited, &self.tools) {
                    (Some(calls), Some(tools)) => tools.last.ended(calls).await,
                    _ => pending().await,
                }
                Halt::Stop(Ok(Outcome::LimitReached { which: Limit::Requests }))
            };
            let actions = match self.run.next_line(last).await {
                Ok(Some(line)) => self.reader.line(&line),
                Ok(None) => Vec::new(),
                Err(halt) => return halt,
            };
            let mut told = false;
            for action in actions {
                told |= matches!(action, Action::Say(_) | Action::Opened);
                let halt = match action {
                    Action::Opened => self.start(prompt).await,
                    Action::Last(calls) => {
                        if let Some(tools) = &self.tools {
                            tools.last.answered();
                        }
                        awaited = Some(calls);
                        None
                    }
                    other => self.act([other]).await,
                };
                if let Some(halt) = halt {
                    return halt;
                }
            }
            // A line that told nothing needs no room.
            if told && let Some(halt) = self.run.room().await {
                return halt;
            }
        }
    }

    /// The thread is there: proves the tools, then starts the turn.
    async fn start(&mut self, prompt: &str) -> Option<Halt> {
        if let Some(tools) = &mut self.tools {
            let clock = self.run.clock().clone();
            let proof = prove(&mut tools.listed, self.reader.catalogue(), &*clock);
            match self.run.unless_ended(proof).await {
                Err(halt) => return Some(halt),
                Ok(Err(error)) => return Some(Halt::Stop(Err(error))),
                Ok(Ok(())) => {}
            }
        }
        let started = self.reader.proven();
        self.act(started).await;
        let thread = self.reader.thread().unwrap_or_default();
        self.run.send(protocol::turn(thread, prompt)).await.err()
    }

    async fn act(&mut self, actions: impl IntoIterator<Item = Action>) -> Option<Halt> {
        for action in actions {
            match action {
                Action::Say(event) => self.run.say(event),
                Action::Send(line) => {
                    if let Err(halt) = self.run.send(line).await {
                        return Some(halt);
                    }
                }
                Action::Request(n) => {
                    if let Some(tools) = &self.tools
                        && tools.last_request == Some(n)
                    {
                        tools.last.hold();
                    }
                }
                Action::Returned { call, told } => self.run.check_call(call, &told),
                Action::Stop(outcome) => return Some(Halt::Stop(outcome)),
                Action::Ended => return Some(Halt::Over),
                Action::Opened | Action::Last(_) => {}
            }
        }
        None
    }

    /// The normal end: everything judged together.
    async fn finish(&mut self) -> (Result<Outcome, Error>, Option<Exit>) {
        let finished = self.run.finish().await;
        (self.reader.outcome(&finished.ending, &finished.stderr), finished.exit)
    }

    /// The ladder: running calls first, then the protocol's interrupt, `SIGTERM`, `SIGKILL`.
    async fn stop(&mut self, reason: CancelReason, calls_first: bool) -> Option<Exit> {
        if calls_first {
            self.run.cancel_calls(reason).await;
        }
        let clock = self.run.clock().clone();
        let ends = self.run.interrupt_ends();
        // What it took of the time is not given again for the exit.
        let _ = until(&*clock, ends, self.interrupt()).await;
        self.run.end(ends).await
    }

    /// Interrupts the turn and waits until the CLI says that it is over, so that it has written down what there is of it.
    async fn interrupt(&mut self) {
        let Some(interrupt) = self.reader.interrupt().filter(|_| !self.reader.is_over()) else {
            return;
        };
        let clock = self.run.clock().clone();
        let child = &mut self.run.child;
        if child.send(interrupt).await.is_err() {
            return;
        }
        while let Ok(Some(line)) = child.next_line(&*clock).await {
            // What the model did meanwhile is no longer the turn's.
            if let Line::Text { text, .. } = line {
                self.reader.line(&text);
            }
            if self.reader.is_over() {
                return;
            }
        }
    }
}

/// Waits until the bridge has told this run's CLI exactly the catalogue.
async fn prove(
    listed: &mut watch::Receiver<Option<Listed>>,
    catalogue: &Catalogue,
    clock: &dyn Clock,
) -> Result<(), Error> {
    let want: BTreeSet<&str> = catalogue.tools.iter().map(|tool| tool.alias.as_str()).collect();
    if !matches!(timeout(clock, TOOLS_PATIENCE, listed.changed()).await, Ok(Ok(()))) {
        let message = "the CLI has opened its conversation and never asked for the capsule's tools";
        return Err(Error::new(&codes::TOOLS, message));
    }
    let told = listed.borrow_and_update();
    let got: BTreeSet<&str> = told
        .iter()
        .flat_map(|told| told.tools.iter().map(String::as_str))
        .collect();
    if want == got {
        return Ok(());
    }
    let list = |names: Vec<&&str>| names.into_iter().copied().collect::<Vec<_>>().join(", ");
    let error = Error::new(&codes::TOOLS, "the CLI's tools are not the capsule's");
    Err(error
        .with("missing", list(want.difference(&got).collect()))
        .with("unwanted", list(got.difference(&want).collect())))
}
