//! The agent loop: ask, run the calls, append the results, ask again.

use std::{sync::Arc, time::Duration};

use capsule_api::{
    Billing, Clock, ContentBlock, Conversation, ConversationSpec, Driver, Error, ErrorKind, Event, Health, Input,
    Limit, Outcome, Request, Response, ResumeState, StopReason, ToolDefinition, TurnIo, async_trait,
    serde_json::{Map, Value},
};

use crate::{
    answer::{Ids, PlannedCall},
    ask::{Answered, Asker, Turn},
    compact::{self, Estimate},
    history::{CANCELLED, History},
    meter::{Allowance, Meter, SameFailure, Spent},
    resume::{self, Peer},
    retry::Policy,
    rules::{content_of, failed, text_of},
    stopwatch::Stopwatch,
    tools,
};

/// What every conversation of an instance shares.
pub(crate) struct Shared {
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) peer: String,
    pub(crate) billing: Billing,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policy: Policy,
    /// Jitter, from 0 to 1.
    pub(crate) chance: fn() -> f64,
    /// Calls that run at once, at most.
    pub(crate) parallel: usize,
    pub(crate) params: Map<String, Value>,
    pub(crate) allowance: Allowance,
    /// The longest that a turn may take, without the time in which calls wait for the caller.
    pub(crate) wall: Option<Duration>,
    /// How often in a row the same call may fail.
    pub(crate) same_failure: u32,
}

/// One conversation, held by the host alone.
pub(crate) struct HttpConversation {
    pub(crate) shared: Arc<Shared>,
    pub(crate) spec: ConversationSpec,
    pub(crate) history: History,
    pub(crate) meter: Meter,
    pub(crate) estimate: Estimate,
    ids: Ids,
    resumed: bool,
    in_turn: bool,
    /// What the current turn has tried, so that it tries it once.
    pub(crate) tried: Tried,
}

/// Ways out of which a turn takes each once.
#[derive(Default)]
pub(crate) struct Tried {
    /// The provider refused the conversation as too long.
    overflow: bool,
    /// A summary could not be had.
    pub(crate) summary_failed: bool,
}

impl HttpConversation {
    pub(crate) fn new(shared: Arc<Shared>, spec: ConversationSpec, history: History, spent: Spent) -> Self {
        Self {
            shared,
            spec,
            ids: Ids::with_used(history.call_ids()),
            resumed: !history.is_empty(),
            history,
            meter: Meter::with_spent(spent),
            estimate: Estimate::default(),
            in_turn: false,
            tried: Tried::default(),
        }
    }

    async fn run(&mut self, turn: &Turn<'_>) -> Result<Outcome, Error> {
        let events = &turn.io.events;
        events.emit(Event::Started {
            model: self.spec.model.clone(),
            peer: Some(self.shared.peer.clone()),
            billing: self.shared.billing,
            resumed: self.resumed,
        });
        let mut failures = SameFailure::default();
        for n in 1..=self.spec.limits.requests {
            if turn.io.cancel.is_cancelled() {
                return Ok(Outcome::Cancelled);
            }
            if let Some(which) = self.meter.reached(&self.shared.allowance) {
                return Ok(Outcome::LimitReached { which });
            }
            if let Some(outcome) = self.make_room(turn).await {
                return Ok(outcome);
            }
            events.emit(Event::RequestStarted { n });
            let (response, calls) = match self.answer(turn).await? {
                Answered::Interrupted(outcome) => return Ok(outcome),
                Answered::Response(response, calls) => (response, calls),
            };
            let stop = response.stop_reason.as_str().to_owned();
            events.emit(Event::RequestEnded { n, stop });
            if let Some(outcome) = self.conclude(response, &calls)? {
                return Ok(outcome);
            }
            if let Some(outcome) = self.execute(&calls, turn, &mut failures).await {
                return Ok(outcome);
            }
        }
        Ok(Outcome::LimitReached { which: Limit::Requests })
    }

    /// The model's next answer. A conversation that the provider no longer holds, or that is too long for it, is sent in another way once.
    async fn answer(&mut self, turn: &Turn<'_>) -> Result<Answered, Error> {
        loop {
            let request = self.request();
            let whole = compact::frame(&request) + compact::characters(self.history.messages());
            let mut asker = Asker {
                shared: &self.shared,
                turn,
                said: &turn.io.events,
                catalogue: &self.spec.catalogue,
                ids: &mut self.ids,
                meter: &mut self.meter,
            };
            let error = match asker.ask(&request).await {
                Ok(Answered::Response(response, calls)) => {
                    self.estimate.correct(whole, &response.usage);
                    return Ok(Answered::Response(response, calls));
                }
                Ok(interrupted) => return Ok(interrupted),
                Err(error) => error,
            };
            match error.kind {
                ErrorKind::ConversationLost if request.continuation_id.is_some() => {
                    self.history.hold(None);
                    let message = format!("the provider lost the conversation, all of it is sent again: {error}");
                    let code = "http-continuation-lost";
                    turn.io.events.emit(Event::Warning { code, message });
                }
                ErrorKind::ContextOverflow if !std::mem::replace(&mut self.tried.overflow, true) => {
                    match self.compact(turn).await {
                        compact::Done::Smaller => {}
                        compact::Done::Interrupted(outcome) => return Ok(Answered::Interrupted(outcome)),
                        compact::Done::Nothing => return Err(error),
                    }
                }
                _ => return Err(error),
            }
        }
    }

