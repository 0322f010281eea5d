//! A driver that is a component: the real one in the sandbox, against a provider that speaks real HTTP.

use std::{fs, sync::Arc};

use capsule_api::{Registry, Services, Settings, SystemClock, TransportDescriptor, async_trait};
use capsule_fakes::{Answer, ApiError, Close, Position, Provider, Reply, Script, Usage};
use capsule_net::NetClient;
use capsule_tools::SandboxComponents;
use capsule_transport_kit::{Fixture, NoSecrets, Script as KitScript, Stage, assert_conforms};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::{
    peer::{KEY, Peer, refusing_proxy},
    support::{ROOT, Ran, Sandbox, copy, files, lines, prebuilt},
};

/// The capsule `hello` on the shipped driver component, asking this provider; `more` are further lines of `inference`.
fn capsule(peer: &Peer, more: &str) -> Sandbox {
    let sandbox = Sandbox::new().with_hello().env("ACME_KEY", KEY);
    let wasm = fs::read(prebuilt("chat-driver.wasm")).unwrap();
    sandbox.write("hello/drivers/acme.wasm", wasm);
    configure(&sandbox, &peer.provider().url(), more);
    sandbox
}

fn configure(sandbox: &Sandbox, url: &str, more: &str) {
    let manifest = format!(
        "name: hello\nversion: 0.1.0\ndescription: Greets.\n\
         tools:\n  - {{name: hello, component: tools/hello.wasm}}\n  - {{name: read-file, component: tools/read-file.wasm}}\n\
         inference:\n  transport: http\n  driver: component\n  component: drivers/acme.wasm\n  model: acme-1\n  \
         endpoint: {url}/v1\n  api_key: ${{ACME_KEY}}\n  \
         retry: {{max_retries: 1, initial_delay: 1ms, max_delay: 2ms}}\n{more}"
    );
    sandbox.write("hello/capsule.yaml", manifest);
}

const RUN: [&str; 4] = ["run", "hello", "-t", "Greet Ada"];

/// Nothing that the run left has the key in it.
#[track_caller]
fn assert_no_key(sandbox: &Sandbox, ran: &Ran) {
    assert!(!format!("{ran:?}").contains(KEY));
    for file in files(&sandbox.path("state")) {
        let content = fs::read(&file).unwrap();
        let found = content.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "{}", file.display());
    }
}

