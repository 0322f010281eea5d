//! The agent loop: ask, run the calls, append the results, ask again.

use std::sync::Arc;

use capsule_api::{
    Billing, CancelReason, Clock, ContentBlock, Conversation, ConversationSpec, Driver, Error, Event, Health, Input,
    Limit, Outcome, Part, Request, Response, ResumeState, StopReason, ToolDefinition, TurnIo, Usage, async_trait,
    serde_json::{Map, Value},
};

use crate::{
    answer::{Ids, LiveAnswer, PlannedCall},
    assemble::object,
    codes,
    gate::gated,
    history::{CANCELLED, History},
    retry::Policy,
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
}

/// One conversation, held by the host alone.
pub(crate) struct HttpConversation {
    shared: Arc<Shared>,
    spec: ConversationSpec,
    history: History,
    ids: Ids,
    resumed: bool,
    in_turn: bool,
}

/// How one model request ended, short of an error.
enum Answered {
    Cancelled,
    Response(Response, Vec<PlannedCall>),
}

impl HttpConversation {
    pub(crate) fn new(shared: Arc<Shared>, spec: ConversationSpec, history: History) -> Self {
        Self {
            shared,
            spec,
            ids: Ids::with_used(history.call_ids()),
            resumed: !history.is_empty(),
            history,
            in_turn: false,
        }
    }

    async fn run(&mut self, io: &TurnIo) -> Result<Outcome, Error> {
        io.events.emit(Event::Started {
            model: self.spec.model.clone(),
            peer: Some(self.shared.peer.clone()),
            billing: self.shared.billing,
            resumed: self.resumed,
        });
        let mut total = Usage::default();
        for n in 1..=self.spec.limits.requests {
            if io.cancel.is_cancelled() {
                return Ok(Outcome::Cancelled);
            }
            io.events.emit(Event::RequestStarted { n });
            let (response, calls) = match self.ask(io, &mut total).await? {
                Answered::Cancelled => return Ok(Outcome::Cancelled),
                Answered::Response(response, calls) => (response, calls),
            };
            let stop = response.stop_reason.as_str().to_owned();
            io.events.emit(Event::RequestEnded { n, stop });
            if let Some(outcome) = self.conclude(response, &calls)? {
                return Ok(outcome);
            }
            if self.execute(&calls, io).await.is_err() {
                return Ok(Outcome::Cancelled);
            }
        }
        Ok(Outcome::LimitReached { which: Limit::Requests })
    }

    /// One model request, with as many tries as the policy gives it.
    async fn ask(&mut self, io: &TurnIo, total: &mut Usage) -> Result<Answered, Error> {
        let request = self.request();
        let mut attempt = 0;
        loop {
            let mut live = LiveAnswer::new(&io.events, &self.spec.catalogue, &mut self.ids);
            let work = gated(&io.events, self.shared.driver.request(&request, &mut live));
            let answered = tokio::select! {
                biased;
                _ = io.cancel.cancelled() => None,
                answered = work => Some(answered),
            };
            let answered = answered.map(|answered| answered.and_then(checked));
            let whole = answered.as_ref().and_then(|answered| answered.as_ref().ok());
            // A request that failed or was cancelled is paid for as far as it came.
            let counts = whole.map(|response| response.usage).or_else(|| live.usage());
            if let Some(counts) = counts {
                add(total, counts, whole.is_some());
                io.events.emit(Event::Usage(*total));
            }
            let Some(answered) = answered else {
                live.abandon();
                return Ok(Answered::Cancelled);
            };
            let error = match answered {
                Ok(mut response) => {
                    let run = matches!(response.stop_reason, StopReason::EndTurn | StopReason::ToolCall);
                    let calls = live.settle(&mut response, run);
                    return Ok(Answered::Response(response, calls));
                }
                Err(error) => error,
            };
            attempt += 1;
            let Some(after) = self.shared.policy.delay(error.retry, attempt, (self.shared.chance)()) else {
                live.abandon();
                return Err(error);
            };
            live.retract();
            let cause = error.kind;
            io.events.emit(Event::Retrying { attempt, after, cause });
            tokio::select! {
                biased;
                _ = io.cancel.cancelled() => return Ok(Answered::Cancelled),
                () = self.shared.clock.sleep(after) => {}
            }
        }
    }

