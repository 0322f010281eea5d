//! Record, replay, test: `--record`, `--replay`, `capsule test`.

use std::{fs, path::Path};

use capsule_fakes::{Answer, Close, Pieces, Position, Reply, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    peer::{KEY, Peer},
    run::ANSWER,
    support::{ROOT, Ran, Sandbox, files, kinds, lines, mode},
};

/// One call at a time, so that the records come in one order only; and all of their content.
const IN_ORDER: [&str; 6] = [
    "--set",
    "inference.parallel_calls=1",
    "--set",
    "trace.capture=content",
    "--trace",
    "run.jsonl",
];

fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "hello"], &IN_ORDER[..], more].concat()
}

/// The trace without ids, times, and who was asked.
fn story(sandbox: &Sandbox) -> Vec<Value> {
    let mut records = lines(&fs::read_to_string(sandbox.work("run.jsonl")).unwrap());
    for record in &mut records {
        let fields = record.as_object_mut().unwrap();
        for field in ["ts", "task", "ms", "after_ms", "peer", "billed"] {
            fields.remove(field);
        }
    }
    records
}

fn tape(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&fs::read_to_string(sandbox.work("tape.json")).unwrap()).unwrap()
}

#[track_caller]
fn assert_fits(tape: &Value) {
    let schema = fs::read_to_string(format!("{ROOT}/docs/tape.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<_> = validator.iter_errors(tape).map(|error| error.to_string()).collect();
    assert_eq!(problems, [] as [String; 0]);
}

#[test]
fn a_run_that_was_recorded_plays_without_its_provider_to_the_same_trace() {
    let script = Script::new()
        .then(Reply::text("Wrong").cut(Position::Events(5), Close::EndOfBody))
        .then(
            Reply::new()
                .thinking("Hm, Amélie.", "signature")
                .call("call-1", "hello", json!({"name": "Amélie", "language": "French"}))
                .call("call-2", "read-file", json!({"path": "/etc/passwd"})),
        )
        .then(Reply::text("Bonjour, Amélie !"));
    let peer = Peer::start(script);
    let sandbox = Sandbox::new().with_hello().env("ANTHROPIC_API_KEY", KEY);
    peer.configure(&sandbox, "");
    let retry = [
        "--set",
        "inference.retry={max_retries: 1, initial_delay: 1ms, max_delay: 1ms}",
    ];
    let recorded = [&["-t", "Greet Amélie", "--record", "tape.json"], &retry[..]].concat();
    let first = sandbox.run(&run(&recorded)).code(0);
    let told = story(&sandbox);
    assert!(kinds(&told).contains(&"retry"), "{told:#?}");
    peer.assert_clean();

    assert_eq!(mode(&sandbox.work("tape.json")), 0o600);
    let tape = tape(&sandbox);
    assert_fits(&tape);
    let roles: Vec<_> = tape["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["request"]["roles"].clone())
        .collect();
    let (user, calls) = (json!(["user"]), json!(["user", "assistant", "tool", "tool"]));
    assert_eq!(roles, [user.clone(), user, calls]);
    assert_eq!(tape["entries"][0]["request"]["last"], json!(["Greet Amélie"]));

    let sandbox = sandbox.env("ANTHROPIC_API_KEY", "");
    let replayed = [&["-t", "Greet Amélie", "--replay", "tape.json"], &retry[..]].concat();
    let second = sandbox.run(&run(&replayed)).code(0);
    assert_eq!(second.out, first.out);
    assert_eq!(story(&sandbox), told);
}

#[test]
fn whatever_driver_a_tape_was_recorded_with_it_plays_to_the_same_trace() {
    for driver in ["openai", "openai-responses", "ollama"] {
        let script = Script::new()
            .then(Reply::text("Calling.").call("call-1", "hello", json!({"name": "Amélie", "language": "French"})))
            .then(Reply::text("Bonjour, Amélie !"));
        let peer = Peer::start(script);
        let sandbox = peer.hello();
        let endpoint = format!("inference.endpoint={}", peer.provider().url());
        let recorded = [
            "-t",
            "Greet",
            "--record",
            "tape.json",
            "--driver",
            driver,
            "--set",
            &endpoint,
        ];
        let first = sandbox.run(&run(&recorded)).code(0);
        assert_eq!(first.answer(), "Bonjour, Amélie !", "{driver}");
        let told = story(&sandbox);
        peer.assert_clean();
        let tape = tape(&sandbox);
        assert_fits(&tape);
        assert_eq!(tape["entries"][1]["wire"], driver);
        sandbox.run(&run(&["-t", "Greet", "--replay", "tape.json"])).code(0);
        assert_eq!(story(&sandbox), told, "{driver}");
    }
}

/// A tape of version 1 as it was written when that was the only one, with every form that an entry may have and fields of later programs.
/// It is never edited: where this fails, tapes that people have no longer play.
#[test]
fn a_tape_of_version_1_plays_on_this_program() {
    let sandbox = Sandbox::new().with_hello();
    let tape = format!("{ROOT}/host/cli/tests/tapes/version-1.json");
    let text = fs::read_to_string(&tape).unwrap();
    assert_fits(&serde_json::from_str(&text).unwrap());
    let ran = sandbox
        .run(&run(&["-t", "Greet five guests", "--replay", &tape]))
        .code(0);
    assert_eq!(ran.answer(), "All five are greeted.");
    let told = story(&sandbox);
    let of = |kind: &str, field: &str| {
        let records = told.iter().filter(|record| record["kind"] == kind);
        records.map(|record| record[field].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("retry", "cause"), ["overloaded"]);
    assert_eq!(
        of("block", "text"),
        ["Amélie first.", "One is left.", "All five are greeted."]
    );
    let names = of("call_start", "arguments")
        .iter()
        .map(|arguments| arguments["name"].clone())
        .collect::<Vec<_>>();
    assert_eq!(names, ["Amélie", "Kenji", "Zofia", "Ada", "Bo"]);
    assert_eq!(of("warning", "code"), [] as [Value; 0]);
}

#[test]
fn a_replay_with_another_task_is_a_warning_of_the_run() {
    let sandbox = Sandbox::new().with_hello();
    let ran = sandbox.run(&run(&["-t", "Sing"])).code(0);
    assert_eq!(ran.answer(), ANSWER);
    ran.says(&["the tape was recorded with another input", "now:      Sing"]);
    let warnings = story(&sandbox).into_iter().filter(|record| record["kind"] == "warning");
    let codes: Vec<_> = warnings.map(|record| record["code"].clone()).collect();
    assert_eq!(codes, ["cassette-other-input"]);
}

#[test]
fn a_replay_that_is_recorded_is_the_same_tape() {
    let sandbox = Sandbox::new().with_hello();
    let ran = sandbox.run(&["run", "hello", "--record", "tape.json"]).code(0);
    assert_eq!(ran.answer(), ANSWER);
    let original = fs::read_to_string(sandbox.work("hello/tapes/hello.json")).unwrap();
    assert_eq!(tape(&sandbox), serde_json::from_str::<Value>(&original).unwrap());
    assert_fits(&tape(&sandbox));
    sandbox.run(&["run", "hello", "--replay", "tape.json"]).code(0);
    let left: Vec<_> = files(&sandbox.work(""))
        .into_iter()
        .filter(|file| !file.starts_with(sandbox.work("hello")))
        .collect();
    assert_eq!(left, [sandbox.work("tape.json")], "nothing is left beside the tape");
}

#[test]
fn a_tape_has_no_key_wherever_it_was_said() {
    let in_pieces = Pieces::from(["Your key is ", &KEY[..7], &KEY[7..], "."]);
    let script = Script::new()
        .then(Answer::error(529, &format!("overloaded by {KEY}")).header("x-key", KEY))
        .then(Reply::text(format!("It is {KEY}")).cut(Position::Events(6), Close::EndOfBody))
        .then(
            Reply::text("Calling.")
                .call("call-1", "hello", json!({"name": KEY}))
                .call(
                    "call-2",
                    "hello",
                    json!({"name": format!("https://api.test/v1?key={KEY}&n=1")}),
                ),
        )
        .then(Reply::text(in_pieces));
    let peer = Peer::start(script);
    let sandbox = Sandbox::new().with_hello().env("ANTHROPIC_API_KEY", KEY);
    peer.configure(&sandbox, "");
    let retry = "inference.retry={max_retries: 3, initial_delay: 1ms, max_delay: 1ms}";
    let args = ["run", "hello", "-t", &format!("Use {KEY}."), "--set", retry];
    let ran = sandbox.run(&[&args[..], &["--record", "tape.json"]].concat()).code(0);
    assert_eq!(
        ran.answer(),
        "Your key is [redacted].",
        "not even the model's own answer shows it"
    );
    assert_eq!(peer.provider().requests()[0].key(), Some(KEY));
    peer.assert_clean();

    let text = fs::read_to_string(sandbox.work("tape.json")).unwrap();
    for hidden in [
        KEY,
        &KEY[7..],
        "x-key",
        "x-api-key",
        "authorization",
        "anthropic-version",
    ] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    let tape = tape(&sandbox);
    assert_fits(&tape);
    assert_eq!(tape["entries"][0]["request"]["last"], json!(["Use [redacted]."]));
    let told = ["Hello, [redacted]!", "Hello, https://api.test/v1?key=[redacted]&n=1!"];
    assert_eq!(tape["entries"][3]["request"]["last"], json!(told));
    let replayed = sandbox
        .run(&["run", "hello", "-t", "x", "--set", retry, "--replay", "tape.json"])
        .code(0);
    assert_eq!(replayed.answer(), "Your key is [redacted].");
}

#[test]
fn a_run_that_failed_or_was_cancelled_leaves_the_tape_of_what_there_was() {
    let call = Reply::new().call("call-1", "hello", json!({"name": "Ada"}));
    let peer = Peer::start(Script::new().then(call.clone()).then(Answer::error(401, "no")));
    let sandbox = peer.hello();
    sandbox
        .run(&["run", "hello", "-t", "x", "--record", "tape.json"])
        .code(1);
    let statuses: Vec<_> = tape(&sandbox)["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["status"].clone())
        .collect();
    assert_eq!(statuses, [200, 401]);
    let replayed = sandbox
        .run(&["run", "hello", "-t", "x", "--replay", "tape.json"])
        .code(1);
    replayed.says(&["anthropic-auth"]);
    peer.assert_clean();

    let peer = Peer::start(Script::new().then(Reply::text("A long story").stall(Position::Events(4))));
    let sandbox = peer.hello();
    let child = sandbox.spawn(&["run", "hello", "-t", "x", "--record", "tape.json"]);
    peer.wait_until_hanging(1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    Ran::of(&child.wait_with_output().unwrap()).code(130);
    assert_fits(&tape(&sandbox));
    peer.assert_clean();
}

/// The hello capsule whose list of people changed since its tape was recorded.
fn changed_hello() -> Sandbox {
    let sandbox = Sandbox::new().with_hello();
    let notes = sandbox.work("hello/notes/team.md");
    let changed = fs::read_to_string(&notes).unwrap().replace("Japanese", "Korean");
    fs::write(&notes, changed).unwrap();
    sandbox
}

#[test]
fn a_run_that_fails_never_replaces_a_tape() {
    let sandbox = changed_hello();
    let file = "hello/tapes/hello.json";
    let good = fs::read_to_string(sandbox.work(file)).unwrap();
    let drifted = sandbox.run(&["run", "hello", "--record", file]).code(1);
    drifted.says(&[
        "cassette-drift",
        "read-file {\"path\":\"/notes/team.md\"} answers something else",
        "tapes/hello.json",
        "capsule test",
        "--set inference.drift=ignore",
        "cli-tape-partial",
        "hello/tapes/hello.json.partial",
    ]);
    assert_eq!(fs::read_to_string(sandbox.work(file)).unwrap(), good);
    let partial = fs::read_to_string(sandbox.work("hello/tapes/hello.json.partial")).unwrap();
    let partial: Value = serde_json::from_str(&partial).unwrap();
    assert_eq!(partial["entries"].as_array().unwrap().len(), 1);
    // A partial tape is none that is tested.
    let tested = sandbox.run(&["test", "hello", "--json"]).code(1).json();
    assert_eq!(tested["requests"], 3);
}

#[test]
fn the_command_that_a_drift_hints_at_takes_the_results_of_the_tools_anew() {
    let sandbox = changed_hello();
    let drifted = sandbox.run(&["test", "hello"]).code(1);
    let (_, command) = drifted.err.trim().split_once("capsule ").unwrap();
    let tape = "hello/tapes/hello.json";
    let expected = format!("run hello --replay {tape} --set inference.drift=ignore --record {tape}");
    assert_eq!(command, expected);
    sandbox.run(&command.split(' ').collect::<Vec<_>>()).code(0);
    sandbox.run(&["test", "hello"]).code(0);
    sandbox.run(&["run", "hello"]).code(0);
}

#[test]
fn a_cancelled_run_leaves_the_tape_that_was_there() {
    let peer = Peer::start(Script::new().then(Reply::text("A long story").stall(Position::Events(4))));
    let sandbox = peer.hello();
    sandbox.write("tape.json", "what was there");
    let child = sandbox.spawn(&["run", "hello", "-t", "x", "--record", "tape.json"]);
    peer.wait_until_hanging(1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    Ran::of(&child.wait_with_output().unwrap())
        .code(130)
        .says(&["cli-tape-partial", "tape.json.partial"]);
    assert_eq!(fs::read_to_string(sandbox.work("tape.json")).unwrap(), "what was there");
    let partial = fs::read_to_string(sandbox.work("tape.json.partial")).unwrap();
    assert_fits(&serde_json::from_str(&partial).unwrap());
    peer.assert_clean();
}

#[test]
fn what_cannot_be_recorded_or_played_is_told_before_anything_runs() {
    let peer = Peer::start(Script::new());
    let sandbox = peer.hello();
    let echo = ["run", "hello", "--transport", "echo", "-t", "x"];
    let needs = "needs a run in which the host itself asks the model";
    for (flag, file) in [("--record", "tape.json"), ("--replay", "hello/tapes/hello.json")] {
        let ran = sandbox.run(&[&echo[..], &[flag, file]].concat()).code(2);
        ran.says(&[flag, needs, "`echo`", "--transport http"]);
    }
    for (flag, file, said) in [
        ("--record", "no/such/place.json", "it cannot be written"),
        ("--record", "hello", "it cannot be written"),
        ("--replay", "no-such-tape.json", "it cannot be read"),
        ("--replay", "/dev/null", "it is not a regular file"),
        ("--replay", "hello/capsule.yaml", "cli-tape"),
    ] {
        sandbox
            .run(&["run", "hello", "-t", "x", flag, file])
            .code(2)
            .says(&[said, "hint:"]);
    }
    sandbox.write("later.json", r#"{"version": 2}"#);
    let later = sandbox
        .run(&["run", "hello", "-t", "x", "--replay", "later.json"])
        .code(2);
    later.says(&["version 2", "reads 1"]);
    assert!(!sandbox.work("tape.json").exists());
    peer.assert_clean();
}

#[test]
fn the_tapes_of_a_capsule_are_tested_against_its_real_tools() {
    let sandbox = Sandbox::new().with_hello();
    let passed = sandbox.run(&["test", "hello"]).code(0);
    assert_eq!(passed.out, "ok    tapes/hello.json · 3 requests, 5 tool calls\n");
    assert_eq!(passed.err, "");
    assert_eq!(sandbox.leftovers(), [] as [std::path::PathBuf; 0]);

    let notes = sandbox.work("hello/notes/team.md");
    let changed = fs::read_to_string(&notes).unwrap().replace("Japanese", "Korean");
    fs::write(&notes, changed).unwrap();
    let drifted = sandbox.run(&["test", "hello"]).code(1);
    insta::assert_snapshot!(drifted.out, @r#"
    drift tapes/hello.json · 3 requests, 5 tool calls
      read-file {"path":"/notes/team.md"} answers something else (request 2)
        --- recorded
        +++ now
        @@ -1,5 +1,5 @@
         # Team
         
         - Amélie: French
        -- Kenji: Japanese
        +- Kenji: Korean
         - Zofia: Polish
    "#);
    assert!(drifted.err.starts_with("1 of 1 tape drifted"), "{drifted:?}");

    let drift = sandbox.run(&["test", "hello", "--json"]).code(1).json();
    assert_eq!(
        (&drift["tape"], &drift["passed"]),
        (&json!("tapes/hello.json"), &json!(false))
    );
    let found = &drift["drift"][0];
    assert_eq!((&found["is"], &found["request"]), (&json!("result"), &json!(2)));
    assert_eq!(found["arguments"], json!({"path": "/notes/team.md"}));
    sandbox.run(&["run", "hello"]).code(1).says(&["cassette-drift"]);
}

#[test]
fn a_new_capsule_passes_its_own_test_and_a_capsule_of_another_transport_is_tested_too() {
    let sandbox = Sandbox::new();
    sandbox.run(&["new", "mine"]).code(0);
    sandbox.run(&["test", "mine"]).code(0);
    let manifest = sandbox.work("mine/capsule.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    let (head, _) = text.split_once("inference:").unwrap();
    fs::write(&manifest, format!("{head}inference: {{transport: echo}}\n")).unwrap();
    let json = sandbox.run(&["test", "mine", "--json"]).code(0).json();
    assert_eq!(
        json,
        json!({"tape": "tapes/hello.json", "passed": true, "requests": 3, "calls": 5, "drift": []})
    );
}

#[test]
fn a_run_that_ends_before_its_tape_is_drift_and_no_tape_is_an_error() {
    let sandbox = Sandbox::new().with_hello();
    let manifest = sandbox.work("hello/capsule.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("max_turns: 8", "max_turns: 2")).unwrap();
    let drifted = sandbox.run(&["test", "hello"]).code(1);
    assert!(
        drifted.out.contains("the run took 2 of the 3 recorded requests"),
        "{drifted:?}"
    );
    assert!(drifted.out.contains("it ended before: limit reached"), "{drifted:?}");

    fs::write(sandbox.work("hello/tapes/broken.json"), "{").unwrap();
    sandbox
        .run(&["test", "hello"])
        .code(2)
        .says(&["broken.json", "cli-tape"]);
    fs::remove_dir_all(sandbox.work("hello/tapes")).unwrap();
    sandbox
        .run(&["test", "hello"])
        .code(2)
        .says(&["there is no tape in", "--record"]);
    sandbox.write("hello/tapes", "no directory");
    sandbox.run(&["test", "hello"]).code(2).says(&["tapes cannot be read"]);
}

/// The most memory that a process has used so far, in MiB.
fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// 199 answers with five calls and one with five more, then the end; two answers wait until the test has looked at the process.
fn long_talk() -> Script {
    let answer = |n: usize| {
        (0..5).fold(Reply::text(format!("Round {n}.")), |reply, call| {
            reply.call(
                &format!("call-{n}-{call}"),
                "hello",
                json!({"name": format!("guest {call} of round {n}")}),
            )
        })
    };
    let early = (1..20).fold(Script::new(), |script, n| script.then(answer(n)));
    let late = (21..201).fold(early.then(answer(20).hang()), |script, n| script.then(answer(n)));
    late.then(Reply::text("Two hundred rounds.").hang())
}

#[test]
fn two_hundred_rounds_of_a_thousand_calls_take_bounded_memory_and_play_to_the_same_trace() {
    let peer = Peer::start(long_talk());
    let sandbox = Sandbox::new().with_hello().env("ANTHROPIC_API_KEY", KEY);
    peer.configure(&sandbox, "  max_turns: 250\n");
    let child = sandbox.spawn(&run(&["-t", "Work", "--record", "tape.json"]));
    peer.wait_until_hanging(1);
    let early = peak_memory(child.id());
    peer.provider().gate().release_one();
    peer.wait_until_hanging(2);
    let late = peak_memory(child.id());
    peer.provider().gate().release_one();
    let ran = Ran::of(&child.wait_with_output().unwrap()).code(0);
    assert_eq!(ran.answer(), "Two hundred rounds.");
    peer.assert_clean();
    assert!(late < early + 64, "{early} MiB after 19 rounds, {late} MiB after 200");
    assert!(late < 512, "{late} MiB");

    let told = story(&sandbox);
    let count = |kind: &str| kinds(&told).iter().filter(|known| **known == kind).count();
    let counts = ["request_start", "request_end", "call", "call_start", "call_end", "gap"].map(count);
    assert_eq!(counts, [201, 201, 1000, 1000, 1000, 0]);
    assert!(
        told.iter()
            .filter(|record| record["kind"] == "call_end")
            .all(|record| record["status"] == "passed")
    );
    assert_eq!(tape(&sandbox)["entries"].as_array().unwrap().len(), 201);

    sandbox.run(&run(&["-t", "Work", "--replay", "tape.json"])).code(0);
    let again = story(&sandbox);
    assert_eq!(again.len(), told.len());
    for (again, told) in again.iter().zip(&told) {
        assert_eq!(again, told);
    }
}
