//! The trace and `--json`, held to `docs/trace.schema.json`.

use std::{fs, path::PathBuf, time::Duration, time::SystemTime};

use capsule_api::{
    Billing, BlockId, BlockKind, CallId, Content, Error, ErrorKind, Event, Input, Limit, Outcome, Part, Progress,
    Residue, RunEvent, Scratch, ToolReply, ToolStatus, Usage,
};
use capsule_fakes::{Answer, Close, Position, Reply, Script};
use capsule_session::{Capture, Entry, RunStart, TaskState, What, records};
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::{
    peer::Peer,
    support::{ROOT, Sandbox, lines},
};

fn schema() -> Value {
    let text = fs::read_to_string(format!("{ROOT}/docs/trace.schema.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[track_caller]
fn assert_fits(validator: &Validator, record: &Value) {
    let problems: Vec<_> = validator.iter_errors(record).map(|error| error.to_string()).collect();
    assert_eq!(problems, [] as [String; 0], "{record:#}");
}

#[test]
fn real_traces_and_json_output_fit_the_schema_in_both_modes() {
    let schema = schema();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for capture in ["summary", "content"] {
        let set = format!("trace.capture={capture}");
        let script = Script::new()
            .then(Reply::text("Wrong").cut(Position::Events(5), Close::Reset))
            .then(
                Reply::new()
                    .thinking("Hm.", "signature")
                    .call("c1", "hello", json!({"name": "Ada"})),
            )
            .then(Answer::error(400, "no"));
        let peer = Peer::start(script);
        let sandbox = peer.hello();
        let retry = "inference.retry={max_retries: 1, initial_delay: 1ms, max_delay: 1ms}";
        let args = [
            "run",
            "hello",
            "-t",
            "x",
            "--continue",
            "c",
            "--json",
            "--set",
            &set,
            "--set",
            retry,
        ];
        let failed = sandbox.run(&args).code(1);
        let cassette = Sandbox::new().with_hello();
        let passed = cassette.run(&["run", "hello", "--json", "--set", &set]).code(0);
        let shown = lines(&failed.out).into_iter().chain(lines(&passed.out));
        for record in sandbox.trace().into_iter().chain(cassette.trace()).chain(shown) {
            assert_fits(&validator, &record);
        }
        peer.assert_clean();
    }
}

#[test]
fn whatever_the_host_can_record_fits_the_schema_and_every_kind_is_described() {
    let schema = schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut seen = std::collections::BTreeSet::from(["gap".to_owned()]);
    for (seq, what) in everything().into_iter().enumerate() {
        let entry = Entry {
            seq: seq as u64 + 1,
            at: SystemTime::UNIX_EPOCH,
            what,
        };
        for capture in [Capture::Summary, Capture::Content] {
            let record = records("task", &entry, capture, true).unwrap();
            assert_fits(&validator, &record);
            seen.insert(record["kind"].as_str().unwrap().to_owned());
            let mut more = record;
            more["surprise"] = json!(1);
            assert!(!validator.is_valid(&more), "an unknown field is not valid: {more}");
        }
    }
    let defined = schema["properties"]["kind"]["enum"].as_array().unwrap();
    let defined: std::collections::BTreeSet<_> = defined.iter().map(|kind| kind.as_str().unwrap().to_owned()).collect();
    assert_eq!(seen, defined);
    let page = fs::read_to_string(format!("{ROOT}/docs/trace.md")).unwrap();
    for kind in &defined {
        assert!(
            page.contains(&format!("| `{kind}` |")),
            "docs/trace.md has no row for `{kind}`"
        );
    }
    assert_fits(&validator, &json!({"v": 1, "task": "t", "kind": "gap", "missed": 3}));
}

/// An entry of every sort.
fn everything() -> Vec<What> {
    let mut all = vec![run_start(), What::State(TaskState::Working)];
    all.extend(model().into_iter().chain(model_calls()).map(What::Model));
    all.extend(ran().into_iter().map(What::Run));
    all.extend(ends());
    all
}

fn run_start() -> What {
    let mut input = Input::text("go");
    input.parts.push(Part::Data(json!({"a": 1})));
    input.parts.push(Part::File {
        name: Some("a.txt".into()),
        media_type: "text/plain".into(),
        bytes: b"x".to_vec().into(),
    });
    let (capsule, context) = (("t".into(), "0.1.0".into()), Some("c".into()));
    What::RunStart(RunStart {
        capsule,
        transport: "echo",
        chosen_by: Some("pets: the first of echo, parrot that could run here".into()),
        context,
        input,
    })
}

fn model() -> Vec<Event> {
    let (block, kind) = (BlockId(1), BlockKind::Thinking);
    let usage = Usage {
        input: 1,
        output: 2,
        requests: 1,
        cost_micros: Some(1500),
        ..Usage::default()
    };
    vec![
        Event::Started {
            model: None,
            peer: None,
            billing: Billing::ApiKey,
            resumed: true,
        },
        Event::Started {
            model: Some("m".into()),
            peer: Some("p".into()),
            billing: Billing::Unknown,
            resumed: false,
        },
        Event::RequestStarted { n: 1 },
        Event::RequestEnded {
            n: 1,
            stop: "end_turn".into(),
        },
        Event::Delta {
            block,
            kind,
            text: "a".into(),
        },
        Event::Block {
            block,
            kind: BlockKind::Text,
            text: "a".into(),
        },
        Event::Retracted { block },
        Event::Usage(usage),
        Event::Retrying {
            attempt: 1,
            after: Duration::from_millis(5),
            cause: ErrorKind::Overloaded,
        },
        Event::Compacted { before: 9, after: 3 },
        Event::Warning {
            code: "a-b",
            message: "m".into(),
        },
        Event::Note {
            code: "a-b",
            data: json!([1]),
        },
    ]
}

fn model_calls() -> Vec<Event> {
    let call = || CallId::new("c1");
    vec![
        Event::CallStarted {
            call: call(),
            name: "t".into(),
        },
        Event::CallProgress {
            call: call(),
            input_bytes: 3,
        },
        Event::Call {
            call: call(),
            name: "t".into(),
            arguments: json!("not an object"),
        },
        Event::CallAbandoned { call: call() },
    ]
}

fn ran() -> Vec<RunEvent> {
    let call = || CallId::new("c1");
    let step = Progress::Step {
        done: 1.5,
        total: Some(3.0),
        message: Some("Half Way".into()),
    };
    let mut reply = ToolReply::text("done");
    reply.content.push(Content::Image {
        media_type: "image/png".into(),
        data: b"x".to_vec(),
    });
    reply.content.push(Content::Resource(json!({"uri": "file:///a"})));
    reply.full_bytes = Some(9);
    reply.metadata = vec![("state_effect".into(), "read".into())];
    let ended = |reply| RunEvent::Ended {
        call: call(),
        name: "t".into(),
        reply,
        duration: Duration::from_millis(2),
    };
    let mut all = vec![
        RunEvent::Started {
            call: call(),
            name: "t".into(),
            arguments: json!({}),
        },
        RunEvent::Chunk {
            call: call(),
            kind: BlockKind::Text,
            text: "a".into(),
        },
        RunEvent::Progress {
            call: call(),
            progress: step,
        },
        RunEvent::Progress {
            call: call(),
            progress: Progress::WaitingForCaller,
        },
        RunEvent::Progress {
            call: call(),
            progress: Progress::Resumed,
        },
        RunEvent::Missed {
            call: call(),
            why: "w".into(),
        },
        RunEvent::Warning {
            code: "a-b",
            message: "m".into(),
        },
        ended(reply),
    ];
    use ToolStatus::*;
    let statuses = [Failed, Invalid, Denied, Unknown, TimedOut, Cancelled, Trapped];
    all.extend(statuses.map(|status| ended(ToolReply::new(status, "no"))));
    all
}

fn ends() -> Vec<What> {
    use std::os::unix::ffi::OsStringExt as _;
    let text = || "t".to_owned();
    // A file name need not be text.
    let odd = PathBuf::from(std::ffi::OsString::from_vec(vec![b'/', 0xff]));
    let residue = Residue {
        processes: vec![(1, text())],
        files: vec![odd],
        calls: vec![CallId::new("c1")],
        scratch: Scratch {
            files: 2,
            bytes: 10,
            partial: true,
        },
    };
    let error = Error::new(&capsule_session::codes::TRACE, "m")
        .with("path", "/a")
        .hint("Do.");
    let outcomes = [
        Outcome::Completed { text: text() },
        Outcome::InputRequired { prompt: text() },
        Outcome::Refused { text: text() },
        Outcome::Truncated { partial: text() },
        Outcome::LimitReached {
            which: Limit::SameFailure,
        },
        Outcome::Cancelled,
    ];
    let good = outcomes.map(|outcome| What::RunEnd {
        outcome: Ok(outcome),
        residue: Residue::default(),
        late: 0,
    });
    let bad = What::RunEnd {
        outcome: Err(error),
        residue,
        late: 2,
    };
    good.into_iter().chain([bad]).collect()
}
