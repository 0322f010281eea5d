//! Answers to calls: plain JSON, or an event stream once there is progress to tell or the call takes long.
//!
//! Clients drop a call that stays silent (some after a minute without response headers), so a long call answers early and keeps
//! giving signs of life.

use std::{sync::Arc, time::Duration};

use capsule_api::{Clock, Progress, ProgressSink};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{calls::Work, reply::Reply, wire};

/// Reports that wait to be sent. When it is full, further ones are dropped: a later one says all that they said.
const WAITING: usize = 64;

/// The sending half goes with the call, the receiving half with its answer. Without a token of the client, reports go nowhere.
pub(crate) fn channel(token: Option<Value>) -> (ProgressSink, Reports) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let told = token.is_some();
    let sink: ProgressSink = Arc::new(move |progress| {
        if told {
            let _ = sender.try_send(progress);
        }
    });
    let reports = Reports {
        token,
        receiver,
        last: 0.0,
    };
    (sink, reports)
}

/// A notification before the result; `None` is a sign of life without meaning.
type Event = Option<Value>;

/// Progress of one call on its way to the client.
pub(crate) struct Reports {
    token: Option<Value>,
    receiver: mpsc::Receiver<Progress>,
    last: f64,
}

/// How far a sign of life moves the figure: it must grow each time, and should not look like work done.
const NUDGE: f64 = 0.001;

impl Reports {
    /// The next report; never, once the call dropped its half. Cancel-safe.
    async fn next(&mut self) -> Progress {
        match self.receiver.recv().await {
            Some(progress) => progress,
            None => std::future::pending().await,
        }
    }

    fn event(&mut self, progress: &Progress) -> Event {
        match progress {
            Progress::Step { done, total, message } => self.notification(*done, *total, message.as_deref()),
            Progress::WaitingForCaller => self.notification(0.0, None, Some("waiting for an answer")),
            _ => self.notification(0.0, None, None),
        }
    }

    fn sign_of_life(&mut self) -> Event {
        self.notification(0.0, None, None)
    }

    fn notification(&mut self, done: f64, total: Option<f64>, message: Option<&str>) -> Event {
        let token = self.token.as_ref()?;
        self.last = if done.is_finite() && done > self.last {
            done
        } else {
            self.last + NUDGE
        };
        let mut params = json!({"progressToken": token, "progress": self.last});
        if let Some(total) = total {
            params["total"] = json!(total);
        }
        if let Some(message) = message {
            params["message"] = json!(message);
        }
        Some(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
    }
}

/// What comes next of a call.
enum Next {
    Result(Value),
    Event(Event),
}

/// A call whose answer is not complete. Dropping it cancels the call.
struct Open {
    clock: Arc<dyn Clock>,
    every: Duration,
    work: Work,
    /// The work's result, while there are reports from before it to tell.
    done: Option<Value>,
    reports: Reports,
}

impl Open {
    async fn next(&mut self) -> Next {
        if self.done.is_none() {
            tokio::select! {
                biased;
                result = &mut self.work => self.done = Some(result),
                progress = self.reports.next() => return Next::Event(self.reports.event(&progress)),
                () = self.clock.sleep(self.every) => return Next::Event(self.reports.sign_of_life()),
            }
        }
        match (self.reports.receiver.try_recv(), self.done.take()) {
            (Ok(progress), done) => {
                self.done = done;
                Next::Event(self.reports.event(&progress))
            }
            (Err(_), done) => Next::Result(done.expect("the work is done, or the select above has returned")),
        }
    }
}

/// Waits for the call and answers request `id`; in several messages only where the client takes them.
pub(crate) async fn answer(
    clock: Arc<dyn Clock>,
    every: Duration,
    id: Value,
    mut work: Work,
    reports: Reports,
    several: bool,
) -> Reply {
    if !several {
        return Reply::result(&id, (&mut work).await);
    }
    let mut open = Open {
        clock,
        every,
        work,
        done: None,
        reports,
    };
    let first = match open.next().await {
        Next::Result(result) => return Reply::result(&id, result),
        Next::Event(event) => event,
    };
    let rest = stream::unfold((Some(first), Some(open)), move |(first, open)| {
        let id = id.clone();
        async move {
            let mut open = open?;
            if let Some(first) = first {
                return Some((first, (None, Some(open))));
            }
            Some(match open.next().await {
                Next::Event(event) => (event, (None, Some(open))),
                Next::Result(result) => (Some(wire::answer(&id, Ok(result))), (None, None)),
            })
        }
    });
    Reply::Many(Box::pin(rest))
}
