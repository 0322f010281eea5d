//! `capsule run` on the transport `http`, against a provider that speaks real HTTP.

use capsule_fakes::{Answer, Close, Position, Reply, Script};
use serde_json::json;

use crate::{
    peer::{KEY, Peer, refusing_proxy},
    support::{Sandbox, kinds, lines},
};

#[test]
fn a_model_calls_a_tool_and_answers() {
    let script = Script::new()
        .then(Reply::text("Calling.").call("call-1", "hello", json!({"name": "Ada"})))
        .then(Reply::text("It said hello."));
    let peer = Peer::start(script);
    let sandbox = peer.hello();
    let ran = sandbox.run(&["run", "hello", "-t", "Greet Ada"]).code(0);
    assert_eq!(ran.answer(), "It said hello.");
    let address = peer.provider().address().to_string();
    insta::assert_snapshot!(sandbox.filtered(&ran.err.replace(&address, "ADDRESS")), @r#"
    ● hello 0.1.0 on http
      claude-sonnet-4-5 · anthropic at ADDRESS · billed to the API key
    → hello {"name":"Ada"}
    ✓ hello N ms 11 bytes
    2 requests · 1 tool call · 22 tokens in, 14 out · trace DIR/state/capsule/hello/runs/ID/trace.jsonl
    "#);
    let requests = peer.provider().requests();
    assert_eq!(requests[0].key(), Some(KEY));
    assert_eq!(requests[1].blocks("tool_result").len(), 1);
    peer.assert_clean();
}

#[test]
fn a_kept_conversation_goes_on_in_the_next_process() {
    let script = Script::new()
        .then(Reply::text("Nice to meet you, Ada."))
        .then(Reply::text("You are Ada."));
    let peer = Peer::start(script);
    let sandbox = peer.hello();
    let run = |task: &str| sandbox.run(&["run", "hello", "--continue", "talk", "-t", task]).code(0);
    run("I am Ada.");
    assert_eq!(run("Who am I?").answer(), "You are Ada.");
    let said: Vec<_> = peer.provider().requests()[1]
        .messages()
        .iter()
        .map(|message| (message["role"].clone(), message["content"].to_string()))
        .collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].1.contains("I am Ada."), "{said:?}");
    assert!(said[1].1.contains("Nice to meet you, Ada."), "{said:?}");
    assert!(said[2].1.contains("Who am I?"), "{said:?}");

    sandbox
        .run(&["run", "hello", "--continue", "talk", "--transport", "echo", "-t", "x"])
        .code(1)
        .says(&["`talk`", "http", "hint:"]);
    sandbox
        .run(&["run", "hello", "--continue", "../up", "-t", "x"])
        .code(2)
        .says(&["`../up`", "hint:"]);
    peer.assert_clean();
}

#[test]
fn a_context_in_use_is_not_taken_by_a_second_run() {
    let peer = Peer::start(Script::new().then(Reply::text("At last.").hang()));
    let sandbox = peer.hello();
    let talk = ["run", "hello", "--continue", "talk", "-t", "x"];
    let first = sandbox.spawn(&talk);
    peer.wait_until_hanging(1);
    sandbox
        .run(&talk)
        .code(2)
        .says(&["another run is using the context `talk`", "hint:"]);
    peer.provider().gate().open();
    let first = crate::support::Ran::of(&first.wait_with_output().unwrap()).code(0);
    assert_eq!(first.answer(), "At last.");
    peer.assert_clean();
}

#[test]
fn an_answer_that_is_none_has_its_exit_code_and_says_so() {
    let call = || Reply::new().call("call-1", "hello", json!({"name": "Ada"}));
    type Case = (Script, &'static [&'static str], i32, &'static [&'static str]);
    let cases: [Case; 4] = [
        (
            Script::new().then(call()),
            &["--set", "inference.max_turns=1"],
            5,
            &["a limit ended the run", "inference.max_turns"],
        ),
        (
            Script::new().then(Reply::text("I will not.").stop("refusal")),
            &[],
            6,
            &["the model refused", "I will not."],
        ),
        (
            Script::new().then(Reply::text("Half of").stop("max_tokens")),
            &[],
            6,
            &["not an answer", "Half of", "inference.max_tokens"],
        ),
        (
            Script::new().then(Reply::text("x").stop("no_such_reason")),
            &[],
            1,
            &["no_such_reason", "anthropic-stop-unknown"],
        ),
    ];
    for (script, flags, code, said) in cases {
        let peer = Peer::start(script);
        let ran = peer
            .hello()
            .run(&[&["run", "hello", "-t", "x"], flags].concat())
            .code(code);
        assert_eq!(ran.says(said).out, "", "no answer on standard output");
        peer.assert_clean();
    }
}