    fn request(&self) -> Request {
        let tools = self.spec.catalogue.tools.iter().map(|tool| ToolDefinition {
            name: tool.alias.clone(),
            description: Some(tool.description.clone()).filter(|text| !text.is_empty()),
            parameters: tool.input_schema.clone(),
        });
        Request {
            model: self.spec.model.clone().unwrap_or_default(),
            max_tokens: self.spec.limits.output_tokens,
            system: Some(self.spec.system_prompt.clone()).filter(|text| !text.is_empty()),
            messages: self.history.messages().to_vec(),
            tools: tools.collect(),
            params: self.shared.params.clone(),
            continuation_id: None,
        }
    }

    /// Records an answer. `None` goes on: there are calls to run, or the provider paused.
    fn conclude(&mut self, response: Response, calls: &[PlannedCall]) -> Result<Option<Outcome>, Error> {
        let text = text_of(&response.content);
        Ok(match response.stop_reason {
            StopReason::EndTurn | StopReason::ToolCall => {
                self.history.assistant(response.content);
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
        })
    }

    /// Runs the calls and records a result for each, in the order of the calls, also when a cancel comes between.
    async fn execute(&mut self, calls: &[PlannedCall], io: &TurnIo) -> Result<(), CancelReason> {
        let mut results = Vec::new();
        results.resize_with(calls.len(), || None);
        let ended = tokio::select! {
            biased;
            reason = io.cancel.cancelled() => Err(reason),
            () = tools::run(&io.tools, calls, self.shared.parallel, &mut results) => Ok(()),
        };
        for (call, result) in calls.iter().zip(results) {
            let (is_error, text) = match result {
                Some(told) => (told.is_error, told.text),
                None => (true, CANCELLED.to_owned()),
            };
            self.history.result(call.id.as_str(), is_error, text);
        }
        ended
    }
}

#[async_trait]
impl Conversation for HttpConversation {
    async fn turn(&mut self, input: Input, io: TurnIo) -> Result<Outcome, Error> {
        let content = content_of(input)?;
        let mark = self.history.mark();
        self.in_turn = true;
        self.history.user(content);
        let ended = self.run(&io).await;
        // A refused exchange would be refused again with every later request, and a failed one may be what failed: the next turn starts
        // from before it. A cancelled one stays, so that "go on" has something to go on from.
        match &ended {
            Ok(Outcome::Refused { .. }) => self.history.rewind(mark),
            Err(_) if !self.history.answered_since(mark) => self.history.rewind(mark),
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
        self.history.resume_state()
    }
}

/// Adds the counts of one request to the turn's.
fn add(total: &mut Usage, request: Usage, answered: bool) {
    total.requests += u32::from(answered);
    total.input += request.input;
    total.output += request.output;
    total.cache_read += request.cache_read;
    total.cache_write += request.cache_write;
    total.reasoning += request.reasoning;
}

/// The rules that an answer keeps, whichever driver gave it: it did not fail, its calls have objects as arguments, and it does not wait for
/// results of calls that it does not make. Calls that the output limit cut are not among its blocks.
fn checked(mut response: Response) -> Result<Response, Error> {
    if response.stop_reason == StopReason::Error {
        return Err(failed());
    }
    if response.stop_reason == StopReason::MaxTokens {
        response
            .content
            .retain(|block| !matches!(block, ContentBlock::ToolCall { .. }));
    }
    let mut calls = 0;
    for block in &mut response.content {
        if let ContentBlock::ToolCall { name, input, .. } = block {
            calls += 1;
            *input = object(name, Some(input.take()))?;
        }
    }
    if response.stop_reason == StopReason::ToolCall && calls == 0 {
        let message = "the model stopped to wait for tool results but called no tool";
        return Err(Error::new(&codes::CALLS_MISSING, message));
    }
    Ok(response)
}

fn failed() -> Error {
    let message = "the driver reports that the model's answer failed";
    Error::new(&codes::ANSWER_FAILED, message)
}

fn content_of(input: Input) -> Result<Vec<ContentBlock>, Error> {
    let parts = input.parts.into_iter().map(|part| match part {
        Part::Text(text) => Ok(ContentBlock::Text { text }),
        Part::Data(value) => Ok(ContentBlock::text(value.to_string())),
        _ => Err(Error::new(&codes::FILE_INPUT, "the task has a part that is not text")),
    });
    parts.collect()
}

fn text_of(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
