//! One model request, with as many tries as the policy gives it.

use std::{sync::Arc, time::Duration};

use capsule_api::{
    BlockId, Catalogue, ContentBlock, Error, ErrorKind, Event, EventSink, Events, Limit, Outcome, Request, Response,
    StopReason, TurnIo, async_trait,
};

use crate::{
    answer::{Ids, LiveAnswer, PlannedCall},
    conversation::Shared,
    gate::gated,
    meter::Meter,
    retry::{self, Tries},
    rules::checked,
    stopwatch::Stopwatch,
};

/// What ends a turn from outside: its cancel signal, or its time.
pub(crate) struct Turn<'a> {
    pub(crate) io: &'a TurnIo,
    pub(crate) watch: Arc<Stopwatch>,
    /// The longest that the turn may take.
    pub(crate) wall: Option<Duration>,
}

impl Turn<'_> {
    /// Waits until the turn must end. Cancel-safe.
    pub(crate) async fn interrupted(&self) -> Outcome {
        let time = async {
            match self.wall {
                Some(limit) => self.watch.passed(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.io.cancel.cancelled() => Outcome::Cancelled,
            () = time => Outcome::LimitReached { which: Limit::Wall },
        }
    }
}

/// How one model request ended, short of an error.
pub(crate) enum Answered {
    /// The turn must end.
    Interrupted(Outcome),
    /// The whole answer, and the calls to run.
    Response(Response, Vec<PlannedCall>),
}

/// Makes model requests within a turn.
pub(crate) struct Asker<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) turn: &'a Turn<'a>,
    /// Where the answer is told while it arrives.
    pub(crate) said: &'a Events,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) ids: &'a mut Ids,
    pub(crate) meter: &'a mut Meter,
}

impl Asker<'_> {
    /// Asks until there is an answer, the turn must end or another try makes no sense.
    pub(crate) async fn ask(&mut self, request: &Request) -> Result<Answered, Error> {
        let mut tries = Tries::default();
        loop {
            let mut live = LiveAnswer::new(self.said, self.catalogue, self.ids);
            let work = gated(self.said, self.shared.driver.request(request, &mut live));
            let answered = tokio::select! {
                biased;
                outcome = self.turn.interrupted() => Err(outcome),
                answered = work => Ok(answered.and_then(checked)),
            };
            let whole = answered.as_ref().ok().and_then(|answered| answered.as_ref().ok());
            // A request that failed or was cancelled is paid for as far as it came.
            let counts = whole.map(|response| response.usage).or_else(|| live.usage());
            if let Some(counts) = counts {
                let total = self.meter.add(counts, whole.is_some(), &self.shared.allowance);
                self.turn.io.events.emit(Event::Usage(total));
            }
            let error = match answered {
                Err(outcome) => {
                    live.abandon();
                    return Ok(Answered::Interrupted(outcome));
                }
                Ok(Ok(response)) => return Ok(settled(live, response)),
                Ok(Err(error)) => error,
            };
            if asked_otherwise(error.kind) {
                live.retract();
                return Err(error);
            }
            let (now, chance) = (self.shared.clock.now(), (self.shared.chance)());
            let policy = self.shared.policy.after(&error, self.shared.driver.endpoint());
            let Some((attempt, after)) = tries.next(&policy, error.retry, now, chance) else {
                live.abandon();
                return Err(error);
            };
            live.retract();
            tell(&self.turn.io.events, attempt, after, &error);
            tokio::select! {
                biased;
                outcome = self.turn.interrupted() => return Ok(Answered::Interrupted(outcome)),
                () = self.shared.clock.sleep(after) => {}
            }
        }
    }
}

/// Tells of another try; before the first one also why, where no connection could be made: whoever waits may have to start something.
fn tell(events: &Events, attempt: u32, after: Duration, error: &Error) {
    if attempt == 1 && retry::io_cause(error).is_some() {
        events.emit(Event::Warning {
            code: error.code,
            message: error.message.clone(),
        });
    }
    let cause = error.kind;
    events.emit(Event::Retrying { attempt, after, cause });
}

/// Failures after which the loop may ask in another way, so that what was said so far must not stand.
fn asked_otherwise(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConversationLost | ErrorKind::ContextOverflow)
}

fn settled(live: LiveAnswer<'_>, mut response: Response) -> Answered {
    let run = matches!(response.stop_reason, StopReason::EndTurn | StopReason::ToolCall);
    let theirs = call_ids(&response);
    let calls = live.settle(&mut response, run);
    if theirs != call_ids(&response) {
        // The provider would not know the results of calls that go by ids of our own.
        response.continuation_id = None;
    }
    Answered::Response(response, calls)
}

fn call_ids(response: &Response) -> Vec<String> {
    let ids = response.content.iter().filter_map(|block| match block {
        ContentBlock::ToolCall { id, .. } => Some(id.clone()),
        _ => None,
    });
    ids.collect()
}

/// For answers that are nobody's to see.
pub(crate) struct Nowhere;

impl Nowhere {
    pub(crate) fn events() -> Events {
        Events::new(Arc::new(Self))
    }
}

#[async_trait]
impl EventSink for Nowhere {
    fn emit(&self, _: Event) {}

    fn next_block(&self) -> BlockId {
        BlockId(0)
    }

    async fn ready(&self) {}
}