#[test]
fn a_provider_that_fails_is_told_with_what_to_do() {
    let text = || Reply::text("It said hello to all of them.");
    type Case = (Script, &'static [&'static str]);
    let cases: [Case; 7] = [
        (
            Script::new().then(Answer::html(200, "<html>Sign in to the network</html>")),
            &["http-not-a-stream", "text/html", "hint:"],
        ),
        (
            Script::new().then(Answer::html(502, "<html>Bad gateway</html>")),
            &["502", "hint:"],
        ),
        (
            Script::new().then(text().cut(Position::Events(4), Close::Reset)),
            &["net-body", "hint:"],
        ),
        (
            Script::new().then(text().cut(Position::Events(4), Close::EndOfBody)),
            &["http-stream-cut", "hint:"],
        ),
        (
            Script::new().then(Answer::error(401, "invalid x-api-key")),
            &["invalid x-api-key", "anthropic-auth", "inference.api_key"],
        ),
        (
            Script::new().then(Answer::error(404, "model: nope")),
            &["model: nope", "anthropic-not-found", "inference.model"],
        ),
        (
            Script::new().then(Answer::error(529, "Overloaded")),
            &["anthropic-overloaded", "hint:"],
        ),
    ];
    for (script, said) in cases {
        let peer = Peer::start(script);
        let sandbox = peer.hello();
        let ran = sandbox.run(&["run", "hello", "-t", "x"]).code(1).says(said);
        assert_eq!(ran.out, "", "{said:?}");
        let trace = sandbox.trace();
        let end = trace.last().unwrap();
        assert_eq!(
            (&end["kind"], &end["outcome"]["is"]),
            (&json!("run_end"), &json!("failed"))
        );
        assert_eq!(sandbox.leftovers(), [] as [std::path::PathBuf; 0]);
        peer.assert_clean();
    }
}

#[test]
fn an_endpoint_where_nobody_listens_is_named() {
    let peer = Peer::start(Script::new());
    let sandbox = peer.hello();
    let address = peer.provider().address().to_string();
    peer.assert_clean();
    sandbox
        .run(&["run", "hello", "-t", "x"])
        .code(1)
        .says(&[&address, "hint:"]);
}

#[test]
fn a_server_of_this_machine_that_does_not_run_is_told_at_the_first_retry_and_given_up_at_the_second_try() {
    let peer = Peer::start(Script::new());
    let address = peer.provider().address().to_string();
    peer.assert_clean();
    let sandbox = Sandbox::new().with_hello();
    let endpoint = format!("inference.endpoint=http://{address}");
    let retry = "inference.retry={max_retries: 6, initial_delay: 1ms, max_delay: 1ms}";
    let ask = [
        "run", "hello", "--driver", "ollama", "--model", "m", "-t", "x", "--set", &endpoint, "--set", retry,
    ];
    let ran = sandbox
        .run(&ask)
        .code(1)
        .says(&[&address, "net-connect", "ollama serve"]);
    assert!(!ran.err.contains("billed"), "{ran:#?}");
    let (before, _) = ran.err.split_once("try 2 in").unwrap();
    assert!(before.contains("Connection refused"), "{ran:#?}");
    assert!(!ran.err.contains("try 3 in"), "{ran:#?}");

    let records = lines(&sandbox.run(&[&ask[..], &["--json"]].concat()).code(1).out);
    let told = kinds(&records)
        .into_iter()
        .filter(|kind| ["warning", "retry"].contains(kind));
    assert_eq!(told.collect::<Vec<_>>(), ["warning", "retry"]);
    let warning = records.iter().find(|record| record["kind"] == "warning").unwrap();
    assert_eq!(warning["code"], "net-connect");
}

