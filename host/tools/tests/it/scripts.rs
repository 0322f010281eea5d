//! Script capsules: a program that calls the tools, without a model.

use std::sync::Arc;

use capsule_api::{BlockKind, CallId, NobodyThere, RunEvent, RunSink, ToolContext, ToolStatus};
use capsule_tools::ToolSource;
use serde_json::json;

use crate::{
    guests::{self, MEMORY, componentize},
    support::{Capsule, Turn},
};

/// Calls the tool `echo` and shows the data of its result.
fn script() -> Vec<u8> {
    let wat = format!(
        r#"(module
  (import "murmur:tool-registry/invoke@0.1.0" "invoke" (func $invoke (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "murmur:stream/events@0.1.0" "emit-chunk" (func $emit (param i32 i32)))
  {MEMORY}
  (data (i32.const 64) "echo{{\"n\":1}}")
  (func (export "murmur:capsule/run@0.1.0#run")
    (call $invoke (i32.const 64) (i32.const 4) (i32.const 1) (i32.const 68) (i32.const 7)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 128))
    (if (i32.load8_u (i32.const 128)) (then unreachable))
    (call $emit (i32.load (i32.const 152)) (i32.load (i32.const 156)))))"#
    );
    let world = "import murmur:tool-registry/invoke@0.1.0; import murmur:%stream/events@0.1.0;
        export murmur:capsule/run@0.1.0;";
    componentize(world, &wat)
}

fn context(turn: &Turn) -> ToolContext {
    ToolContext {
        call: CallId::new("script"),
        sink: Arc::clone(&turn.log) as Arc<dyn RunSink>,
        caller: Arc::new(NobodyThere),
        cancel: turn.cancel.clone(),
        progress: None,
        tools: Arc::clone(&turn.tools),
        depth: 0,
    }
}

#[tokio::test]
async fn a_script_calls_the_tools_and_shows_text() {
    let mut capsule = Capsule::with("echo", guests::echo().build());
    // The script holds no place that its tools need.
    capsule.grants.limits.concurrent_calls = 1;
    let path = capsule.path("script.wasm");
    std::fs::write(&path, script()).unwrap();
    capsule.sources.push(ToolSource::script(path));
    let turn = capsule.turn();
    let names: Vec<_> = turn
        .toolbox
        .catalogue()
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["echo"]);
    let reply = turn.toolbox.script().unwrap().execute(json!({}), context(&turn)).await;
    assert_eq!(reply.status, ToolStatus::Passed, "{}", reply.joined_text());
    let events = turn.log.events();
    assert!(matches!(&events[0], RunEvent::Started { call, .. } if call.as_str() == "script/1"));
    let chunk = RunEvent::Chunk {
        call: CallId::new("script"),
        kind: BlockKind::Text,
        text: r#"{"n":1}"#.into(),
    };
    assert_eq!((events.len(), &events[2]), (3, &chunk));
}

#[test]
fn a_tool_is_no_script_and_a_script_no_tool() {
    let mut capsule = Capsule::with("tool", script());
    let path = capsule.path("echo.wasm");
    std::fs::write(&path, guests::echo().build()).unwrap();
    capsule.sources.push(ToolSource::script(path));
    assert_eq!(
        capsule.refusals(),
        [
            "tool `tool` (tool.wasm): it is a script: it runs as a whole capsule, named by the manifest's `script`, and not as a tool",
            "the script (echo.wasm): it does not export `murmur:capsule/run@0.1.0`, as a script does",
        ]
        .map(|message| ("tool-export-missing", message.to_owned()))
    );
}
