//! A conversation of two hundred turns with a thousand tool calls, kept on disk from turn to turn, recorded, and played again.

use std::{collections::BTreeMap, env, fs, path::Path, process::Command, sync::Arc};

use capsule::{Assembled, assemble_in, assemble_recorded};
use capsule_api::{Input, Outcome, Tape};
use capsule_fakes::{Reply, Script};
use capsule_session::{Capture, KeptContext, Report, RunPlace, Task, TraceWriter};
use serde_json::{Value, json};

use crate::run::{Bench, Kept, hello_on_driver, hello_on_tape, set};

const TURNS: usize = 200;
const CALLS_A_TURN: usize = 5;
/// Turns after which everything that is built once is built.
const WARM: usize = 50;
/// The most that the process may grow from turn 50 to turn 200, in bytes. In that time the tape, which is held in memory until it is written,
/// gains 300 entries that name the roles of up to 1,600 messages each: about half of this.
const MOST_GROWN: usize = 48 << 20;
/// Set, to the provider's address, in the process that holds the conversation and nothing else.
const ALONE: &str = "CAPSULE_TEST_LONG_CONVERSATION";

/// One turn after the other: five calls, then the answer.
fn script() -> Script {
    (0..TURNS).fold(Script::new(), |script, turn| {
        let calls = (0..CALLS_A_TURN).fold(Reply::text("I will greet them."), |reply, call| {
            let arguments = json!({"name": format!("guest {call} of turn {turn}")});
            reply.call(&format!("call-{turn}-{call}"), "hello", arguments)
        });
        script.then(calls).then(Reply::text(answer(turn)))
    })
}

fn answer(turn: usize) -> String {
    format!("All guests of turn {turn} are greeted.")
}

/// The conversation's turns in order, each from what is on disk of the ones before. `after` is told each.
fn converse(bench: &Bench, assembled: &Assembled, traces: &Path, mut after: impl FnMut(usize)) {
    for turn in 0..TURNS {
        let report = bench.runtime.block_on(one_turn(assembled, turn, traces));
        let text = answer(turn);
        assert_eq!(report.outcome.unwrap(), Outcome::Completed { text });
        assert!(report.not_kept.is_none(), "{:?}", report.not_kept);
        after(turn + 1);
    }
}

async fn one_turn(assembled: &Assembled, turn: usize, traces: &Path) -> Report {
    let agent = &assembled.agent;
    let task = Task::new(&agent.services);
    let place = RunPlace {
        run_dir: assembled.places.make_run_dir(task.log.task()).unwrap(),
        context: Some(KeptContext::open(&assembled.places, "guests").unwrap()),
    };
    let writer = TraceWriter::create(&traces.join(format!("{turn}.jsonl"))).unwrap();
    let (id, secrets) = (task.log.task().to_owned(), agent.services.secrets.clone());
    let tracing = writer.follow(task.log.reader(), id, Capture::Content, secrets);
    let input = Input::text(format!("The guests of turn {turn} are here."));
    let (report, traced) = tokio::join!(agent.run(&task, input, place), tracing);
    traced.unwrap();
    report
}

/// The records of all turns, without ids of runs, times, and who was asked.
fn stories(traces: &Path) -> Vec<Vec<Value>> {
    let story = |turn| {
        let text = fs::read_to_string(traces.join(format!("{turn}.jsonl"))).unwrap();
        let records = text.lines().map(|line| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            for field in ["ts", "task", "ms", "peer", "billed"] {
                record.as_object_mut().unwrap().remove(field);
            }
            record
        });
        records.collect()
    };
    (0..TURNS).map(story).collect()
}

/// Nothing is left out: the records are numbered without a gap but for live ones, and each call was asked for, began and ended.
fn complete(turn: usize, story: &[Value]) {
    let mut counts = BTreeMap::<&str, usize>::new();
    for record in story {
        *counts.entry(record["kind"].as_str().unwrap()).or_default() += 1;
    }
    let count = |kind: &str| counts.get(kind).copied().unwrap_or_default();
    let kinds = ["run_start", "request_start", "request_end", "block", "run_end", "gap"];
    assert_eq!(kinds.map(count), [1, 2, 2, 2, 1, 0], "turn {turn}: {counts:?}");
    let wanted: Vec<_> = (0..CALLS_A_TURN)
        .map(|call| json!(format!("call-{turn}-{call}")))
        .collect();
    for kind in ["call", "call_start", "call_end"] {
        let of = story.iter().filter(|record| record["kind"] == kind);
        let ids: Vec<_> = of.map(|record| record["call"].clone()).collect();
        assert_eq!(ids, wanted, "turn {turn}: {kind}");
    }
    let ends = story.iter().filter(|record| record["kind"] == "call_end");
    assert!(
        ends.map(|end| &end["status"]).all(|status| status == "passed"),
        "turn {turn}"
    );
}

/// What the process has in memory now, in bytes.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn recorded_and_played(endpoint: &str) {
    let traces = tempfile::tempdir().unwrap();
    let places = ["recorded", "played"].map(|place| traces.path().join(place));
    places.iter().for_each(|place| fs::create_dir(place).unwrap());
    let in_order = || ["inference.parallel_calls=1".to_owned()];

    let (bench, kept) = (Bench::new(), Arc::new(Kept::default()));
    let choice = set(hello_on_driver("anthropic", endpoint), in_order());
    let assembled = assemble_recorded(&choice, bench.surroundings(), kept.clone()).unwrap();
    let (mut warm, mut last) = (0, 0);
    converse(&bench, &assembled, &places[0], |turn| match turn {
        WARM => warm = resident(),
        TURNS => last = resident(),
        _ => {}
    });
    assembled.shut_down();
    let grown = last.saturating_sub(warm);
    println!(
        "{} KiB at turn {WARM}, {} KiB more at turn {TURNS}",
        warm >> 10,
        grown >> 10
    );
    assert!(grown < MOST_GROWN, "{grown} bytes more than at turn {WARM}");

    let tape = traces.path().join("tape.json");
    let text = Tape::new("hello", std::mem::take(&mut *kept.0.lock().unwrap())).to_text();
    assert!(text.len() < Tape::MAX_BYTES, "{} bytes", text.len());
    fs::write(&tape, text).unwrap();
    let bench = Bench::new();
    let choice = set(hello_on_tape(&tape), in_order());
    let assembled = assemble_in(&choice, bench.surroundings()).unwrap();
    converse(&bench, &assembled, &places[1], |_| {});
    assembled.shut_down();

    let [recorded, played] = places.map(|place| stories(&place));
    for (turn, (recorded, played)) in recorded.iter().zip(&played).enumerate() {
        complete(turn, recorded);
        assert_eq!(played, recorded, "turn {turn}");
    }
}

#[test]
fn two_hundred_turns_with_a_thousand_calls_stay_in_bounded_memory_and_play_to_the_same_trace() {
    if let Some(endpoint) = env::var_os(ALONE) {
        recorded_and_played(endpoint.to_str().unwrap());
        return;
    }
    let bench = Bench::new();
    let provider = bench.provider(script());
    // The provider keeps all that it was sent; its memory is not the conversation's.
    let name = "long::two_hundred_turns_with_a_thousand_calls_stay_in_bounded_memory_and_play_to_the_same_trace";
    let ran = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ALONE, provider.url())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(told.contains("1 passed"), "{told}");
    println!("{told}");
    assert_eq!(provider.requests().len(), 2 * TURNS);
    // The last request has all that was said before it.
    let last = provider.requests().pop().unwrap();
    assert_eq!(last.results().len(), TURNS * CALLS_A_TURN);
    provider.assert_clean();
}
