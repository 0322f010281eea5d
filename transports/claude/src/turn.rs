//! One turn: one run of the CLI from its start to its last process gone.

use std::future::pending;

use capsule_api::{CancelReason, Error, Outcome};
use capsule_transport_process::{self as process, Exit, Halt, TurnCodes, turn_codes, until};

use crate::{
    command,
    reader::{Action, Reader},
};

/// Codes of the events that every turn may tell.
pub(crate) const CODES: TurnCodes = turn_codes!("claude");

/// A running turn. Dropping it kills the program and cancels its calls.
pub(crate) struct Turn {
    pub(crate) run: process::Turn,
    pub(crate) reader: Reader,
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
        let halt = match self.run.child.send(command::prompt_line(prompt)).await {
            Ok(()) => self.read().await,
            // It is gone already; its exit and stderr say more than the broken pipe.
            Err(_) => Halt::Over,
        };
        let (outcome, exit) = match halt {
            Halt::Over => self.finish().await,
            Halt::Cancelled(reason) => (Ok(Outcome::Cancelled), self.stop(reason).await),
            Halt::Limit(which) => {
                self.run.tell_limit(which);
                let exit = self.stop(CancelReason::Limit).await;
                (Ok(Outcome::LimitReached { which }), exit)
            }
            Halt::Stop(outcome) => (outcome, self.stop(CancelReason::Limit).await),
        };
        self.run.settle().await;
        let last = self.reader.close();
        self.act(last);
        Left {
            outcome,
            session: self.reader.session().map(str::to_owned),
            survivors: self.run.survivors(exit),
        }
    }

    /// Reads until something ends the turn.
    async fn read(&mut self) -> Halt {
        loop {
            let actions = match self.run.next_line(pending()).await {
                Ok(Some(line)) => self.reader.line(&line),
                Ok(None) => Vec::new(),
                Err(halt) => return halt,
            };
            if let Some(halt) = self.act(actions) {
                return halt;
            }
            if let Some(halt) = self.run.room().await {
                return halt;
            }
        }
    }

    fn act(&mut self, actions: Vec<Action>) -> Option<Halt> {
        for action in actions {
            match action {
                Action::Say(event) => self.run.say(event),
                Action::Returned { call, told } => self.run.check_call(call, &told),
                Action::Silence(after) => self.run.quiet_for(after),
                Action::Stop(outcome) => return Some(Halt::Stop(outcome)),
                Action::Ended => return Some(Halt::Over),
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
    async fn stop(&mut self, reason: CancelReason) -> Option<Exit> {
        self.run.cancel_calls(reason).await;
        // It may be gone already, or not read its input: the next steps do not depend on it.
        let clock = self.run.clock().clone();
        let ends = self.run.interrupt_ends();
        let _ = until(&*clock, ends, self.run.child.send(command::interrupt_line())).await;
        self.run.end(ends).await
    }
}
