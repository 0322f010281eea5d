//! Tool calls: from `tools/call` to the dispatch and back, cancelled by a notification or by the end of the connection.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use capsule_api::{Content, ProgressSink, ToolCall, ToolReply, ToolStatus};
use http::StatusCode;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, oneshot};

use crate::{
    call_ids::CallIds,
    progress,
    reply::Reply,
    service::{Inner, Via},
    wire::{INVALID_PARAMS, Request, RpcError},
};

/// The calls of a service: their ids, their places, and those under way.
#[derive(Debug)]
pub(crate) struct Calls {
    ids: CallIds,
    places: Arc<Semaphore>,
    running: Mutex<Running>,
}

/// Calls under way by the id of their request. Bounded by the connections of the listener: each answers one request at a time.
#[derive(Debug, Default)]
struct Running {
    started: u64,
    calls: HashMap<String, Vec<(u64, oneshot::Sender<()>)>>,
}

impl Calls {
    pub(crate) fn new(prefix: String, at_once: usize) -> Self {
        Self {
            ids: CallIds::new(prefix),
            places: Arc::new(Semaphore::new(at_once.max(1))),
            running: Mutex::default(),
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the call of this request. An id that is not under way changes nothing: its answer may have crossed the notification.
    pub(crate) fn cancel(&self, id: &Value) {
        // A client that uses an id twice at once means both: nothing tells them apart.
        for (_, cancel) in self.running().calls.remove(&key(id)).unwrap_or_default() {
            let _ = cancel.send(());
        }
    }

    fn enter(&self, id: &Value) -> (u64, oneshot::Receiver<()>) {
        let (cancel, cancelled) = oneshot::channel();
        let mut running = self.running();
        running.started += 1;
        let number = running.started;
        running.calls.entry(key(id)).or_default().push((number, cancel));
        (number, cancelled)
    }

    fn leave(&self, id: &Value, number: u64) {
        let mut running = self.running();
        if let Some(calls) = running.calls.get_mut(&key(id)) {
            calls.retain(|(n, _)| *n != number);
            if calls.is_empty() {
                running.calls.remove(&key(id));
            }
        }
    }
}

/// `1` and `"1"` are two ids.
fn key(id: &Value) -> String {
    id.to_string()
}

/// Takes a call off the list when its work is done or dropped.
struct Entry {
    service: Arc<Inner>,
    id: Value,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.service.calls.leave(&self.id, self.number);
    }
}

/// A call at work; yields its result. Dropping it cancels the call.
pub(crate) type Work = Pin<Box<dyn Future<Output = Value> + Send>>;

/// What a generation of MCP makes of a result.
pub(crate) type Finish = fn(&Inner, Value) -> Value;

/// Answers `tools/call`.
pub(crate) async fn answer(service: &Arc<Inner>, via: Via<'_>, request: Request, finish: Finish) -> Reply {
    let Request { id, params, .. } = request;
    let asked = match Asked::read(params) {
        Ok(asked) => asked,
        Err(error) => return Reply::error(StatusCode::OK, &id, error),
    };
    let (sink, progress) = progress::channel(asked.meta.get("progressToken").cloned());
    let call = asked.into_call(service, via, sink);
    let work = run(Arc::clone(service), id.clone(), call, finish);
    let clock = Arc::clone(&service.clock);
    progress::answer(
        clock,
        service.options.progress_every,
        id,
        work,
        progress,
        via.takes_events(),
    )
    .await
}

/// Runs a call in its turn. Entered in the list at once, so that a call which still waits can be cancelled as well.
fn run(service: Arc<Inner>, id: Value, call: ToolCall, finish: Finish) -> Work {
    let (number, cancelled) = service.calls.enter(&id);
    let entry = Entry { service, id, number };
    Box::pin(async move {
        let service = &entry.service;
        let name = call.name.clone();
        let work = async {
            let _place = service.calls.places.acquire().await;
            service.dispatch.call(call).await
        };
        let reply = tokio::select! {
            biased;
            reply = work => reply,
            Ok(()) = cancelled => {
                ToolReply::new(ToolStatus::Cancelled, format!("tool '{name}' failed: the call was cancelled"))
            }
        };
        finish(service, result(&reply))
    })
}

/// A call that does not say which tool.
pub(crate) fn no_name() -> RpcError {
    RpcError::new(INVALID_PARAMS, "`params.name` is not a string")
}

/// The parameters of `tools/call`.
struct Asked {
    alias: String,
    arguments: Value,
    meta: Map<String, Value>,
}

impl Asked {
    fn read(mut params: Map<String, Value>) -> Result<Self, RpcError> {
        let Some(Value::String(alias)) = params.remove("name") else {
            return Err(no_name());
        };
        let arguments = match params.remove("arguments") {
            // What models write where a tool takes no arguments.
            None | Some(Value::Null) => json!({}),
            Some(Value::String(text)) if text.is_empty() => json!({}),
            Some(arguments) => arguments,
        };
        let meta = match params.remove("_meta") {
            Some(Value::Object(meta)) => meta,
            _ => Map::new(),
        };
        Ok(Self { alias, arguments, meta })
    }

