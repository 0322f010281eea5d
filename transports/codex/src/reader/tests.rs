//! The reader on recorded streams of the real CLI (0.171.0), trimmed to the fields that are read: `tests/data`.

use capsule_api::{Annotations, Billing, BlockId, BlockKind, ErrorKind, Fold, Limit, ToolSpec};
use capsule_transport_process::Ending;
use proptest::prelude::*;

use super::*;

fn catalogue() -> Arc<Catalogue> {
    let spec = |alias: &str| ToolSpec {
        name: format!("my {alias}"),
        alias: alias.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        annotations: Annotations::default(),
        longest: Duration::from_secs(60),
        largest: 1 << 20,
    };
    Arc::new(Catalogue {
        tools: ["echo", "slow", "fail", "read-file"].map(spec).into(),
    })
}

fn expected() -> Expected {
    Expected {
        catalogue: catalogue(),
        peer: "codex 0.171.0".into(),
        resumed: false,
        login: Login::ApiKey,
        requests: 50,
        code_mode: false,
    }
}

fn recorded(name: &str) -> String {
    let path = format!("{}/tests/data/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What came of a run.
struct Ran {
    said: Vec<Say>,
    returned: Vec<(String, String)>,
    outcome: Result<Outcome, Error>,
}

/// Plays a stream as the turn does, with the tools proven: to the first action that ends it, else to the exit.
fn play(expected: Expected, stream: &str, exit: i32) -> Ran {
    let mut reader = Reader::new(expected);
    let (mut said, mut returned, mut stopped) = (Vec::new(), Vec::new(), None);
    'lines: for line in stream.lines() {
        for action in reader.line(line) {
            match action {
                Action::Say(event) => said.push(event),
                Action::Opened => said.extend(reader.proven().into_iter().map(|action| match action {
                    Action::Say(event) => event,
                    other => panic!("{other:?}"),
                })),
                Action::Returned { call, told } => returned.push((call.to_string(), told)),
                Action::Stop(outcome) => {
                    stopped = Some(outcome);
                    break 'lines;
                }
                Action::Ended => break 'lines,
                Action::Last(_) => {
                    let which = Limit::Requests;
                    stopped = Some(Ok(Outcome::LimitReached { which }));
                    break 'lines;
                }
                Action::Request(_) | Action::Send(_) => {}
            }
        }
    }
    let outcome = stopped.unwrap_or_else(|| reader.outcome(&Ending::Exited(exit), ""));
    said.extend(reader.close().into_iter().filter_map(|action| match action {
        Action::Say(event) => Some(event),
        _ => None,
    }));
    Ran {
        said,
        returned,
        outcome,
    }
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
        ("one-call", "completed: The tool said what it said. Done."),
        ("two-calls-at-once", "completed: done"),
        ("status-429-once", "completed: second try fine"),
        ("cut-once", "completed: whole"),
        ("cut-after-a-block", "completed: whole"),
        ("cut-after-a-call", "completed: end"),
        ("unknown-tool", "completed: unknown done"),
        ("tool-failed", "completed: it failed, fine"),
        ("empty-answer", "completed: "),
        ("resumed", "completed: It is 17."),
        ("max-tokens", "truncated: half an ans"),
        ("content-filter", "refused: I cant"),
        ("status-400", "codex-bad-request"),
        ("status-401", "codex-auth"),
        ("status-403", "codex-auth"),
        ("status-404", "codex-model"),
        ("status-429", "codex-rate-limited"),
        ("status-500", "codex-overloaded"),
        ("status-503", "codex-overloaded"),
        ("status-529", "codex-overloaded"),
        ("quota", "codex-quota"),
        ("usage-limit", "codex-quota"),
        ("rate-limit-in-stream", "codex-rate-limited"),
        ("overloaded-in-stream", "codex-overloaded"),
        ("overloaded-after-a-call", "codex-overloaded"),
        ("context-full", "codex-context"),
        ("connection-dropped", "codex-network"),
        ("connection-refused", "codex-network"),
        ("bridge-down", "codex-tools"),
        ("session-missing", "codex-session-lost"),
        ("interrupted", "codex-failed"),
    ];
    let rows = table.map(|(name, _)| (name, row(&play(expected(), &recorded(name), 0).outcome)));
    assert_eq!(rows, table.map(|(name, row)| (name, row.to_owned())));
}

