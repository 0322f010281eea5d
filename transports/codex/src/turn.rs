//! One turn: one run of the app-server from its start to its last process gone.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use capsule_api::{
    BlockId, CallId, CancelReason, Catalogue, Clock, Error, Event, Events, Limit, Outcome, TurnIo, timeout,
};
use capsule_transport_process::{AttachedTurn, Child, Exit, Life, Line, Listed, Stop, Watchdog};
use tokio::sync::watch;

use crate::{
    codes,
    command::TOOLS_PATIENCE,
    last::LastCalls,
    protocol,
    reader::{Action, Ending, Reader},
};

/// How long the CLI may take to exit after its turn, with its input closed.
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
    pub(crate) tools: Option<Tools>,
    pub(crate) watchdog: Watchdog,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) blocks: Blocks,
}

/// The way of the turn's calls: the bridge's slot, what the bridge told the CLI, and the calls of the last request.
pub(crate) struct Tools {
    pub(crate) attached: AttachedTurn,
    pub(crate) listed: watch::Receiver<Option<Listed>>,
    pub(crate) last: Arc<LastCalls>,
    /// The number of the request whose calls are the last; `None` where the CLI does not tell where an answer ends.
    pub(crate) last_request: Option<u32>,
}

/// The task's block ids for the reader's own.
#[derive(Default)]
pub(crate) struct Blocks(HashMap<BlockId, BlockId>);

/// Why a turn no longer reads.
enum Halt {
    /// The turn is over, or the output ended.
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
    pub(crate) thread: Option<String>,
    /// Processes that could not be ended.
    pub(crate) survivors: Vec<(u32, String)>,
}

impl Turn {
    /// Runs to the end. When it returns, the program's group is gone and its calls have ended.
    pub(crate) async fn run(mut self, open: Vec<u8>, prompt: &str) -> Left {
        let halt = match self.child.send(open).await {
            Ok(()) => self.read(prompt).await,
            // It is gone already; its exit and stderr say more than the broken pipe.
            Err(_) => Halt::Over,
        };
        let (outcome, exit) = match halt {
            Halt::Over => self.finish().await,
            Halt::Cancelled(reason) => (Ok(Outcome::Cancelled), self.stop(reason, true).await),
            Halt::Limit(which) => {
                self.tell_limit(which);
                let exit = self.stop(CancelReason::Limit, true).await;
                (Ok(Outcome::LimitReached { which }), exit)
            }
            // Where calls are kept, their end would let the CLI go on.
            Halt::Stop(outcome) => (outcome, self.stop(CancelReason::Limit, false).await),
        };
        self.end_calls().await;
        let last = self.reader.close();
        self.act(last).await;
        let survivors = match exit {
            Some(exit) => {
                self.tell_leftovers(&exit);
                exit.survivors
            }
            None => self.child.members(),
        };
        Left {
            outcome,
            thread: self.reader.thread().map(str::to_owned),
            survivors,
        }
    }

    /// Reads until something ends the turn.
    async fn read(&mut self, prompt: &str) -> Halt {
        let io = self.io.clone();
        let mut awaited: Option<Vec<CallId>> = None;
        loop {
            let line = {
                let life = || {
                    self.tools
                        .as_ref()
                        .map_or_else(Life::default, |tools| tools.attached.life())
                };
                let last = async {
                    match (&awaited, &self.tools) {
                        (Some(calls), Some(tools)) => tools.last.ended(calls).await,
                        _ => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    reason = io.cancel.cancelled() => return Halt::Cancelled(reason),
                    () = last => return Halt::Stop(Ok(Outcome::LimitReached { which: Limit::Requests })),
                    line = self.child.next_line(&*self.clock) => line,
                    which = self.watchdog.expired(life) => return Halt::Limit(which),
                }
            };
            self.watchdog.alive();
            let actions = match line {
                Ok(Some(line)) => self.take(line),
                Ok(None) => return Halt::Over,
                Err(error) => {
                    self.warn("codex-stdout", format!("reading the CLI's output failed: {error}"));
                    return Halt::Over;
                }
            };
            let mut told = false;
            for action in actions {
                told |= matches!(action, Action::Say(_) | Action::Opened);
                let halt = match action {
                    Action::Opened => self.start(prompt, &io).await,
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
            if told && let Some(halt) = self.room(&io).await {
                return halt;
            }
        }
    }

    /// The thread is there: proves the tools, then starts the turn.
    async fn start(&mut self, prompt: &str, io: &TurnIo) -> Option<Halt> {
        if let Some(tools) = &mut self.tools {
            let proof = prove(&mut tools.listed, self.reader.catalogue(), &*self.clock);
            let proof = tokio::select! {
                biased;
                reason = io.cancel.cancelled() => return Some(Halt::Cancelled(reason)),
                proof = proof => proof,
            };
            if let Err(error) = proof {
                return Some(Halt::Stop(Err(error)));
            }
        }
        let started = self.reader.proven();
        self.act(started).await;
        let thread = self.reader.thread().unwrap_or_default();
        // Where it is gone already, the end of its output follows.
        let _ = self.child.send(protocol::turn(thread, prompt)).await;
        None
    }

    /// Waits until the log has room for more. The CLI is not silent meanwhile, it is not read.
    async fn room(&mut self, io: &TurnIo) -> Option<Halt> {
        let tools = &self.tools;
        let life = || Life {
            busy: true,
            waited: tools
                .as_ref()
                .map_or(Duration::ZERO, |tools| tools.attached.life().waited),
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
                        "codex-not-utf8",
                        "the CLI wrote bytes that are not UTF-8; they were replaced".into(),
                    );
                }
                self.reader.line(&text)
            }
            Line::TooLong { bytes } => {
                self.warn("codex-line-too-long", format!("a line of {bytes} bytes was skipped"));
                Vec::new()
            }
        }
    }

