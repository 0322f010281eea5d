//! B2: one tool call through the dispatch chain, against wasmtime alone on the same component with the same settings.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use capsule_api::{
    CallId, Cancel, Content, NobodyThere, RunEvent, RunSink, ToolCall, ToolDispatch, ToolReply, ToolStatus,
};
use capsule_tools::{Bindings, ToolSource, Toolbox};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    Done, Result,
    bare::Bare,
    figure::{Figure, Judged, Rounds, Side, Summary, in_turn},
    guests, load, shipped,
};

const ROUNDS: usize = 40;
/// Calls of a side in one round; the round's value is their median, which a stranger's process in between does not change.
const CALLS: usize = 500;
const GOAL: f64 = 2.5;
const GRACE: Duration = Duration::from_secs(2);

/// Runs the benchmark.
pub(crate) fn run() -> Result<Done> {
    let echo = Case::echo()?;
    let hello = Case::hello()?;
    let figures = vec![
        figure(
            "b2-echo",
            "a tool call, 1 KB in and out of a small WAT component, against wasmtime alone",
            compare(&echo, ROUNDS, CALLS)?,
        ),
        figure(
            "b2-hello",
            "a tool call of the shipped Rust tool `hello`, against wasmtime alone",
            compare(&hello, ROUNDS, CALLS)?,
        ),
    ];
    Ok(Done {
        figures,
        ..Done::default()
    })
}

fn figure(id: &'static str, what: &'static str, rounds: Rounds) -> Figure {
    let side = |name, values| Side {
        name,
        unit: "us",
        values,
    };
    Figure {
        id,
        what,
        unit: "x",
        values: rounds.ratios(),
        goal: GOAL,
        judged: Judged::Median,
        sides: vec![side("dispatch", rounds.first), side("wasmtime alone", rounds.second)],
    }
}

/// A component, what it is called with, and what it must answer.
struct Case {
    component: Vec<u8>,
    schema: Option<Value>,
    arguments: Value,
    answer: String,
}

impl Case {
    fn echo() -> Result<Self> {
        let arguments = json!({
            "path": "/notes/team.md",
            "mode": "append",
            "line": 12,
            "create": true,
            "tags": ["people", "languages"],
            "text": "Ada speaks French, Grace speaks German. ".repeat(23),
        });
        Ok(Self {
            component: guests::echo()?,
            schema: Some(json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "minLength": 1},
                    "mode": {"type": "string", "enum": ["append", "replace"]},
                    "line": {"type": "integer", "minimum": 0},
                    "create": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "text": {"type": "string", "maxLength": 100_000},
                },
                "required": ["path", "text"],
                "additionalProperties": false,
            })),
            answer: arguments.to_string(),
            arguments,
        })
    }

    fn hello() -> Result<Self> {
        Ok(Self {
            component: fs::read(shipped("hello.wasm"))?,
            schema: None,
            arguments: json!({"name": "Ada", "language": "fr"}),
            answer: "Bonjour, Ada !".to_owned(),
        })
    }
}

/// Both sides in turn on one runtime, in microseconds for a call.
fn compare(case: &Case, rounds: usize, calls: usize) -> Result<Rounds> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let loaded = Loaded::new(case)?;
    let bare = Bare::new(&case.component, &case.arguments.to_string())?;
    let measured = in_turn(
        rounds,
        || loaded.median(&runtime, calls),
        || runtime.block_on(median_of_bare(&bare, &case.answer, calls)),
    );
    loaded.toolbox.shut_down(GRACE);
    measured
}

async fn median_of_bare(bare: &Bare, answer: &str, calls: usize) -> Result<f64> {
    let mut taken = Vec::with_capacity(calls);
    for _ in 0..calls {
        let started = Instant::now();
        let result = bare.call().await?;
        let right = result.as_deref() == Some(answer);
        drop(result);
        taken.push(microseconds(started));
        if !right {
            return Err("wasmtime alone gave a wrong answer".into());
        }
    }
    Ok(Summary::of(&taken).median)
}

fn microseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// The component as a tool of a capsule.
struct Loaded {
    toolbox: Toolbox,
    dispatch: Arc<dyn ToolDispatch>,
    ends: Arc<Ends>,
    arguments: Value,
    answer: String,
    _folder: TempDir,
}

impl Loaded {
    fn new(case: &Case) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("tool.wasm");
        fs::write(&path, &case.component)?;
        let mut source = ToolSource::new("tool", path);
        source.input_schema.clone_from(&case.schema);
        let toolbox = load(&source)?;
        let ends = Arc::new(Ends::default());
        let dispatch = toolbox.dispatch(Bindings {
            sink: Arc::clone(&ends) as Arc<dyn RunSink>,
            caller: Arc::new(NobodyThere),
            cancel: Cancel::new(),
        });
        Ok(Self {
            toolbox,
            dispatch,
            ends,
            arguments: case.arguments.clone(),
            answer: case.answer.clone(),
            _folder: folder,
        })
    }

    /// What a transport hands over is made before the clock runs.
    fn median(&self, runtime: &Runtime, calls: usize) -> Result<f64> {
        let call = |n| ToolCall::new(CallId::new(format!("call-{n}")), "tool", self.arguments.clone());
        let waiting: Vec<ToolCall> = (0..calls).map(call).collect();
        let before = self.ends.0.load(Ordering::SeqCst);
        let mut taken = Vec::with_capacity(calls);
        runtime.block_on(async {
            for call in waiting {
                let started = Instant::now();
                let reply = self.dispatch.call(call).await;
                let right = self.is_right(&reply);
                drop(reply);
                taken.push(microseconds(started));
                if !right {
                    return Err("the dispatch gave a wrong answer");
                }
            }
            Ok(())
        })?;
        let recorded = self.ends.0.load(Ordering::SeqCst) - before;
        if recorded != calls {
            return Err(format!("{recorded} of {calls} calls were recorded").into());
        }
        Ok(Summary::of(&taken).median)
    }

    fn is_right(&self, reply: &ToolReply) -> bool {
        let said = matches!(&reply.content[..], [Content::Text(text)] if *text == self.answer);
        said && reply.status == ToolStatus::Passed
    }
}

/// Counts the calls that ended and drops the events, so that what is measured is the dispatch and not a log.
#[derive(Default)]
struct Ends(AtomicUsize);

impl RunSink for Ends {
    fn record(&self, event: RunEvent) {
        if matches!(event, RunEvent::Ended { .. }) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_give_the_right_answer() {
        for case in [Case::echo().unwrap(), Case::hello().unwrap()] {
            let measured = compare(&case, 1, 2).unwrap();
            let positive = |values: &[f64]| values.len() == 1 && values[0] > 0.0;
            assert!(positive(&measured.first) && positive(&measured.second), "{measured:?}");
        }
        let kilobyte = Case::echo().unwrap().answer.len();
        assert!((1000..1100).contains(&kilobyte), "{kilobyte}");
    }

    #[test]
    fn a_side_with_another_answer_is_refused() {
        let mut case = Case::echo().unwrap();
        case.answer.push('!');
        let refused = compare(&case, 1, 1).unwrap_err();
        assert_eq!(refused.to_string(), "the dispatch gave a wrong answer");
    }
}