#[test]
fn p_01_the_providers_own_words_are_the_errors_message() {
    let error = play(expected(), &recorded("status-400"), 0).outcome.unwrap_err();
    assert_eq!(error.message, "bad request on purpose");
}

#[test]
fn m_01_nothing_is_passed_on_before_the_tools_are_proven() {
    let mut reader = Reader::new(expected());
    let mut stopped = None;
    for line in recorded("one-call").lines() {
        for action in reader.line(line) {
            match action {
                // The turn would prove the tools here.
                Action::Opened => {}
                Action::Stop(outcome) => stopped = stopped.or(Some(outcome)),
                other => assert!(stopped.is_some(), "{other:?} before the tools are proven"),
            }
        }
    }
    assert_eq!(row(&stopped.unwrap()), "codex-tools");
}

/// So many requests, each with the fake provider's counts.
fn usage(requests: u32) -> Say {
    let times = u64::from(requests);
    Say::Usage(Usage {
        input: 8 * times,
        cache_read: 3 * times,
        output: 7 * times,
        reasoning: 2 * times,
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

fn call(id: &str, name: &str, arguments: Value) -> [Say; 2] {
    let (call, name) = (CallId::new(id), name.to_owned());
    let started = Say::CallStarted {
        call: call.clone(),
        name: name.clone(),
    };
    [started, Say::Call { call, name, arguments }]
}

/// What comes of the first lines of a run on a subscription: the actions in short.
fn opened(lines: &[Value]) -> Vec<String> {
    let mut reader = Reader::new(Expected {
        login: Login::Subscription,
        ..expected()
    });
    let actions = lines
        .iter()
        .flat_map(|line| reader.line(&line.to_string()))
        .collect::<Vec<_>>();
    let short = actions.iter().map(|action| match action {
        Action::Opened => match reader.proven().first() {
            Some(Action::Say(Say::Started { billing, .. })) => format!("opened, billed to {billing:?}"),
            other => panic!("{other:?}"),
        },
        Action::Stop(Err(error)) => error.code.to_owned(),
        other => panic!("{other:?}"),
    });
    short.collect()
}

#[test]
fn p_13_a_run_on_a_subscription_goes_on_only_when_the_cli_says_that_it_uses_the_login() {
    let thread = json!({"id": protocol::THREAD, "result": {"thread": {"id": "t"}, "modelProvider": PROVIDER}});
    let auth = |method: Value| json!({"id": protocol::AUTH, "result": {"authMethod": method}});
    let refused = json!({"id": protocol::AUTH, "error": {"message": "method not found"}});
    let fine = "opened, billed to Subscription";
    for (lines, wanted) in [
        (vec![thread.clone()], vec![]),
        (vec![auth(json!("chatgpt"))], vec![]),
        (vec![thread.clone(), auth(json!("chatgpt"))], vec![fine]),
        (vec![auth(json!("chatgpt")), thread.clone()], vec![fine]),
        (vec![auth(json!("apikey")), thread.clone()], vec!["codex-billing"]),
        (vec![thread.clone(), auth(Value::Null)], vec!["codex-auth"]),
        (vec![thread, refused], vec!["codex-billing"]),
    ] {
        assert_eq!(opened(&lines), wanted, "{lines:?}");
    }
}

fn without_notes(said: Vec<Say>) -> Vec<Say> {
    said.into_iter()
        .filter(|event| !matches!(event, Say::Note { .. }))
        .collect()
}

fn started(resumed: bool) -> Say {
    Say::Started {
        model: Some("gpt-6.2-sol".into()),
        peer: Some("codex 0.171.0".into()),
        billing: Billing::ApiKey,
        resumed,
    }
}

#[test]
fn a_run_with_a_call_is_told_event_by_event() {
    let ran = play(expected(), &recorded("one-call"), 0);
    let (text, thinking) = (BlockKind::Text, BlockKind::Thinking);
    let id = ran.returned[0].0.clone();
    let [call_started, called] = call(&id, "my echo", json!({"text": "ping-1"}));
    let wanted = [
        started(false),
        Say::RequestStarted { n: 1 },
        delta(0, thinking, "I should call "),
        delta(0, thinking, "the echo tool."),
        whole(0, thinking, "I should call the echo tool."),
        delta(1, text, "Callin"),
        delta(1, text, "g echo."),
        whole(1, text, "Calling echo."),
        call_started,
        called,
        ended(1, "tool_call"),
        usage(1),
        Say::RequestStarted { n: 2 },
        delta(2, text, "The tool said wh"),
        delta(2, text, "at it said. Done."),
        whole(2, text, "The tool said what it said. Done."),
        ended(2, "end_turn"),
        usage(2),
    ];
    assert_eq!(without_notes(ran.said), wanted);
}

#[test]
fn a_thread_that_goes_on_tells_the_same_without_the_models_own_items() {
    let going_on = Expected {
        resumed: true,
        ..expected()
    };
    let ran = play(going_on, &recorded("resumed"), 0);
    let id = ran.returned[0].0.clone();
    let [call_started, called] = call(&id, "my echo", json!({"text": "17"}));
    let text = BlockKind::Text;
    let wanted = [
        started(true),
        Say::RequestStarted { n: 1 },
        delta(0, text, "I l"),
        delta(0, text, "ook."),
        whole(0, text, "I look."),
        call_started,
        called,
        ended(1, "tool_call"),
        usage(1),
        Say::RequestStarted { n: 2 },
        delta(1, text, "It i"),
        delta(1, text, "s 17."),
        whole(1, text, "It is 17."),
        ended(2, "end_turn"),
        usage(2),
    ];
    assert_eq!(without_notes(ran.said), wanted);
}

#[test]
fn what_a_cut_stream_had_said_is_taken_back_and_the_try_is_told() {
    for name in ["cut-once", "cut-after-a-block"] {
        let ran = play(expected(), &recorded(name), 0);
        assert_eq!(fold(&ran.said).texts(), ["whole"], "{name}");
        let requests = ran
            .said
            .iter()
            .filter(|event| matches!(event, Say::RequestStarted { .. }));
        assert_eq!(requests.collect::<Vec<_>>(), [&Say::RequestStarted { n: 1 }], "{name}");
        let retry = Say::Retrying {
            attempt: 1,
            after: Duration::ZERO,
            cause: ErrorKind::Network,
        };
        assert!(ran.said.contains(&retry), "{name}: {:#?}", ran.said);
    }
}

#[test]
fn a_call_that_ran_before_its_answer_was_cut_stays() {
    let ran = play(expected(), &recorded("cut-after-a-call"), 0);
    let fold = fold(&ran.said);
    let arguments: Vec<_> = fold
        .calls()
        .into_iter()
        .map(|call| call.arguments["text"].clone())
        .collect();
    assert_eq!(arguments, ["first try", "second try"]);
    assert_eq!(fold.texts(), ["again", "end"]);
}

#[test]
fn calls_of_one_answer_are_told_once_each_and_in_the_models_order() {
    let ran = play(expected(), &recorded("two-calls-at-once"), 0);
    let fold = fold(&ran.said);
    let names: Vec<_> = fold.calls().into_iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["my slow", "my echo"]);
    assert_eq!(ran.returned.len(), 2);
}

#[test]
fn m_02_a_call_that_the_cli_answers_itself_is_reported() {
    let ran = play(expected(), &recorded("unknown-tool"), 0);
    let told: Vec<_> = ran.returned.iter().map(|(_, told)| told.as_str()).collect();
    assert_eq!(told, ["unsupported call: no_such_tool"]);
    assert_eq!(fold(&ran.said).calls()[0].name, "no_such_tool");
}

#[test]
fn the_models_name_of_a_tool_is_turned_back_into_the_declared_one() {
    let stream = recorded("one-call").replace(r#""name":"echo""#, r#""name":"read_file""#);
    let ran = play(expected(), &stream, 0);
    assert_eq!(fold(&ran.said).calls()[0].name, "my read-file");
}

#[test]
fn scripts_of_code_mode_are_no_calls_but_what_they_call_is() {
    let code_mode = Expected {
        code_mode: true,
        ..expected()
    };
    let ran = play(code_mode, &recorded("code-mode"), 0);
    assert_eq!(row(&ran.outcome), "completed: The tool said what it said. Done.");
    let fold = fold(&ran.said);
    let names: Vec<_> = fold.calls().into_iter().map(|call| call.name.as_str()).collect();
    assert_eq!((names, ran.returned.len()), (vec!["my echo"], 1));
}

#[test]
fn the_limit_on_requests_ends_the_turn_with_the_last_requests_calls() {
    for (name, resumed) in [("one-call", false), ("resumed", true)] {
        let limited = Expected {
            requests: 1,
            resumed,
            ..expected()
        };
        let ran = play(limited, &recorded(name), 0);
        assert_eq!(row(&ran.outcome), "limit: requests", "{name}");
        assert_eq!(fold(&ran.said).calls().len(), 1, "{name}");
        let requests = ran
            .said
            .iter()
            .filter(|event| matches!(event, Say::RequestStarted { .. }));
        assert_eq!(requests.count(), 1, "{name}");
    }
}

#[test]
fn p_02_a_reconnect_that_succeeds_is_a_completed_run() {
    let ran = play(expected(), &recorded("status-429-once"), 0);
    assert_eq!(row(&ran.outcome), "completed: second try fine");
    let retry = Say::Retrying {
        attempt: 1,
        after: Duration::ZERO,
        cause: ErrorKind::RateLimited,
    };
    assert!(ran.said.contains(&retry), "{:#?}", ran.said);
}

#[test]
fn p_03_exit_and_terminal_event_count_together() {
    let good = recorded("one-call");
    let (before, _) = good.trim_end().rsplit_once('\n').unwrap();
    let answer = "completed: The tool said what it said. Done.";
    for (stream, ending, wanted) in [
        (good.as_str(), Ending::Exited(0), answer),
        (good.as_str(), Ending::Stayed, answer),
        (good.as_str(), Ending::Exited(1), "codex-exit"),
        (good.as_str(), Ending::Died("signal 9".into()), "codex-exit"),
        (&recorded("status-503"), Ending::Exited(0), "codex-overloaded"),
        (before, Ending::Exited(0), "codex-no-result"),
        ("", Ending::Exited(0), "codex-no-result"),
    ] {
        let mut reader = Reader::new(expected());
        for line in stream.lines() {
            let opened = reader.line(line).iter().any(|action| matches!(action, Action::Opened));
            if opened {
                reader.proven();
            }
        }
        assert_eq!(row(&reader.outcome(&ending, "")), wanted, "{ending:?}");
    }
    let reader = Reader::new(expected());
    let error = reader.outcome(&Ending::Exited(7), "panic at the end").unwrap_err();
    assert_eq!(error.message, "the CLI ended without a terminal event (exit status 7)");
    assert_eq!(
        error.context,
        [("stderr", "panic at the end".into()), ("exit", "7".into())]
    );
}

#[test]
fn p_18_a_switch_that_the_cli_does_not_know_is_named_with_its_version() {
    let reader = Reader::new(expected());
    let error = reader
        .outcome(&Ending::Exited(1), "Error: Unknown feature flag: unified_exec")
        .unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            "codex-config",
            "codex 0.171.0: Error: Unknown feature flag: unified_exec"
        )
    );
}

fn opening(more: &[Value]) -> String {
    let thread = json!({"id": 1, "result": {"thread": {"id": "t"}, "model": "m", "modelProvider": "capsule"}});
    let turn = json!({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u"}}});
    let lines = [thread, turn].into_iter().chain(more.iter().cloned());
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn p_19_a_remark_is_told_and_an_ignored_key_ends_the_run() {
    let remark = |summary: &str| json!({"method": "configWarning", "params": {"summary": summary}});
    let harmless = play(expected(), &opening(&[remark("no bubblewrap")]), 0);
    assert!(harmless.said.iter().any(|event| matches!(
        event,
        Say::Note {
            code: "codex-remark",
            ..
        }
    )));
    let warned = json!({"method": "warning", "params": {"message": "Model metadata not found"}});
    let warned = play(expected(), &opening(&[warned]), 0);
    assert!(warned.said.iter().any(|event| matches!(
        event,
        Say::Warning {
            code: "codex-warning",
            ..
        }
    )));
    let ignored = play(
        expected(),
        &opening(&[remark("ignoring unrecognized configuration `web_search`")]),
        0,
    );
    assert_eq!(row(&ignored.outcome), "codex-config");
}

#[test]
fn p_19_work_of_the_clis_own_ends_the_run() {
    let item = json!({"type": "commandExecution", "id": "i", "command": "id"});
    let ran = json!({"method": "item/started", "params": {"threadId": "t", "turnId": "u", "item": item}});
    assert_eq!(row(&play(expected(), &opening(&[ran]), 0).outcome), "codex-tools");
}

#[test]
fn p_13_another_provider_than_the_manifests_is_refused() {
    let thread = json!({"id": 1, "result": {"thread": {"id": "t"}, "model": "m", "modelProvider": "openai"}});
    assert_eq!(row(&play(expected(), &thread.to_string(), 0).outcome), "codex-billing");
}

#[test]
fn a_completed_turn_without_a_model_request_is_no_answer() {
    let turn = json!({"id": "u", "status": "completed"});
    let over = json!({"method": "turn/completed", "params": {"threadId": "t", "turn": turn}});
    assert_eq!(row(&play(expected(), &opening(&[over]), 0).outcome), "codex-not-asked");
}

#[test]
fn what_the_cli_asks_is_refused_and_told() {
    let mut reader = Reader::new(expected());
    reader.proven();
    let asked = json!({"id": 7, "method": "item/tool/requestUserInput", "params": {}});
    let actions = reader.line(&asked.to_string());
    let Some(Action::Send(line)) = actions.first() else {
        panic!("{actions:?}");
    };
    let answer: Value = serde_json::from_slice(line).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32601)));
    assert!(matches!(
        &actions[1],
        Action::Say(Say::Warning {
            code: "codex-asked",
            ..
        })
    ));
}

#[test]
fn p_16_banners_unknown_events_and_two_objects_on_a_line_do_not_stop_the_reader() {
    let stream = recorded("one-call");
    let mut odd = String::from("Welcome to the CLI!\n{\"method\":\"sparkle\"}\n{\"method\":\"sparkle\"}\n[1,2]\n");
    // Two lines joined into one.
    odd.push_str(&stream.replacen('\n', "", 1));
    let ran = play(expected(), &odd, 0);
    assert_eq!(row(&ran.outcome), "completed: The tool said what it said. Done.");
    let notes: Vec<_> = ran
        .said
        .iter()
        .filter_map(|event| match event {
            Say::Note { code, data } if *code != "codex-remark" => Some((*code, data.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(
        notes,
        [
            ("codex-junk", json!({"first": "Welcome to the CLI!"})),
            ("codex-junk", json!({"lines": 2})),
            ("codex-unknown-events", json!({"sparkle": 2})),
        ]
    );
}

proptest! {
    #[test]
    fn any_line_is_read_without_a_panic(lines in prop::collection::vec(".{0,60}", 0..6)) {
        let mut reader = Reader::new(expected());
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
        let ran = play(expected(), &kept.join("\n"), 0);
        prop_assert!(ran.outcome.is_err());
    }
}