    pub(crate) fn request(&self) -> Request {
        let tools = self.spec.catalogue.tools.iter().map(|tool| ToolDefinition {
            name: tool.alias.clone(),
            description: Some(tool.description.clone()).filter(|text| !text.is_empty()),
            parameters: tool.input_schema.clone(),
        });
        Request {
            model: self.spec.model.clone().unwrap_or_default(),
            max_tokens: self.spec.limits.output_tokens,
            system: Some(self.spec.system_prompt.clone()).filter(|text| !text.is_empty()),
            messages: self.history.unseen().to_vec(),
            tools: tools.collect(),
            params: self.shared.params.clone(),
            continuation_id: self.history.held().map(|held| held.id.clone()),
        }
    }

    /// Records an answer. `None` goes on: there are calls to run, or the provider paused.
    fn conclude(&mut self, response: Response, calls: &[PlannedCall]) -> Result<Option<Outcome>, Error> {
        let text = text_of(&response.content);
        // What is recorded of any other answer is not what the provider holds.
        let mut held = None;
        let outcome = match response.stop_reason {
            StopReason::EndTurn | StopReason::ToolCall => {
                self.history.assistant(response.content);
                held = response.continuation_id;
                calls.is_empty().then_some(Outcome::Completed { text })
            }
            StopReason::MaxTokens => {
                self.history.truncated(response.content);
                Some(Outcome::Truncated { partial: text })
            }
            StopReason::Refusal => Some(Outcome::Refused { text }),
            StopReason::Pause => {
                let content = response.content.into_iter();
                let without_calls = content.filter(|block| !matches!(block, ContentBlock::ToolCall { .. }));
                self.history.assistant(without_calls.collect());
                None
            }
            StopReason::Error => return Err(failed()),
        };
        self.history.hold(held);
        Ok(outcome)
    }

    /// Runs the calls and records a result for each, in the order of the calls, also when the turn must end meanwhile. `Some`: it must.
    async fn execute(&mut self, calls: &[PlannedCall], turn: &Turn<'_>, failures: &mut SameFailure) -> Option<Outcome> {
        let mut results = Vec::new();
        results.resize_with(calls.len(), || None);
        let tools = &turn.io.tools;
        let interrupted = tokio::select! {
            biased;
            outcome = turn.interrupted() => Some(outcome),
            () = tools::run(tools, calls, self.shared.parallel, &turn.watch, &mut results) => None,
        };
        let mut failed = Vec::new();
        for (call, result) in calls.iter().zip(results) {
            let (is_error, text) = match result {
                Some(told) => (told.is_error, told.text),
                None => (true, CANCELLED.to_owned()),
            };
            failed.push(is_error);
            self.history.result(call.id.as_str(), is_error, text);
        }
        if interrupted.is_some() || calls.is_empty() {
            return interrupted;
        }
        let ended = calls.iter().zip(&failed);
        let row = failures.answer(ended.map(|(call, failed)| (call.alias.as_str(), &call.input, *failed)));
        (row >= self.shared.same_failure).then_some(Outcome::LimitReached {
            which: Limit::SameFailure,
        })
    }

    fn peer(&self) -> Peer {
        Peer {
            peer: self.shared.peer.clone(),
            model: self.spec.model.clone(),
        }
    }
}

#[async_trait]
impl Conversation for HttpConversation {
    async fn turn(&mut self, input: Input, io: TurnIo) -> Result<Outcome, Error> {
        let content = content_of(input)?;
        self.in_turn = true;
        self.tried = Tried::default();
        self.meter.begin();
        self.history.begin(content);
        let turn = Turn {
            io: &io,
            watch: Stopwatch::start(self.shared.clock.clone()),
            wall: self.shared.wall,
        };
        let ended = self.run(&turn).await;
        // A refused exchange would be refused again with every later request, and a failed one may be what failed: the next turn starts
        // from before it. A cancelled one stays, so that "go on" has something to go on from.
        match &ended {
            Ok(Outcome::Refused { .. }) => self.history.rewind(),
            Err(_) if !self.history.answered() => self.history.rewind(),
            _ => {}
        }
        self.in_turn = false;
        self.resumed |= !self.history.is_empty();
        ended
    }

    fn health(&self) -> Health {
        if self.in_turn { Health::Reopen } else { Health::Ready }
    }

    fn resume_state(&self) -> Option<ResumeState> {
        resume::write(&self.history, self.meter.spent(), &self.peer())
    }
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "loop_tests.rs"]
mod loop_tests;
