//! The reader on recorded streams of the real CLI (2.1.332), trimmed to the fields that are read: `tests/data`.

use capsule_api::{Annotations, Billing, BlockId, BlockKind, Fold, ToolSpec};
use capsule_transport_process::Ending;
use proptest::prelude::*;

use super::*;

const ALIASES: [&str; 11] = [
    "big",
    "drop",
    "echo",
    "empty",
    "fail",
    "http500",
    "image",
    "resource",
    "rpcfail",
    "slow",
    "structured",
];

fn catalogue(aliases: &[&str]) -> Arc<Catalogue> {
    let spec = |alias: &&str| ToolSpec {
        name: format!("my {alias}"),
        alias: (*alias).to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        annotations: Annotations::default(),
        longest: Duration::from_secs(60),
        largest: 1 << 20,
    };
    Arc::new(Catalogue {
        tools: aliases.iter().map(spec).collect(),
    })
}

fn reader(aliases: &[&str]) -> Reader {
    Reader::new(Expected {
        catalogue: catalogue(aliases),
        peer: "claude 2.1.332".into(),
        resumed: false,
        login: Login::ApiKey,
    })
}

fn recorded(name: &str) -> String {
    let path = format!("{}/tests/data/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What came of a run.
struct Ran {
    said: Vec<Say>,
    outcome: Result<Outcome, Error>,
}

/// Plays a stream as the turn does: to the first action that ends it, else to the exit.
fn play(mut reader: Reader, stream: &str, exit: i32) -> Ran {
    let mut said = Vec::new();
    let mut stopped = None;
    'lines: for line in stream.lines() {
        for action in reader.line(line) {
            match action {
                Action::Say(event) => said.push(event),
                Action::Stop(outcome) => {
                    stopped = Some(outcome);
                    break 'lines;
                }
                Action::Ended => break 'lines,
                Action::Returned { .. } | Action::Silence(_) => {}
            }
        }
    }
    let outcome = stopped.unwrap_or_else(|| reader.outcome(&Ending::Exited(exit), ""));
    said.extend(reader.close().into_iter().filter_map(|action| match action {
        Action::Say(event) => Some(event),
        _ => None,
    }));
    Ran { said, outcome }
}

fn fold(said: &[Say]) -> Fold {
    let mut fold = Fold::default();
    said.iter().for_each(|event| fold.event(event));
    fold
}

fn row(outcome: &Result<Outcome, Error>) -> String {
    match outcome {
        Ok(Outcome::Completed { text }) => format!("completed: {text}"),
        Ok(Outcome::Truncated { partial }) => format!("truncated: {partial}"),
        Ok(Outcome::Refused { text }) => format!("refused: {text}"),
        Ok(Outcome::LimitReached { which }) => format!("limit: {}", which.as_str()),
        Ok(other) => other.as_str().to_owned(),
        Err(error) => error.code.to_owned(),
    }
}

#[test]
fn p_01_each_recorded_run_ends_as_it_should() {
    let table = [
        ("one-call", 0, "completed: The tool said what it said. Done."),
        ("three-calls", 0, "completed: all three done"),
        ("status-429-once", 0, "completed: second try fine"),
        ("cut-once", 0, "completed: second stream fine"),
        ("cut-then-not-streamed", 0, "completed: this stream is going to be cut"),
        ("cut-after-a-call", 0, "completed: end"),
        ("unknown-tool", 0, "completed: unknown done"),
        ("permission-denied", 0, "completed: The tool said what it said. Done."),
        ("empty-answer", 0, "completed: "),
        ("max-tokens", 1, "truncated: cut short"),
        ("refusal", 1, "refused: I can't"),
        ("max-turns", 1, "limit: requests"),
        ("max-budget", 1, "limit: cost"),
        ("status-400", 1, "claude-bad-request"),
        ("no-credit", 1, "claude-quota"),
        ("prompt-too-long", 1, "claude-context"),
        ("status-401", 1, "claude-auth"),
        ("status-403", 1, "claude-auth"),
        ("unknown-model", 1, "claude-model"),
        ("status-429", 1, "claude-rate-limited"),
        ("status-500", 1, "claude-overloaded"),
        ("status-503", 1, "claude-overloaded"),
        ("status-529", 1, "claude-overloaded"),
        ("connection-dropped", 1, "claude-network"),
        ("overloaded-in-stream", 1, "claude-network"),
        ("session-missing", 1, "claude-session-lost"),
        ("bridge-down", 0, "claude-tools"),
        ("bad-tool", 0, "claude-tools"),
        ("terminated", 143, "claude-no-result"),
        ("interrupted", 0, "claude-failed"),
    ];
    let rows: Vec<_> = table
        .iter()
        .map(|(name, exit, _)| {
            (
                *name,
                *exit,
                row(&play(reader(&ALIASES), &recorded(name), *exit).outcome),
            )
        })
        .collect();
    let wanted: Vec<_> = table
        .iter()
        .map(|(name, exit, row)| (*name, *exit, (*row).to_owned()))
        .collect();
    assert_eq!(rows, wanted);
}

#[test]
fn a_run_without_a_credential_is_not_the_one_that_was_asked_for() {
    assert_eq!(
        row(&play(reader(&[]), &recorded("no-credentials"), 1).outcome),
        "claude-billing"
    );
    assert_eq!(
        row(&play(reader(&[]), &recorded("connection-refused"), 1).outcome),
        "claude-network"
    );
}

#[test]
fn p_13_what_the_cli_says_of_its_credential_is_what_the_manifest_asks_for() {
    let init = |source: &str| {
        let init = json!({"type": "system", "subtype": "init", "tools": [], "apiKeySource": source});
        format!("{init}\n")
    };
    for (login, source, billing) in [
        (Login::ApiKey, "ANTHROPIC_API_KEY", Some(Billing::ApiKey)),
        (Login::ApiKey, "none", None),
        (Login::ApiKey, "/login managed key", None),
        (Login::Subscription, "none", Some(Billing::Subscription)),
        (Login::Subscription, "ANTHROPIC_API_KEY", None),
        (Login::Subscription, "apiKeyHelper", None),
        (Login::Token, "none", Some(Billing::Token)),
        (Login::Token, "apiKeyHelper", None),
    ] {
        let expected = Expected {
            login,
            ..reader(&[]).expected
        };
        let ran = play(Reader::new(expected), &init(source), 0);
        let told = ran.said.iter().find_map(|event| match event {
            Say::Started { billing, .. } => Some(*billing),
            _ => None,
        });
        assert_eq!(told, billing, "{login:?} {source}");
        assert_eq!(
            row(&ran.outcome) == "claude-billing",
            billing.is_none(),
            "{login:?} {source}"
        );
    }
}

#[test]
fn m_01_nothing_is_passed_on_before_the_tools_are_proven() {
    for name in ["bridge-down", "bad-tool"] {
        let ran = play(reader(&ALIASES), &recorded(name), 0);
        assert_eq!(ran.said, [], "{name}");
    }
    let stream = recorded("one-call");
    let (_, without_init) = stream.split_once('\n').unwrap();
    let ran = play(reader(&ALIASES), without_init, 0);
    assert_eq!(
        (row(&ran.outcome).as_str(), fold(&ran.said)),
        ("claude-tools", Fold::default())
    );
}

#[test]
fn m_01_one_tool_too_few_or_too_many_is_named() {
    let error = play(reader(&ALIASES[1..]), &recorded("one-call"), 0)
        .outcome
        .unwrap_err();
    assert_eq!(
        error.context,
        [("missing", String::new()), ("unwanted", "mcp__capsule__big".into())]
    );
    let more = [&ALIASES[..], &["write"]].concat();
    let error = play(reader(&more), &recorded("one-call"), 0).outcome.unwrap_err();
    assert_eq!(
        error.context,
        [("missing", "mcp__capsule__write".into()), ("unwanted", String::new())]
    );
}

/// So many requests, each with the fake provider's counts.
fn usage(requests: u32) -> Say {
    Say::Usage(Usage {
        input: 11 * u64::from(requests),
        output: 7 * u64::from(requests),
        requests,
        ..Usage::default()
    })
}

fn delta(block: u32, kind: BlockKind, text: &str) -> Say {
    Say::Delta {
        block: BlockId(block),
        kind,
        text: text.into(),
    }
}

fn whole(block: u32, kind: BlockKind, text: &str) -> Say {
    Say::Block {
        block: BlockId(block),
        kind,
        text: text.into(),
    }
}

fn ended(n: u32, stop: &str) -> Say {
    Say::RequestEnded { n, stop: stop.into() }
}

#[test]
fn a_run_with_a_call_is_told_event_by_event() {
    let ran = play(reader(&ALIASES), &recorded("one-call"), 0);
    let (text, thinking) = (BlockKind::Text, BlockKind::Thinking);
    let call = CallId::new("toolu_fake0001");
    let progress = |input_bytes| Say::CallProgress {
        call: CallId::new("toolu_fake0001"),
        input_bytes,
    };
    let wanted = [
        Say::Started {
            model: Some("claude-opus-5-5".into()),
            peer: Some("claude 2.1.332".into()),
            billing: Billing::ApiKey,
            resumed: false,
        },
        Say::RequestStarted { n: 1 },
        delta(0, thinking, "I should call "),
        delta(0, thinking, "the echo tool."),
        whole(0, thinking, "I should call the echo tool."),
        delta(1, text, "Callin"),
        delta(1, text, "g echo."),
        whole(1, text, "Calling echo."),
        Say::CallStarted {
            call: call.clone(),
            name: "my echo".into(),
        },
        progress(9),
        progress(18),
        Say::Call {
            call,
            name: "my echo".into(),
            arguments: json!({"text": "ping-1"}),
        },
        ended(1, "tool_call"),
        usage(1),
        Say::RequestStarted { n: 2 },
        delta(2, text, "The tool said wh"),
        delta(2, text, "at it said. Done."),
        whole(2, text, "The tool said what it said. Done."),
        ended(2, "end_turn"),
        usage(2),
        usage(2),
    ];
    assert_eq!(ran.said, wanted);
}

#[test]
fn what_a_cut_stream_had_said_is_taken_back() {
    let ran = play(reader(&ALIASES), &recorded("cut-then-not-streamed"), 0);
    assert_eq!(fold(&ran.said).texts(), ["this stream is going to be cut"]);
    let requests: Vec<_> = ran
        .said
        .iter()
        .filter(|event| matches!(event, Say::RequestStarted { .. }))
        .collect();
    assert_eq!(requests, [&Say::RequestStarted { n: 1 }]);
    let retries = ran.said.iter().filter(|event| {
        matches!(
            event,
            Say::Retrying {
                cause: ErrorKind::Network,
                ..
            }
        )
    });
    assert_eq!(retries.count(), 2);
}

#[test]
fn a_failure_that_was_survived_is_a_warning_and_no_part_of_the_answer() {
    let ran = play(reader(&ALIASES), &recorded("cut-after-a-call"), 0);
    let warnings: Vec<_> = ran
        .said
        .iter()
        .filter_map(|event| match event {
            Say::Warning { code, message } => Some((*code, message.as_str())),
            _ => None,
        })
        .collect();
    let told = "API Error: Server error mid-response. The response above may be incomplete.";
    assert_eq!(warnings, [("claude-request-failed", told)]);
    assert_eq!(fold(&ran.said).texts(), ["let me", "again", "end"]);
}

#[test]
fn p_03_exit_terminal_event_and_flags_count_together() {
    let good = recorded("one-call");
    let (before, _) = good.trim_end().rsplit_once('\n').unwrap();
    for (stream, ending, wanted) in [
        (
            good.as_str(),
            Ending::Exited(0),
            "completed: The tool said what it said. Done.",
        ),
        (
            good.as_str(),
            Ending::Stayed,
            "completed: The tool said what it said. Done.",
        ),
        (good.as_str(), Ending::Exited(1), "claude-exit"),
        (good.as_str(), Ending::Died("signal 9".into()), "claude-exit"),
        (before, Ending::Exited(0), "claude-no-result"),
        ("", Ending::Exited(0), "claude-no-result"),
    ] {
        let mut reader = reader(&ALIASES);
        for line in stream.lines() {
            reader.line(line);
        }
        assert_eq!(row(&reader.outcome(&ending, "")), wanted, "{ending:?}");
    }
    let error = reader(&[]).outcome(&Ending::Exited(7), "panic at the end").unwrap_err();
    assert_eq!(error.message, "the CLI ended without a terminal event (exit status 7)");
    assert_eq!(
        error.context,
        [("stderr", "panic at the end".into()), ("exit", "7".into())]
    );
}

#[test]
fn a_success_without_a_model_request_is_none() {
    let init = json!({"type": "system", "subtype": "init", "tools": [], "apiKeySource": "ANTHROPIC_API_KEY"});
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed",
        "num_turns": 0, "result": "Set model to opus"});
    let ran = play(reader(&[]), &format!("{init}\n{result}\n"), 0);
    assert_eq!(row(&ran.outcome), "claude-not-asked");
}