#[test]
fn a_model_behind_a_component_calls_a_tool_and_answers() {
    let usage = Usage {
        input_tokens: 12,
        output_tokens: 5,
        ..Usage::default()
    };
    let script = Script::new()
        .then(
            Reply::text(["Call", "ing."].as_slice())
                .call("call-1", "hello", json!({"name": "Ada"}))
                .usage(usage),
        )
        .then(Reply::text("It said hello.").usage(usage));
    let peer = Peer::start(script);
    let sandbox = capsule(&peer, "");
    let ran = sandbox.run(&RUN).code(0);
    assert_eq!(ran.answer(), "It said hello.");
    let address = peer.provider().address().to_string();
    insta::assert_snapshot!(sandbox.filtered(&ran.err.replace(&address, "ADDRESS")), @r#"
    ● hello 0.1.0 on http
      acme-1 · component at ADDRESS · billed to the API key
    → hello {"name":"Ada"}
    ✓ hello N ms 11 bytes
    2 requests · 1 tool call · 24 tokens in, 10 out · trace DIR/state/capsule/hello/runs/ID/trace.jsonl
    "#);
    let requests = peer.provider().requests();
    let asked: Vec<_> = requests
        .iter()
        .map(|request| (request.path.as_str(), request.key()))
        .collect();
    assert_eq!(asked, [("/v1/chat/completions", Some(KEY)); 2]);
    assert_eq!(requests[1].results(), [("call-1".to_owned(), "Hello, Ada!".to_owned())]);
    assert_no_key(&sandbox, &ran);
    peer.assert_clean();
}

#[test]
fn a_run_that_was_recorded_plays_without_component_and_provider_to_the_same_trace() {
    let script = Script::new()
        .then(Reply::text("Calling.").call("call-1", "hello", json!({"name": "Ada"})))
        .then(Reply::text("It said hello."));
    let peer = Peer::start(script);
    let sandbox = capsule(&peer, "");
    let traced = ["--set", "trace.capture=content", "--trace", "run.jsonl"];
    let run = |more: &[&str]| sandbox.run(&[&RUN[..], &traced, more].concat()).code(0);
    // The trace without ids, times, and who was asked. Numbers have gaps where text was streamed, which the tape does not hold.
    let story = || {
        let mut records = lines(&fs::read_to_string(sandbox.work("run.jsonl")).unwrap());
        for record in &mut records {
            let fields = record.as_object_mut().unwrap();
            for field in ["ts", "seq", "task", "ms", "peer", "billed"] {
                fields.remove(field);
            }
        }
        records
    };
    run(&["--record", "tape.json"]);
    let recorded = story();
    peer.assert_clean();
    fs::remove_file(sandbox.work("hello/drivers/acme.wasm")).unwrap();
    assert_eq!(run(&["--replay", "tape.json"]).answer(), "It said hello.");
    assert_eq!(story(), recorded);

    let text = fs::read_to_string(sandbox.work("tape.json")).unwrap();
    assert!(!text.contains(KEY), "{text}");
    let tape: Value = serde_json::from_str(&text).unwrap();
    let usage = json!({
        "input_tokens": 11, "output_tokens": 7, "cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0,
    });
    assert_eq!(tape["entries"][0]["response"]["usage"], usage, "{text}");
    let schema = fs::read_to_string(format!("{ROOT}/docs/tape.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&tape), "{text}");
}

/// What comes of a script: exit code, and what is said beside it.
fn ends(script: Script, more: &str, code: i32, said: &[&str]) {
    let peer = Peer::start(script);
    let sandbox = capsule(&peer, more);
    let ran = sandbox.run(&RUN).code(code).says(said);
    assert_eq!(ran.out, "", "no answer on standard output");
    assert_no_key(&sandbox, &ran);
    peer.assert_clean();
}

#[test]
fn h_02_an_answer_that_is_cut_each_time_is_none() {
    let cut = || Reply::text("Half of").cut(Position::Content, Close::EndOfBody);
    let script = Script::new().then(cut()).then(cut());
    ends(script, "", 1, &["component-network", "before the answer was complete"]);
}

#[test]
fn h_03_half_a_call_is_never_run() {
    let half = |stop| {
        Reply::new()
            .call_pieces("call-1", "hello", &["{\"name\": \"A"])
            .stop(stop)
    };
    let said = ["http-call-incomplete", "was not run"];
    ends(Script::new().then(half("tool_calls")), "", 1, &said);
    ends(Script::new().then(half("length")), "", 6, &["not an answer"]);
}

#[test]
fn h_10_a_refusal_is_one_and_an_unknown_reason_is_named() {
    let refused = Reply::text("I will not.").stop("content_filter");
    ends(Script::new().then(refused), "", 6, &["the model refused"]);
    let said = ["no_such_reason", "component-stop-unknown"];
    ends(
        Script::new().then(Reply::text("x").stop("no_such_reason")),
        "",
        1,
        &said,
    );
}

#[test]
fn failures_of_the_provider_keep_their_class() {
    let busy = || Answer::error(503, "busy");
    let said = ["component-transient", "status 503: busy"];
    ends(Script::new().then(busy()).then(busy()), "", 1, &said);
    let said = ["component-auth", "no such key"];
    ends(Script::new().then(Answer::error(401, "no such key")), "", 1, &said);
}

#[test]
fn h_02_a_failure_that_may_pass_is_tried_again_and_what_was_said_is_taken_back() {
    let script = Script::new()
        .then(Reply::text("Wrong").cut(Position::Content, Close::EndOfBody))
        .then(Reply::text("Right."));
    let peer = Peer::start(script);
    let ran = capsule(&peer, "").run(&RUN).code(0);
    assert_eq!(ran.answer(), "Right.");
    peer.assert_clean();
    let broken = Reply::text("Wrong").error_event(2, ApiError::overloaded());
    let peer = Peer::start(Script::new().then(broken).then(Reply::text("Right.")));
    assert_eq!(capsule(&peer, "").run(&RUN).code(0).answer(), "Right.");
    peer.assert_clean();
}

/// The results that the provider is sent for an answer with these calls of `hello`: ids and texts.
fn results(answer: Reply) -> Vec<(String, String)> {
    let peer = Peer::start(Script::new().then(answer).then(Reply::text("Done.")));
    let sandbox = capsule(&peer, "");
    assert_eq!(sandbox.run(&RUN).code(0).answer(), "Done.");
    let results = peer.provider().requests()[1].results();
    peer.assert_clean();
    results
}

#[test]
fn h_05_calls_win_over_a_stop() {
    let answer = Reply::new().call("c1", "hello", json!({"name": "Ada"})).stop("stop");
    assert_eq!(results(answer), [("c1".to_owned(), "Hello, Ada!".to_owned())]);
}

#[test]
fn h_12_calls_of_one_id_get_ids_of_their_own() {
    let answer =
        Reply::new()
            .call("same", "hello", json!({"name": "Ada"}))
            .call("same", "hello", json!({"name": "Bob"}));
    let results = results(answer);
    let texts: Vec<_> = results.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["Hello, Ada!", "Hello, Bob!"]);
    assert!(results[0].0 != results[1].0, "{results:?}");
}

#[test]
fn h_11_counts_are_added_over_requests_and_those_of_the_cache_stand_apart() {
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 5,
        cache_read_input_tokens: 4,
        ..Usage::default()
    };
    let call = Reply::new().call("c1", "hello", json!({"name": "Ada"})).usage(usage);
    let peer = Peer::start(Script::new().then(call).then(Reply::text("Done.").usage(usage)));
    let sandbox = capsule(&peer, "");
    sandbox.run(&RUN).code(0);
    let trace = sandbox.trace();
    let last = trace.iter().rfind(|record| record["kind"] == "usage").unwrap();
    let counts = ["input", "output", "cache_read", "requests"].map(|name| last[name].as_u64().unwrap());
    assert_eq!(counts, [20, 10, 8, 2]);
    peer.assert_clean();
}

#[test]
fn h_15_a_redirect_is_not_followed_and_the_key_goes_nowhere_else() {
    let other = Peer::start(Script::new());
    let elsewhere = format!("{}/v1/chat/completions", other.provider().url());
    let redirect = Answer::error(307, "over there").header("location", &elsewhere);
    ends(
        Script::new().then(redirect),
        "",
        1,
        &["component-bad-request", "status 307"],
    );
    assert_eq!(other.provider().requests().len(), 0);
    other.assert_clean();
}

#[test]
fn the_proxy_of_the_environment_is_asked_for_a_component_too_and_sees_no_key() {
    let (proxy, asked) = refusing_proxy();
    let peer = Peer::start(Script::new());
    let sandbox = capsule(&peer, "").env("HTTPS_PROXY", proxy);
    configure(&sandbox, "https://api.test", "");
    let ran = sandbox.run(&RUN).code(1);
    assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    let asked = asked.join().unwrap();
    assert!(asked.starts_with("CONNECT api.test:443 HTTP/1.1\r\n"), "{asked}");
    assert!(!asked.contains(KEY), "{asked}");
    assert_no_key(&sandbox, &ran);
    peer.assert_clean();
}

#[test]
fn a_component_that_runs_into_its_limits_ends_the_run_with_their_names() {
    let script = || Script::new().then(Reply::text("x".repeat(20_000)));
    let body = "  component_limits: {http_body: 8KiB}\n";
    ends(script(), body, 1, &["component-limit", "`limits.http_body`"]);
    let output = "  component_limits: {output: 1KiB}\n";
    ends(script(), output, 1, &["component-limit", "returned"]);
}

#[test]
fn ctrl_c_ends_a_component_that_waits_for_its_provider() {
    let peer = Peer::start(Script::new().then(Reply::text("A long story").stall(Position::Events(2))));
    let sandbox = capsule(&peer, "");
    let child = sandbox.spawn(&RUN);
    peer.wait_until_hanging(1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran = Ran::of(&child.wait_with_output().unwrap()).code(130);
    assert_eq!(ran.out, "");
    let trace = sandbox.trace();
    assert_eq!(trace.last().unwrap()["outcome"], json!({"is": "cancelled"}));
    assert_eq!(sandbox.leftovers(), [] as [std::path::PathBuf; 0]);
    peer.provider().gate().open();
}

#[test]
fn doctor_says_what_the_driver_may_do() {
    let peer = Peer::start(Script::new());
    let sandbox = capsule(&peer, "");
    let ran = sandbox.run(&["doctor", "hello"]).code(0);
    let host = peer.provider().url();
    for said in [
        "acme.wasm\n",
        &format!(
            "may: send HTTP requests to {host}; have requests to {host} carry the secret api_key in the header `authorization`, without seeing it"
        ),
        "limits: a call takes at most 10m",
    ] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    assert_eq!(peer.provider().requests().len(), 0);
    fs::remove_file(sandbox.work("hello/drivers/acme.wasm")).unwrap();
    let gone = sandbox.run(&["doctor", "hello"]).code(3);
    assert!(
        gone.out.contains("acme.wasm): the component cannot be read"),
        "{}",
        gone.out
    );
    peer.assert_clean();
}

#[test]
fn the_example_runs_on_its_provider_and_its_tape_is_that_run() {
    let greet = |name: &str, language: &str| json!({"name": name, "language": language});
    let usage = |input_tokens, output_tokens| Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    };
    let script = Script::new()
        .then(
            Reply::text(["Let me ", "see who ", "is here."].as_slice())
                .call("call-1", "read-file", json!({"path": "/notes/guests.md"}))
                .usage(usage(640, 58)),
        )
        .then(
            Reply::new()
                .call("call-2", "hello", greet("Amélie", "French"))
                .call("call-3", "hello", greet("Kenji", "Japanese"))
                .usage(usage(735, 74)),
        )
        .then(Reply::text(["Bonjour, ", "Amélie !\n", "こんにちは、Kenjiさん！"].as_slice()).usage(usage(840, 22)));
    let peer = Peer::start(script);
    let sandbox = Sandbox::new().env("ENDPOINT", format!("{}/v1", peer.provider().url()));
    let (from, at) = (
        format!("{ROOT}/plugins/capsules/component-driver"),
        sandbox.work("example"),
    );
    copy(std::path::Path::new(&from), &at);
    let ran = sandbox.run(&["run", "example", "--record", "tape.json"]).code(0);
    assert_eq!(ran.answer(), "Bonjour, Amélie !\nこんにちは、Kenjiさん！");
    peer.assert_clean();
    let recorded = fs::read_to_string(sandbox.work("tape.json")).unwrap();
    let committed = format!("{from}/tapes/guests.json");
    if std::env::var_os("UPDATE_TAPES").is_some_and(|value| value == "1") {
        fs::write(&committed, &recorded).unwrap();
    }
    let committed = fs::read_to_string(&committed).unwrap();
    assert_eq!(committed, recorded, "run it again with UPDATE_TAPES=1");
}

/// A driver of the old kind: WASI's environment, no stream, no network. Its answer is its environment.
fn dumps_environment() -> Vec<u8> {
    let answer = r#"{"stop_reason":"end_turn","content":[{"type":"text","text":""#;
    let (escaped, length) = (answer.replace('"', "\\22"), answer.len());
    let wat = format!(
        r#"(module
  (import "wasi:cli/environment@0.2.3" "get-environment" (func $environment (param i32)))
  (memory (export "memory") 1)
  (global $top (mut i32) (i32.const 8192))
  (global $out (mut i32) (i32.const 2048))
  (data (i32.const 64) "{escaped}") (data (i32.const 256) "\22}}]}}") (data (i32.const 272) "=;")
  (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (global.get $top)
    (global.set $top (i32.and (i32.const -8)
      (i32.add (i32.const 7) (i32.add (global.get $top) (local.get $size))))))
  (func $put (param $from i32) (param $n i32)
    (memory.copy (global.get $out) (local.get $from) (local.get $n))
    (global.set $out (i32.add (global.get $out) (local.get $n))))
  (func (export "murmur:tool/run@0.1.0#run") (param i32 i32 i32 i32 i32 i32) (result i32)
    (local $at i32) (local $end i32)
    (call $environment (i32.const 32))
    (call $put (i32.const 64) (i32.const {length}))
    (local.set $at (i32.load (i32.const 32)))
    (local.set $end (i32.add (local.get $at) (i32.mul (i32.const 16) (i32.load (i32.const 36)))))
    (loop $next
      (call $put (i32.load (local.get $at)) (i32.load offset=4 (local.get $at)))
      (call $put (i32.const 272) (i32.const 1))
      (call $put (i32.load offset=8 (local.get $at)) (i32.load offset=12 (local.get $at)))
      (call $put (i32.const 273) (i32.const 1))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
    (call $put (i32.const 256) (i32.const 4))
    (i32.store8 (i32.const 1040) (i32.const 1))
    (i32.store (i32.const 1044) (i32.const 2048))
    (i32.store (i32.const 1048) (i32.sub (global.get $out) (i32.const 2048)))
    (i32.const 1024)))"#
    );
    let mut module = wat::parse_str(wat).unwrap();
    let mut resolve = Resolve::default();
    resolve.push_dir(format!("{ROOT}/wit")).unwrap();
    let environment =
        "package wasi:cli@0.2.3; interface environment { get-environment: func() -> list<tuple<string, string>>; }";
    resolve.push_str("cli.wit", environment).unwrap();
    let world = "package test:guest; world guest { import wasi:cli/environment@0.2.3; export murmur:tool/run@0.1.0; }";
    let package = resolve.push_str("guest.wit", world).unwrap();
    let world = resolve.select_world(&[package], Some("guest")).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).unwrap();
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .unwrap()
        .encode()
        .unwrap()
}

