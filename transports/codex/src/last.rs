//! The calls of the last model request that a turn may make.
//!
//! The CLI knows no limit on model requests: it makes the next one as soon as it has the results of the last. So the results of the last
//! allowed request are kept from it until the run is ended. The calls themselves run and are recorded as always.

use std::{collections::HashSet, future::pending, sync::Arc, time::Duration};

use capsule_api::{CallId, Catalogue, Clock, ToolCall, ToolDispatch, ToolReply, async_trait, timeout};
use tokio::sync::watch;

/// How long a reply is kept while the rest of its answer has not come. A call can run before its answer is complete; if the answer is cut,
/// the CLI says so only once it has the reply.
const REST_OF_ANSWER: Duration = Duration::from_secs(10);

/// A dispatch whose replies can be held back.
pub(crate) struct LastCalls {
    tools: Arc<dyn ToolDispatch>,
    clock: Arc<dyn Clock>,
    state: watch::Sender<State>,
}

#[derive(Default)]
struct State {
    held: bool,
    answered: bool,
    /// Calls of the turn that have ended. Bounded by the turn: it is dropped with it.
    ended: HashSet<CallId>,
}

impl LastCalls {
    pub(crate) fn new(tools: Arc<dyn ToolDispatch>, clock: Arc<dyn Clock>) -> Self {
        Self {
            tools,
            clock,
            state: watch::Sender::default(),
        }
    }

    /// The last request is being made: from now on replies are kept.
    pub(crate) fn hold(&self) {
        self.state.send_modify(|state| state.held = true);
    }

    /// The last request is answered in full: what is kept stays so.
    pub(crate) fn answered(&self) {
        self.state.send_modify(|state| state.answered = true);
    }

    /// Waits until these calls have ended. Cancel-safe.
    pub(crate) async fn ended(&self, calls: &[CallId]) {
        let mut state = self.state.subscribe();
        // The sender is held by `self`, so it cannot be gone.
        let _ = state
            .wait_for(|state| calls.iter().all(|call| state.ended.contains(call)))
            .await;
    }
}

#[async_trait]
impl ToolDispatch for LastCalls {
    fn catalogue(&self) -> &Arc<Catalogue> {
        self.tools.catalogue()
    }

    async fn call(&self, call: ToolCall) -> ToolReply {
        let id = call.id.clone();
        let reply = self.tools.call(call).await;
        let mut held = false;
        self.state.send_modify(|state| {
            state.ended.insert(id);
            held = state.held;
        });
        if !held {
            return reply;
        }
        let mut state = self.state.subscribe();
        let answered = state.wait_for(|state| state.answered);
        if timeout(&*self.clock, REST_OF_ANSWER, answered).await.is_ok() {
            // The turn is about to end; its end drops this.
            pending::<()>().await;
        }
        reply
    }

    fn missed(&self, call: CallId, why: &str) {
        self.tools.missed(call, why);
    }
}