    async fn act(&mut self, actions: impl IntoIterator<Item = Action>) -> Option<Halt> {
        for action in actions {
            match action {
                Action::Say(event) => self.io.events.emit(self.blocks.translate(event, &self.io.events)),
                Action::Send(line) => {
                    // Where it is gone already, the end of its output follows.
                    let _ = self.child.send(line).await;
                }
                Action::Request(n) => {
                    if let Some(tools) = &self.tools
                        && tools.last_request == Some(n)
                    {
                        tools.last.hold();
                    }
                }
                Action::Returned { call, told } => self.check_call(call, &told),
                Action::Stop(outcome) => return Some(Halt::Stop(outcome)),
                Action::Ended => return Some(Halt::Over),
                Action::Opened | Action::Last(_) => {}
            }
        }
        None
    }

    /// A call whose result the CLI reports must have come through the bridge.
    fn check_call(&self, call: CallId, told: &str) {
        if self.tools.as_ref().is_some_and(|tools| tools.attached.saw(&call)) {
            return;
        }
        let message = format!("the call {call} did not reach the capsule; the CLI answered it itself: {told}");
        self.io.tools.missed(call, told);
        self.warn("codex-call-missed", message);
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
    async fn stop(&mut self, reason: CancelReason, calls_first: bool) -> Option<Exit> {
        if let (true, Some(tools)) = (calls_first, &self.tools) {
            // Calls that take longer are waited for at the end, when nothing can call any more.
            let _ = timeout(&*self.clock, CALLS_END, tools.attached.finish(reason)).await;
        }
        let clock = self.clock.clone();
        if timeout(&*clock, STEP, self.interrupt()).await.is_ok() {
            self.child.close_input();
            if let Ok(exit) = timeout(&*clock, STEP, self.child.drain_until_exit()).await {
                return Some(exit);
            }
        }
        self.child.close_input();
        self.child.stop(&*clock, &[(Stop::Terminate, STEP)]).await
    }

    /// Interrupts the turn and waits until the CLI says that it is over, so that it has written down what there is of it.
    async fn interrupt(&mut self) {
        let Some(interrupt) = self.reader.interrupt().filter(|_| !self.reader.is_over()) else {
            return;
        };
        if self.child.send(interrupt).await.is_err() {
            return;
        }
        while let Ok(Some(line)) = self.child.next_line(&*self.clock).await {
            // What the model did meanwhile is no longer the turn's.
            if let Line::Text { text, .. } = line {
                self.reader.line(&text);
            }
            if self.reader.is_over() {
                return;
            }
        }
    }

    async fn end_calls(&mut self) {
        if let Some(tools) = self.tools.take() {
            tools.attached.finish(CancelReason::Shutdown).await;
        }
    }

    fn tell_limit(&self, which: Limit) {
        let silence = self.watchdog.silence().as_secs();
        let message = format!(
            "the limit `{}` was reached; the last sign of life was {silence} s ago",
            which.as_str()
        );
        self.warn("codex-limit", message);
    }

    fn tell_leftovers(&self, exit: &Exit) {
        if !exit.leftovers.is_empty() {
            let names: Vec<_> = exit
                .leftovers
                .iter()
                .map(|(id, name)| format!("{name} ({id})"))
                .collect();
            self.warn(
                "codex-leftovers",
                format!("processes outlived the CLI and were killed: {}", names.join(", ")),
            );
        }
    }

    fn warn(&self, code: &'static str, message: String) {
        self.io.events.emit(Event::Warning { code, message });
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