#[test]
fn a_key_that_the_driver_needs_is_said_to_be_the_drivers_with_how_it_is_given() {
    let sandbox = Sandbox::new();
    for (inference, said) in [
        (
            "driver: anthropic",
            [
                "the key `api_key` is missing; the driver `anthropic` needs it",
                "`api_key: ${ANTHROPIC_API_KEY}`",
                "--set 'inference.api_key=${ANTHROPIC_API_KEY}'",
            ],
        ),
        (
            "driver: cassette",
            [
                "the key `tape` is missing; the driver `cassette` needs it",
                "`tape: tape.json`",
                "--set 'inference.tape=tape.json'",
            ],
        ),
        (
            "driver: component, endpoint: https://api.test/v1",
            [
                "the key `component` is missing; the driver `component` needs it",
                "`component: drivers/",
                "hint:",
            ],
        ),
        (
            "driver: component, component: a.wasm",
            [
                "the key `endpoint` is missing; the driver `component` needs it",
                "`endpoint: https://",
                "hint:",
            ],
        ),
        (
            "max_turns: 3",
            [
                "the key `driver` is missing; the transport `http` needs it",
                "It is one of `anthropic`, `cassette`, `component`, `ollama`, `openai`, `openai-responses`.",
                "hint:",
            ],
        ),
    ] {
        let manifest = format!("name: t\nversion: 0.1.0\ninference: {{transport: http, model: m, {inference}}}\n");
        sandbox.write("t/capsule.yaml", manifest);
        sandbox.run(&["run", "t", "-t", "x"]).code(2).says(&said);
    }
    sandbox.write(
        "t/capsule.yaml",
        "name: t\nversion: 0.1.0\ninference: {transport: http, model: m, driver: anthropic}\n",
    );
    let looked = sandbox.run(&["doctor", "t"]);
    for said in [
        "the driver `anthropic` needs `api_key`",
        "api_key: ${ANTHROPIC_API_KEY}",
    ] {
        assert!(looked.out.contains(said), "{looked:#?}");
    }
}

#[test]
fn a_retry_is_seen_and_text_that_was_taken_back_is_not_part_of_the_answer() {
    let script = Script::new()
        .then(Reply::text("Wrong start").cut(Position::Events(5), Close::Reset))
        .then(Reply::text("The right answer."));
    let peer = Peer::start(script);
    let sandbox = Sandbox::new().with_hello().env("ANTHROPIC_API_KEY", KEY);
    peer.configure(&sandbox, "");
    let retry = "inference.retry={max_retries: 1, initial_delay: 1ms, max_delay: 1ms}";
    let ran = sandbox
        .run(&["run", "hello", "-t", "x", "--json", "--set", retry])
        .code(0);
    let records = lines(&ran.out);
    assert!(kinds(&records).contains(&"retry"));
    assert!(kinds(&records).contains(&"retracted"));
    assert_eq!(
        records.last().unwrap()["outcome"],
        json!({"is": "completed", "text": "The right answer."})
    );
    peer.assert_clean();
}

#[test]
fn the_model_of_the_flag_is_the_one_that_is_asked() {
    let peer = Peer::start(Script::new().then(Reply::text("Yes.")));
    peer.hello()
        .run(&["run", "hello", "-t", "x", "--model", "another-model"])
        .code(0);
    assert_eq!(peer.provider().requests()[0].body["model"], "another-model");
    peer.assert_clean();
}

#[test]
fn the_proxy_of_the_environment_is_asked_for_the_provider_and_sees_no_key() {
    let (proxy, asked) = refusing_proxy();
    let peer = Peer::start(Script::new());
    let sandbox = peer.hello().env("HTTPS_PROXY", proxy);
    let endpoint = "inference.endpoint=https://api.test";
    let ran = sandbox.run(&["run", "hello", "-t", "x", "--set", endpoint]).code(1);
    assert!(!ran.err.contains("hunter2"), "{ran:?}");
    ran.says(&["net-proxy", "refused the connection to `api.test:443` with status 403"]);
    let asked = asked.join().unwrap();
    assert!(asked.starts_with("CONNECT api.test:443 HTTP/1.1\r\n"), "{asked}");
    assert!(!asked.contains(KEY), "{asked}");
    peer.assert_clean();
}
