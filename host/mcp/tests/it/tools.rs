//! A dispatch whose tools do what a test needs, and remember what they were asked.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use capsule_api::{Annotations, CallId, Catalogue, Progress, ToolCall, ToolDispatch, ToolReply, ToolSpec, ToolStatus};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

/// `echo` (alias `echo_`) answers with its arguments; `wait` when it is let go; `steps` reports progress; `fail` fails.
pub(crate) struct Tools {
    catalogue: Arc<Catalogue>,
    pub(crate) seen: Mutex<Vec<ToolCall>>,
    pub(crate) started: Semaphore,
    pub(crate) go: Semaphore,
    dropped: mpsc::UnboundedSender<CallId>,
}

fn spec(name: &str, alias: &str, read_only: bool) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        alias: alias.into(),
        description: format!("the tool {name}"),
        input_schema: json!({"type": "object"}),
        annotations: Annotations {
            read_only,
            exclusive: false,
        },
        longest: Duration::from_secs(60),
        largest: 1 << 20,
    }
}

struct Running<'a>(&'a Tools, CallId, bool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.2 {
            let _ = self.0.dropped.send(self.1.clone());
        }
    }
}

impl Tools {
    /// The dispatch, and the ids of calls that were dropped before their end.
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<CallId>) {
        let (dropped, drops) = mpsc::unbounded_channel();
        let tools = vec![
            spec("wait", "wait", false),
            spec("echo.tool", "echo_", true),
            spec("steps", "steps", true),
            spec("fail", "fail", false),
        ];
        let tools = Self {
            catalogue: Arc::new(Catalogue { tools }),
            seen: Mutex::default(),
            started: Semaphore::new(0),
            go: Semaphore::new(0),
            dropped,
        };
        (Arc::new(tools), drops)
    }

    pub(crate) async fn started(&self, count: u32) {
        self.started.acquire_many(count).await.unwrap().forget();
    }

    /// Id, name and arguments of every call so far.
    pub(crate) fn seen(&self) -> Vec<(String, String, Value)> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .map(|call| (call.id.to_string(), call.name.clone(), call.arguments.clone()))
            .collect()
    }
}

#[async_trait]
impl ToolDispatch for Tools {
    fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    async fn call(&self, call: ToolCall) -> ToolReply {
        self.seen.lock().unwrap().push(call.clone());
        let mut running = Running(self, call.id.clone(), false);
        self.started.add_permits(1);
        let reply = match call.name.as_str() {
            "wait" => {
                self.go.acquire().await.unwrap().forget();
                ToolReply::text("gone")
            }
            "echo.tool" => {
                let mut reply = ToolReply::text(call.arguments.to_string());
                reply.structured = Some(json!({"hidden": true}));
                reply
            }
            "steps" => {
                let report = call.progress.clone().unwrap();
                for done in [0.0, 50.0, 100.0] {
                    let message = (done == 50.0).then(|| "half".to_owned());
                    report(Progress::Step {
                        done,
                        total: Some(100.0),
                        message,
                    });
                }
                ToolReply::text("done")
            }
            "fail" => ToolReply::new(ToolStatus::Failed, "tool 'fail' failed: no luck"),
            other => ToolReply::new(
                ToolStatus::Unknown,
                format!("tool '{other}' failed: there is no such tool"),
            ),
        };
        running.2 = true;
        reply
    }

    fn missed(&self, call: CallId, why: &str) {
        panic!("the server knows of no missed call, least of all {call}: {why}");
    }
}