    fn into_call(self, service: &Inner, via: Via<'_>, progress: ProgressSink) -> ToolCall {
        let own_id = |key: &String| self.meta.get(key).and_then(Value::as_str);
        let id = service
            .calls
            .ids
            .next(service.options.call_id_keys.iter().find_map(own_id));
        let traceparent = self.meta.get("traceparent").and_then(Value::as_str);
        let traceparent = traceparent.or_else(|| via.header("traceparent").and_then(|value| value.to_str().ok()));
        let traceparent = traceparent.filter(|text| is_traceparent(text)).map(str::to_owned);
        let name = service.dispatch.catalogue().name_of(&self.alias).to_owned();
        let mut call = ToolCall::new(id, name, self.arguments);
        call.traceparent = traceparent;
        call.progress = Some(progress);
        call
    }
}

/// W3C Trace Context, version 00: anything else is not passed on.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
    lengths == [2, 32, 16, 2] && parts[0] == "00" && parts.iter().all(|part| hex(part))
}

/// A reply as MCP writes it. Text alone, no `structuredContent`: clients show the model the structure *instead of* the text.
fn result(reply: &ToolReply) -> Value {
    let mut content: Vec<_> = reply.content.iter().filter_map(block).collect();
    if content.is_empty() {
        content.push(json!({"type": "text", "text": "tool returned no data"}));
    }
    json!({"content": content, "isError": reply.is_error()})
}

fn block(piece: &Content) -> Option<Value> {
    let media = |kind: &str, media_type: &str, data: &[u8]| json!({"type": kind, "data": STANDARD.encode(data), "mimeType": media_type});
    Some(match piece {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Image { media_type, data } => media("image", media_type, data),
        Content::Audio { media_type, data } => media("audio", media_type, data),
        Content::Resource(resource) => json!({"type": "resource", "resource": resource}),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_context_is_passed_on_only_if_it_is_one() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert!(is_traceparent(good));
        for bad in [
            "",
            "00",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            &good[1..],
        ] {
            assert!(!is_traceparent(bad), "{bad}");
        }
    }

    #[test]
    fn a_call_that_ended_leaves_no_trace_and_no_other_call_with_it() {
        let calls = Calls::new("mcp-".into(), 1);
        let (first, mut of_first) = calls.enter(&json!(1));
        let (second, mut of_second) = calls.enter(&json!(1));
        calls.leave(&json!(1), first);
        calls.cancel(&json!(1));
        assert_eq!((of_first.try_recv().is_ok(), of_second.try_recv()), (false, Ok(())));
        calls.leave(&json!(1), second);
        let (third, _of_third) = calls.enter(&json!("1"));
        calls.leave(&json!("1"), third);
        assert!(calls.running().calls.is_empty());
    }

    #[test]
    fn every_kind_of_content_is_passed_on() {
        let mut reply = ToolReply::text("a");
        reply.structured = Some(json!({"a": 1}));
        reply.content.extend([
            Content::Image {
                media_type: "image/png".into(),
                data: vec![1, 2],
            },
            Content::Audio {
                media_type: "audio/wav".into(),
                data: vec![3],
            },
            Content::Resource(json!({"uri": "test://x", "text": "y"})),
        ]);
        let expected = json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "AQI=", "mimeType": "image/png"},
            {"type": "audio", "data": "Aw==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "test://x", "text": "y"}},
        ], "isError": false});
        assert_eq!(result(&reply), expected);
    }

    #[test]
    fn an_empty_reply_says_so() {
        let mut reply = ToolReply::new(ToolStatus::Failed, "");
        reply.content.clear();
        let expected = json!({"content": [{"type": "text", "text": "tool returned no data"}], "isError": true});
        assert_eq!(result(&reply), expected);
    }
}
