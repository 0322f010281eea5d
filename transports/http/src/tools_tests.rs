use std::{sync::Mutex, time::Duration};

use capsule_api::{Annotations, CallId, SystemClock, ToolSpec, ToolStatus, async_trait, serde_json::json};

use super::*;

/// Notes how many calls run at once; each takes a few turns of the executor.
struct Crowd {
    catalogue: Arc<Catalogue>,
    state: Mutex<(usize, Vec<(String, usize)>)>,
}

fn crowd() -> Arc<Crowd> {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        alias: name.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        annotations: Annotations {
            exclusive: name == "alone",
            ..Annotations::default()
        },
        longest: Duration::from_secs(1),
        largest: 1 << 20,
    };
    Arc::new(Crowd {
        catalogue: Arc::new(Catalogue {
            tools: vec![tool("any"), tool("alone")],
        }),
        state: Mutex::default(),
    })
}

#[async_trait]
impl ToolDispatch for Crowd {
    fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    async fn call(&self, call: ToolCall) -> ToolReply {
        self.state.lock().unwrap().0 += 1;
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        let mut state = self.state.lock().unwrap();
        let running = state.0;
        state.1.push((call.id.to_string(), running));
        state.0 -= 1;
        ToolReply::text(call.id.to_string())
    }

    fn missed(&self, _: CallId, _: &str) {}
}

async fn seen(names: &[&str], parallel: usize) -> Vec<(String, usize)> {
    let crowd = crowd();
    let calls: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(n, name)| PlannedCall {
            id: CallId::new(n.to_string()),
            alias: (*name).to_owned(),
            input: json!({}),
        })
        .collect();
    let mut results = Vec::new();
    results.resize_with(calls.len(), || None);
    let tools: Arc<dyn ToolDispatch> = crowd.clone();
    let watch = Stopwatch::start(Arc::new(SystemClock));
    run(&tools, &calls, parallel, &watch, &mut results).await;
    let texts: Vec<_> = results.into_iter().map(|told| told.unwrap().text).collect();
    assert_eq!(texts, (0..names.len()).map(|n| n.to_string()).collect::<Vec<_>>());
    let mut state = crowd.state.lock().unwrap();
    std::mem::take(&mut state.1)
}

#[tokio::test]
async fn no_more_calls_run_at_once_than_allowed() {
    let most = |seen: Vec<(String, usize)>| seen.into_iter().map(|(_, running)| running).max();
    assert_eq!(most(seen(&["any"; 20], 16).await), Some(16));
    assert_eq!(most(seen(&["any"; 5], 1).await), Some(1));
    assert_eq!(most(seen(&["any"; 3], 16).await), Some(3));
    assert_eq!(most(seen(&[], 16).await), None);
}

#[tokio::test]
async fn an_exclusive_tool_runs_alone() {
    let seen = seen(&["any", "alone", "any", "any", "alone", "alone"], 16).await;
    let alone: Vec<_> = seen
        .iter()
        .filter(|(id, _)| ["1", "4", "5"].contains(&id.as_str()))
        .collect();
    assert!(alone.iter().all(|(_, running)| *running == 1), "{seen:?}");
}

#[test]
fn what_cannot_be_shown_is_named_and_a_structured_result_stands_in_for_no_text() {
    let mut reply = ToolReply::text("Here:");
    reply.content.push(Content::Image {
        media_type: "image/png".to_owned(),
        data: vec![0; 7],
    });
    assert_eq!(
        told(&reply).text,
        "Here:\n[image, image/png, 7 bytes: cannot be shown on this transport]"
    );
    let mut bare = ToolReply::new(ToolStatus::Failed, "");
    bare.structured = Some(json!({"n": 1}));
    let told = told(&bare);
    assert_eq!((told.text.as_str(), told.is_error), ("{\"n\":1}", true));
}