#[test]
fn a_driver_finds_the_key_in_its_environment_only_where_the_manifest_says_so() {
    let sandbox = Sandbox::new().with_hello().env("ACME_KEY", KEY);
    sandbox.write("hello/drivers/acme.wasm", dumps_environment());
    let seen = "MURMUR_INFERENCE_ENDPOINT=https://api.test/v1;MURMUR_INFERENCE_DRIVER=acme;\
                MURMUR_INFERENCE_DRIVER_CONFIG={};MURMUR_INFERENCE_TRANSPORT=http;";
    for (more, key) in [
        ("", ""),
        ("  driver_sees_key: true\n", "MURMUR_INFERENCE_API_KEY=[redacted];"),
    ] {
        configure(&sandbox, "https://api.test", more);
        let ran = sandbox.run(&RUN).code(0);
        assert_eq!(ran.answer(), format!("{seen}{key}MURMUR_INFERENCE_MODEL=acme-1;"));
        assert_no_key(&sandbox, &ran);
    }
}

/// The transport on the shipped driver component, for the conformance kit.
struct OnComponent;

#[async_trait]
impl Fixture for OnComponent {
    fn descriptor(&self) -> &'static TransportDescriptor {
        // Links what the program links.
        let _ = capsule::error_table;
        Registry::<TransportDescriptor>::linked().unwrap().get("http").unwrap()
    }

    async fn stage(&self, script: KitScript) -> Stage {
        let provider = Arc::new(Provider::start((&script).into()).await.unwrap());
        let settings = json!({
            "driver": "component", "component": prebuilt("chat-driver.wasm"), "endpoint": format!("{}/v1", provider.url()),
            "api_key": "sk-dummy-key", "retry": {"max_retries": 2, "initial_delay": "1ms", "max_delay": "5ms"}
        });
        let schema = (self.descriptor().settings_schema)(Some(&settings));
        let settings = Settings::new(settings.as_object().unwrap().clone(), &schema, ".");
        let clock = Arc::new(SystemClock);
        let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("component-cache/kit");
        let components = SandboxComponents::new(capsule_tools::Options {
            cache_dir: Some(cache),
            ..capsule_tools::Options::default()
        });
        let services = Services::new(clock.clone(), Arc::new(NoSecrets), Arc::new(NetClient::new(clock)));
        let peer = provider.clone();
        let seen = move || peer.requests().iter().map(|request| request.body.to_string()).collect();
        Stage::new(settings, services.with_components(Arc::new(components)))
            .model("acme-1")
            .seen(seen)
            .guard(provider)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transport_conforms_on_a_component() {
    assert_conforms(&OnComponent).await;
}
