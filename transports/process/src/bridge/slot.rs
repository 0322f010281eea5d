//! The place that a turn takes in a bridge that outlives it.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use capsule_api::{
    CallId, Cancel, CancelReason, Catalogue, Clock, Progress, ProgressSink, ToolCall, ToolDispatch, ToolReply,
    ToolStatus, TurnIo,
};
use tokio::sync::watch;

use super::cut::cut;
use crate::Life;

/// How long the result of a call is kept from the CLI when the turn was cancelled: as long as the CLI may take to be gone. With the result it
/// would ask the model again before the interrupt reaches it.
const HELD: Duration = Duration::from_secs(5);

/// A dispatch that hands calls to the turn that is attached, and answers them with an error outside of one.
pub struct SlotDispatch {
    catalogue: Arc<Catalogue>,
    /// The longest text of a result, in UTF-16 units.
    shown: Option<usize>,
    clock: Arc<dyn Clock>,
    turn: Mutex<Option<Arc<Turn>>>,
}

/// One attached turn.
struct Turn {
    tools: Arc<dyn ToolDispatch>,
    cancel: Cancel,
    state: watch::Sender<State>,
    waits: Arc<Mutex<Waits>>,
}

#[derive(Default)]
struct State {
    closed: bool,
    running: usize,
    /// When the last call ended.
    ended: Option<Instant>,
    /// Every call of the turn that arrived. Bounded by the turn: it is dropped with it.
    seen: HashSet<CallId>,
}

/// How long calls waited for the caller. Overlapping waits count once.
#[derive(Default)]
struct Waits {
    open: usize,
    since: Option<Instant>,
    over: Duration,
}

impl SlotDispatch {
    /// A slot without a turn. Text of a result over `shown` UTF-16 units is cut, with a notice.
    pub fn new(catalogue: Arc<Catalogue>, shown: Option<usize>, clock: Arc<dyn Clock>) -> Self {
        Self {
            catalogue,
            shown,
            clock,
            turn: Mutex::new(None),
        }
    }

    /// Lets calls through to this turn until the returned guard is finished or dropped. A turn that was still attached is closed.
    pub fn attach(self: &Arc<Self>, io: &TurnIo) -> AttachedTurn {
        let turn = Arc::new(Turn {
            tools: io.tools.clone(),
            cancel: io.cancel.child(),
            state: watch::Sender::default(),
            waits: Arc::default(),
        });
        let before = self.lock().replace(turn.clone());
        if let Some(before) = before {
            before.close(CancelReason::Shutdown);
        }
        AttachedTurn {
            slot: self.clone(),
            turn,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Turn>>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ToolDispatch for SlotDispatch {
    fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    async fn call(&self, mut call: ToolCall) -> ToolReply {
        let turn = self.lock().clone();
        let Some((turn, running)) =
            turn.and_then(|turn| Running::enter(&turn, &call.id, &self.clock).map(|running| (turn, running)))
        else {
            return ToolReply::new(ToolStatus::Failed, "no turn is running");
        };
        call.progress = Some(turn.watch_waits(self.clock.clone(), call.progress.take()));
        let id = call.id.clone();
        // The dispatch records a dropped call as cancelled, so it may be dropped here.
        let reply = tokio::select! {
            biased;
            reply = turn.tools.call(call) => reply,
            _ = turn.cancel.cancelled() => ToolReply::new(ToolStatus::Cancelled, "the turn was cancelled"),
        };
        drop(running);
        if turn.cancel.is_cancelled() {
            self.clock.sleep(HELD).await;
        }
        match self.shown {
            Some(most) => cut(reply, most, &id),
            None => reply,
        }
    }

    fn missed(&self, call: CallId, why: &str) {
        let turn = self.lock().clone();
        if let Some(turn) = turn {
            turn.tools.missed(call, why);
        }
    }
}

impl Turn {
    fn close(&self, reason: CancelReason) {
        self.state.send_modify(|state| state.closed = true);
        self.cancel.cancel(reason);
    }

    /// A progress sink that also keeps count of the waiting.
    fn watch_waits(&self, clock: Arc<dyn Clock>, next: Option<ProgressSink>) -> ProgressSink {
        let waits = self.waits.clone();
        Arc::new(move |progress| {
            let now = clock.now();
            let mut count = waits.lock().unwrap_or_else(PoisonError::into_inner);
            match progress {
                Progress::WaitingForCaller => count.begin(now),
                Progress::Resumed => count.end(now),
                _ => {}
            }
            drop(count);
            if let Some(next) = &next {
                next(progress);
            }
        })
    }
}

impl Waits {
    fn begin(&mut self, now: Instant) {
        self.open += 1;
        self.since.get_or_insert(now);
    }

    fn end(&mut self, now: Instant) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 {
            self.over = self.total(now);
            self.since = None;
        }
    }

    fn total(&self, now: Instant) -> Duration {
        self.over
            + self
                .since
                .map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

/// A call under way; counted until it is dropped.
struct Running {
    turn: Arc<Turn>,
    clock: Arc<dyn Clock>,
}

impl Running {
    fn enter(turn: &Arc<Turn>, id: &CallId, clock: &Arc<dyn Clock>) -> Option<Self> {
        let mut entered = false;
        turn.state.send_if_modified(|state| {
            entered = !state.closed;
            if entered {
                state.running += 1;
                state.seen.insert(id.clone());
            }
            entered
        });
        entered.then(|| Self {
            turn: turn.clone(),
            clock: clock.clone(),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let now = self.clock.now();
        self.turn.state.send_modify(|state| {
            state.running -= 1;
            state.ended = Some(now);
        });
    }
}

/// A turn in its slot. Dropping it detaches it and cancels its calls; [`AttachedTurn::finish`] waits for them as well.
pub struct AttachedTurn {
    slot: Arc<SlotDispatch>,
    turn: Arc<Turn>,
}

impl AttachedTurn {
    /// What goes on in the turn's calls, for a watchdog.
    pub fn life(&self) -> Life {
        let waits = self.turn.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.turn.state.borrow();
        Life {
            busy: state.running > 0,
            ended: state.ended,
            waited: waits.total(self.slot.clock.now()),
        }
    }

    /// Whether a call of this id arrived in this turn.
    pub fn saw(&self, call: &CallId) -> bool {
        self.turn.state.borrow().seen.contains(call)
    }

    /// The calls that arrived in this turn and are not among these; ordered.
    pub fn beside(&self, told: &HashSet<CallId>) -> Vec<CallId> {
        let mut calls: Vec<_> = self.turn.state.borrow().seen.difference(told).cloned().collect();
        calls.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        calls
    }

    /// Takes no further call, cancels those that run and waits until they have ended. Cancel-safe: calling it again goes on waiting.
    pub async fn finish(&self, reason: CancelReason) {
        self.turn.close(reason);
        let mut state = self.turn.state.subscribe();
        // The sender is held by `self`, so it cannot be gone.
        let _ = state.wait_for(|state| state.running == 0).await;
    }
}

impl Drop for AttachedTurn {
    fn drop(&mut self) {
        self.turn.close(CancelReason::Shutdown);
        let mut attached = self.slot.lock();
        if attached.as_ref().is_some_and(|turn| Arc::ptr_eq(turn, &self.turn)) {
            *attached = None;
        }
    }
}
