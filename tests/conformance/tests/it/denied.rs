//! What no grant covers is refused in the same words on every way to a model, and nobody is told otherwise: not the model, not the record,
//! not the count.

use capsule_api::{Outcome, RunEvent, ToolStatus};
use capsule_fakes::{Reply, Script};
use capsule_session::{Capture, What, records};
use serde_json::{Value, json};

use crate::run::{Bench, DRIVERS, Ran, hello_on_claude, hello_on_codex, hello_on_driver};

const DENIED: &str = "tool 'read-file' failed: not readable here: no grant covers '/etc/passwd'; a path begins with a directory that the \
                      capsule grants this tool";

/// The trace's record of each call that ended, without what differs from run to run.
fn ended(ran: &Ran) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in &ran.log {
        if !matches!(entry.what, What::Run(RunEvent::Ended { .. })) {
            continue;
        }
        let mut record = records("task", entry, Capture::Content, false).expect("an ended call has a record");
        for key in ["seq", "ts", "call", "ms"] {
            assert!(record.as_object_mut().unwrap().shift_remove(key).is_some(), "{key}");
        }
        found.push(record);
    }
    found
}

/// Runs the script on each driver and, where they are installed, on the CLIs; with each run what the model was told of its call.
fn on_all(bench: &Bench, script: &Script) -> Vec<(&'static str, Ran, String)> {
    let mut runs = Vec::new();
    let mut run = |name: &'static str, choice: &dyn Fn(&str) -> capsule::Choice| {
        let provider = bench.provider(script.clone());
        let ran = bench.run(&choice(&provider.url()));
        let results = provider.requests()[1].results();
        assert_eq!(results.len(), 1, "{name}: {results:?}");
        runs.push((name, ran, results[0].1.clone()));
        provider.assert_clean();
    };
    for driver in DRIVERS {
        run(driver, &|url| hello_on_driver(driver, url));
    }
    if let Some(cli) = capsule_fakes::claude() {
        run("claude", &|url| hello_on_claude(&cli, url));
    }
    if let Some(cli) = capsule_fakes::codex() {
        run("codex", &|url| hello_on_codex(&cli, url));
    }
    runs
}

#[test]
fn t_08_a_denial_is_the_same_text_record_and_count_on_every_driver_and_on_the_clis() {
    let script = Script::new()
        .then(Reply::text("I look.").call("toolu_1", "read-file", json!({"path": "/etc/passwd"})))
        .then(Reply::text("It may not be read."));
    let record = json!({
        "v": 1,
        "task": "task",
        "kind": "call_end",
        "name": "read-file",
        "status": "denied",
        "denied": true,
        "result": [DENIED],
        "metadata": {"denied": "true", "state_effect": "read", "resource_id": "/etc/passwd"},
    });
    for (transport, ran, told) in on_all(&Bench::new(), &script) {
        let text = "It may not be read.".to_owned();
        assert_eq!(ran.outcome(), &Outcome::Completed { text }, "{transport}");
        assert_eq!((ran.report.calls, ran.report.denied), (1, 1), "{transport}");
        let results: Vec<_> = ran.fold().calls().iter().map(|call| call.result.clone()).collect();
        assert_eq!(results, [Some((ToolStatus::Denied, DENIED.to_owned()))], "{transport}");
        assert_eq!(ended(&ran), std::slice::from_ref(&record), "{transport}");
        let told = match told.split_once("\nOutput:") {
            // What a CLI itself writes in front of every result.
            Some((took, output)) if transport == "codex" && took.starts_with("Wall time: ") => output,
            // Formats without a flag for failure say it in front.
            _ => told.strip_prefix("Error: ").unwrap_or(&told),
        };
        assert_eq!(told, DENIED, "what the model was told on {transport}");
    }
}