#[test]
fn p_16_banners_unknown_events_and_two_objects_on_a_line_do_not_stop_the_reader() {
    let stream = recorded("one-call");
    let mut odd = String::from("Welcome to the CLI!\n{\"type\":\"sparkle\"}\n{\"type\":\"sparkle\"}\n[1,2]\n");
    // Two lines joined into one.
    odd.push_str(&stream.replacen('\n', "", 1));
    let ran = play(reader(&ALIASES), &odd, 0);
    assert_eq!(row(&ran.outcome), "completed: The tool said what it said. Done.");
    let notes: Vec<_> = ran
        .said
        .iter()
        .filter_map(|event| match event {
            Say::Note { code, data } => Some((*code, data.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(
        notes,
        [
            ("claude-junk", json!({"first": "Welcome to the CLI!"})),
            ("claude-junk", json!({"lines": 2})),
            ("claude-unknown-events", json!({"sparkle": 2})),
        ]
    );
}

#[test]
fn counts_of_any_size_are_added_without_a_panic() {
    let mut reader = reader(&[]);
    let most = u64::MAX;
    let mut lines = vec![json!({"type": "system", "subtype": "init", "apiKeySource": "ANTHROPIC_API_KEY"})];
    for id in ["m1", "m2"] {
        let usage = json!({"input_tokens": most, "output_tokens": most, "cache_read_input_tokens": most});
        let message = json!({"id": id, "usage": usage, "stop_reason": "end_turn"});
        lines.push(json!({"type": "assistant", "message": message}));
    }
    let said: Vec<_> = lines.iter().flat_map(|line| reader.line(&line.to_string())).collect();
    let last = said.into_iter().rev().find_map(|action| match action {
        Action::Say(Say::Usage(usage)) => Some(usage),
        _ => None,
    });
    let usage = last.expect("each answer is counted");
    assert_eq!((usage.input, usage.all_input(), usage.requests), (most, most, 2));
}

proptest! {
    #[test]
    fn any_line_is_read_without_a_panic(lines in prop::collection::vec(".{0,60}", 0..6)) {
        let mut reader = reader(&[]);
        for line in lines {
            reader.line(&line);
        }
        let _ = reader.outcome(&Ending::Exited(0), "");
    }

    /// A stream that stops anywhere, with lines lost on the way, never becomes an answer without its terminal event.
    #[test]
    fn a_stream_cut_anywhere_is_no_answer(end in 0usize..40, lost in 0usize..40) {
        let stream = recorded("one-call");
        let lines: Vec<_> = stream.lines().collect();
        let end = end.min(lines.len() - 1);
        let kept: Vec<_> = lines[..end].iter().enumerate().filter(|(n, _)| *n != lost).map(|(_, line)| *line).collect();
        let ran = play(reader(&ALIASES), &kept.join("\n"), 0);
        prop_assert!(ran.outcome.is_err());
    }
}
