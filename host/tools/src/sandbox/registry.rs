//! `murmur:tool-registry/invoke`: a guest asks, its call's own future calls.
//!
//! The nested call is not made inside the guest: a call that ends drops the nested one with it, at once and recorded, while a guest goes
//! only at its next yield.

use std::{convert::Infallible, sync::Arc};

use capsule_api::{ByteSize, CallId, Progress, ProgressSink, ToolCall, ToolContext, ToolReply, ToolStatus};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::record::CallRecord;
use crate::dispatch::REFUSED;

/// Bytes of the longest name that is looked up; what a name is compared with is far shorter.
const LONGEST_NAME: usize = 256;

/// A call that a guest asks for.
pub(super) struct Ask {
    name: String,
    arguments: Value,
    answer: oneshot::Sender<ToolReply>,
}

/// The guest's end. A guest waits for its answer, so there is never more than one question.
#[derive(Clone)]
pub(super) struct Asks(mpsc::Sender<Ask>);

/// The call's end.
pub(super) struct Asked(mpsc::Receiver<Ask>);

pub(super) fn channel() -> (Asks, Asked) {
    let (asks, asked) = mpsc::channel(1);
    (Asks(asks), Asked(asked))
}

impl Asks {
    /// The reply to a call of this tool; `Err` says why it was not made. `data` is JSON text, of at most `limit` bytes: it is recorded.
    pub(super) async fn call(&self, name: String, data: Option<String>, limit: u64) -> Result<ToolReply, String> {
        if name.len() > LONGEST_NAME {
            return Err(format!("no tool has a name of {} bytes", name.len()));
        }
        let not_called = |why: &str| format!("tool '{name}' was not called: {why}");
        let arguments = match data {
            Some(text) if text.len() as u64 > limit => {
                let limit = ByteSize(limit);
                let why = format!(
                    "its arguments have {} bytes, and may have {limit} (`limits.output`)",
                    text.len()
                );
                return Err(not_called(&why));
            }
            Some(text) => serde_json::from_str(&text)
                .map_err(|cause| not_called(&format!("its arguments are not JSON: {cause}")))?,
            None => json!({}),
        };
        let (answer, answered) = oneshot::channel();
        let gone = |_| "the calling tool is being ended".to_owned();
        let ask = Ask {
            name,
            arguments,
            answer,
        };
        self.0.send(ask).await.map_err(|_| gone(()))?;
        let reply = answered.await.map_err(|_| gone(()))?;
        let refused = reply.metadata.iter().any(|(key, _)| key == REFUSED);
        match reply.status {
            ToolStatus::Unknown | ToolStatus::Invalid => Err(reply.joined_text()),
            ToolStatus::Denied if refused => Err(reply.joined_text()),
            _ => Ok(reply),
        }
    }
}

/// Makes the calls that the guest of this call asks for, under ids of their own. Dropping it drops the call that runs.
pub(super) async fn serve(mut asked: Asked, context: ToolContext, record: Arc<CallRecord>) -> Infallible {
    let mut made = 0u32;
    while let Some(Ask {
        name,
        arguments,
        answer,
    }) = asked.0.recv().await
    {
        made += 1;
        let catalogue = context.tools.catalogue();
        let name = match catalogue.by_name(&name) {
            Some(_) => name,
            // A guest may know the tools by the names that a model has for them.
            None => catalogue.name_of(&name).to_owned(),
        };
        let mut call = ToolCall::new(CallId::new(format!("{}/{made}", context.call)), name, arguments);
        call.progress = Some(passed_on(&record, context.progress.clone()));
        let reply = context.tools.call(call).await;
        // A guest that was ended meanwhile hears nothing.
        let _ = answer.send(reply);
    }
    std::future::pending().await
}

/// While a nested call waits for the caller, the deadlines of the calls around it stop too.
fn passed_on(record: &Arc<CallRecord>, above: Option<ProgressSink>) -> ProgressSink {
    let record = Arc::clone(record);
    Arc::new(move |progress| {
        match progress {
            Progress::WaitingForCaller => record.set_waiting(true),
            Progress::Resumed => record.set_waiting(false),
            _ => return,
        }
        if let Some(above) = &above {
            above(progress);
        }
    })
}
