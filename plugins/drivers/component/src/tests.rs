//! The driver on a component that is played here: what it is given, and what is made of what it says.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use capsule_api::{
    BlockDelta, BlockStart, BuiltDriver, Component, ComponentCall, ComponentEnd, ComponentReply, ComponentSignal,
    ComponentSpec, Components, ContentBlock, Driver, DriverDescriptor, DriverOut, Error, HumanDuration, Message,
    Registry, Request, Response, Retry, Settings, StopReason, StreamItem, SystemClock, Usage, async_trait,
    serde_json::{Map, Value, json},
};
use capsule_transport_kit::services;

/// A sandbox whose component says and returns always the same.
struct Played {
    signals: Vec<ComponentSignal>,
    reply: ComponentReply,
    loaded: Mutex<Option<ComponentSpec>>,
    calls: Mutex<Vec<ComponentCall>>,
}

struct Same(Arc<Played>);

impl Components for Same {
    fn load(&self, spec: ComponentSpec) -> Result<Arc<dyn Component>, Error> {
        *self.0.loaded.lock().unwrap() = Some(spec);
        Ok(Arc::new(Same(self.0.clone())))
    }
}

#[async_trait]
impl Component for Same {
    fn facts(&self) -> Vec<(String, String)> {
        vec![("component".to_owned(), "played".to_owned())]
    }

    async fn run(&self, call: ComponentCall, heard: &mut (dyn FnMut(ComponentSignal) + Send)) -> ComponentReply {
        self.0.calls.lock().unwrap().push(call);
        self.0.signals.iter().cloned().for_each(heard);
        self.0.reply.clone()
    }
}

#[derive(Default)]
struct Items(Vec<StreamItem>);

impl DriverOut for Items {
    fn item(&mut self, item: StreamItem) {
        self.0.push(item);
    }
}

fn played(signals: Vec<ComponentSignal>, reply: ComponentReply) -> Arc<Played> {
    Arc::new(Played {
        signals,
        reply,
        loaded: Mutex::default(),
        calls: Mutex::default(),
    })
}

fn build(settings: &Value, played: &Arc<Played>) -> Result<Box<dyn Driver>, Error> {
    let driver = Registry::<DriverDescriptor>::linked()
        .unwrap()
        .get("component")
        .unwrap();
    let mut all = json!({"component": "drivers/acme.wasm", "endpoint": "https://api.test/v1"});
    all.as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    let settings = Settings::new(
        all.as_object().unwrap().clone(),
        &(driver.settings_schema)(),
        "/capsule",
    );
    let services = services(SystemClock).with_components(Arc::new(Same(played.clone())));
    match (driver.build)(settings, &services)? {
        BuiltDriver::Driver(driver) => Ok(driver),
        _ => panic!("it builds something else"),
    }
}

fn request() -> Request {
    Request {
        model: "acme-1".to_owned(),
        max_tokens: 100,
        system: None,
        messages: vec![Message::User {
            content: vec![ContentBlock::text("Hello")],
        }],
        tools: Vec::new(),
        params: Map::new(),
        continuation_id: None,
    }
}

fn passed(data: impl ToString) -> ComponentReply {
    let mut reply = ComponentReply::new(ComponentEnd::Passed);
    reply.data = Some(data.to_string());
    reply
}

async fn ask(played: &Arc<Played>) -> (Result<Response, Error>, Vec<StreamItem>) {
    let mut items = Items::default();
    let answered = build(&json!({}), played).unwrap().request(&request(), &mut items).await;
    (answered, items.0)
}

/// Code and message of the error that a reply becomes, and whether to try again.
async fn error(reply: ComponentReply) -> (String, String, Retry) {
    let error = ask(&played(Vec::new(), reply)).await.0.unwrap_err();
    (error.code.to_owned(), error.message.to_string(), error.retry)
}

#[tokio::test]
async fn a_component_is_given_the_request_and_its_environment() {
    let played = played(Vec::new(), passed(json!({"stop_reason": "end_turn", "content": []})));
    let settings = json!({"api_key": "sk-secret", "driver_config": {"beta": true}, "auth": "x-api-key: {}"});
    let driver = build(&settings, &played).unwrap();
    driver.request(&request(), &mut Items::default()).await.unwrap();

    let calls = played.calls.lock().unwrap();
    let env = calls[0].env.iter().map(|(name, value)| (name.as_str(), value.expose()));
    let expected = [
        ("MURMUR_INFERENCE_ENDPOINT", "https://api.test/v1"),
        ("MURMUR_INFERENCE_DRIVER", "acme"),
        ("MURMUR_INFERENCE_DRIVER_CONFIG", r#"{"beta":true}"#),
        ("MURMUR_INFERENCE_TRANSPORT", "http"),
        ("MURMUR_INFERENCE_MODEL", "acme-1"),
    ];
    assert_eq!(env.collect::<Vec<_>>(), expected);
    let input = json!({
        "model": "acme-1", "max_tokens": 100, "tools": [], "params": {},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    });
    assert_eq!(calls[0].input, input);
    let spec = played.loaded.lock().unwrap().take().unwrap();
    assert_eq!(spec.file, PathBuf::from("/capsule/drivers/acme.wasm"));
    let credential = spec.credential.unwrap();
    assert_eq!((credential.header.as_str(), credential.yields), ("x-api-key", false));
    assert_eq!(credential.value, "sk-secret");
    assert!(!format!("{credential:?}").contains("sk-secret"));
}

#[tokio::test]
async fn only_a_driver_that_may_see_the_key_finds_it() {
    let played = played(Vec::new(), passed(json!({"stop_reason": "end_turn"})));
    let settings = json!({"api_key": "sk-secret", "driver_sees_key": true, "driver_name": "old"});
    let driver = build(&settings, &played).unwrap();
    driver.request(&request(), &mut Items::default()).await.unwrap();
    let calls = played.calls.lock().unwrap();
    let env: Vec<_> = calls[0]
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect();
    assert!(env.contains(&("MURMUR_INFERENCE_API_KEY", "sk-secret")), "{env:?}");
    assert!(env.contains(&("MURMUR_INFERENCE_DRIVER", "old")), "{env:?}");
    assert!(played.loaded.lock().unwrap().take().unwrap().credential.unwrap().yields);
    let told = driver.facts();
    assert!(told.iter().any(|(name, _)| name == "key"), "{told:?}");
}

#[tokio::test]
async fn settings_that_cannot_be_used_say_why_and_show_no_key() {
    let played = played(Vec::new(), passed(""));
    for (settings, code, message) in [
        (
            json!({"endpoint": "http://api.test"}),
            "component-endpoint",
            "on loopback only",
        ),
        (json!({"endpoint": "api.test"}), "component-endpoint", "not a whole URL"),
        (
            json!({"endpoint": "https://me:sk-secret@api.test"}),
            "component-endpoint",
            "not accepted",
        ),
        (
            json!({"api_key": "sk-secret", "auth": "x-api-key {}"}),
            "component-auth-header",
            "not `Name: value`",
        ),
        (
            json!({"api_key": "sk-secret", "auth": "x-api-key: key"}),
            "component-auth-header",
            "exactly once",
        ),
        (
            json!({"api_key": "sk-secret", "auth": "host: {}"}),
            "component-auth-header",
            "the connection's own",
        ),
        (
            json!({"api_key": "sk-secret\nx"}),
            "component-key-missing",
            "characters that no key has",
        ),
        (json!({"api_key": "  "}), "component-key-missing", "empty"),
        (
            json!({"component": "../acme.wasm"}),
            "settings-path-outside",
            "leaves the manifest's directory",
        ),
    ] {
        let error = build(&settings, &played).err().unwrap();
        assert_eq!(error.code, code, "{settings}");
        assert!(error.message.contains(message), "{}", error.message);
        assert!(!format!("{error} {error:?}").contains("sk-secret"), "{error:?}");
    }
}

#[test]
fn a_program_without_a_sandbox_says_so() {
    let driver = Registry::<DriverDescriptor>::linked()
        .unwrap()
        .get("component")
        .unwrap();
    let values = json!({"component": "acme.wasm", "endpoint": "https://api.test"});
    let settings = Settings::new(values.as_object().unwrap().clone(), &(driver.settings_schema)(), ".");
    let error = (driver.build)(settings, &services(SystemClock)).err().unwrap();
    assert_eq!(error.code, "component-no-sandbox");
}

#[tokio::test]
async fn what_is_streamed_becomes_items() {
    let text = |text: &str| ComponentSignal::Text(text.to_owned());
    let (c1, name) = (|| "c1".to_owned(), || "greet".to_owned());
    let started = |id: String| ComponentSignal::CallStarted { id, name: name() };
    let bytes = |bytes| ComponentSignal::CallBytes { id: c1(), bytes };
    let signals = vec![
        ComponentSignal::Thinking("Hm".to_owned()),
        text("Hel"),
        text(""),
        text("lo"),
        started(String::new()),
        bytes(1),
        started(c1()),
        started(c1()),
        bytes(7),
        bytes(7),
    ];
    let (_, items) = ask(&played(signals, passed(json!({"stop_reason": "end_turn"})))).await;
    let begins = |index, block| StreamItem::Started { index, block };
    let delta = |index, delta| StreamItem::Delta { index, delta };
    let expected = [
        begins(0, BlockStart::Thinking { redacted: None }),
        delta(0, BlockDelta::Text("Hm".to_owned())),
        StreamItem::Ended { index: 0 },
        begins(1, BlockStart::Text),
        delta(1, BlockDelta::Text("Hel".to_owned())),
        delta(1, BlockDelta::Text("lo".to_owned())),
        StreamItem::Ended { index: 1 },
        begins(2, BlockStart::Call { id: c1(), name: name() }),
        delta(2, BlockDelta::InputBytes(7)),
    ];
    assert_eq!(items, expected);
}

#[tokio::test]
async fn what_is_returned_is_the_answer() {
    let mut reply = passed(json!({
        "stop_reason": "tool_call",
        "content": [
            {"type": "text", "text": "Hello"},
            {"type": "new_kind", "x": 1},
            {"type": "tool_call", "id": "c1", "name": "greet", "input": {"name": "Ada"}},
            {"type": "tool_call", "id": "c2", "name": "greet", "input": ""},
        ],
        "usage": {"input_tokens": 7, "output_tokens": 5, "cache_read_tokens": 3, "reasoning_tokens": 2},
    }));
    reply.metadata = vec![("continuation_id".to_owned(), "conv-1".to_owned())];
    let call = |id: &str, input: Value| ContentBlock::ToolCall {
        id: id.to_owned(),
        name: "greet".to_owned(),
        input,
    };
    let expected = Response {
        stop_reason: StopReason::ToolCall,
        content: vec![
            ContentBlock::text("Hello"),
            call("c1", json!({"name": "Ada"})),
            call("c2", json!({})),
        ],
        continuation_id: Some("conv-1".to_owned()),
        usage: Usage {
            input: 7,
            output: 5,
            cache_read: 3,
            reasoning: 2,
            ..Usage::default()
        },
    };
    assert_eq!(ask(&played(Vec::new(), reply)).await.0.unwrap(), expected);
}

#[tokio::test]
async fn a_reasoning_block_comes_back_to_the_component_as_it_was() {
    let theirs = [
        json!({"type": "thinking", "thinking": "Hm", "signature": "s", "index": 3}),
        json!({"type": "thinking", "text": "Plain", "signature": "t"}),
    ];
    let reply = passed(json!({"stop_reason": "end_turn", "content": theirs}));
    let played = played(Vec::new(), reply);
    let answered = ask(&played).await.0.unwrap();
    assert!(matches!(&answered.content[0], ContentBlock::Thinking { text, .. } if text == "Hm"));
    let mut next = request();
    next.messages.push(Message::Assistant {
        content: answered.content,
    });
    let driver = build(&json!({}), &played).unwrap();
    driver.request(&next, &mut Items::default()).await.unwrap();
    let input = played.calls.lock().unwrap()[1].input.clone();
    assert_eq!(input["messages"][1]["content"], json!(theirs));
}

#[tokio::test]
async fn h_10_a_stop_reason_that_is_not_known_is_named() {
    for (reason, expected) in [("refusal", StopReason::Refusal), ("pause", StopReason::Pause)] {
        let (answered, _) = ask(&played(Vec::new(), passed(json!({"stop_reason": reason})))).await;
        assert_eq!(answered.unwrap().stop_reason, expected);
    }
    let told = error(passed(json!({"stop_reason": "bored", "content": []}))).await;
    let message = r#"the model stopped for the reason "bored", which is not known"#;
    assert_eq!(
        told,
        ("component-stop-unknown".to_owned(), message.to_owned(), Retry::Never)
    );
}

#[tokio::test]
async fn what_is_no_answer_is_an_error_that_says_where() {
    let malformed = "what the driver's component returned is no answer: ";
    for (data, why) in [
        (String::new(), "it is empty"),
        ("[]".to_owned(), "it is no JSON object"),
        (
            "{".to_owned(),
            "it is not JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("{}".to_owned(), "it has no `stop_reason`"),
        (
            json!({"stop_reason": "end_turn", "content": "Hi"}).to_string(),
            "its `content` is no array",
        ),
        (
            json!({"stop_reason": "end_turn", "content": [{}]}).to_string(),
            "block 0 of its `content` has no `type`",
        ),
        (
            json!({"stop_reason": "end_turn", "content": [{"type": "text"}]}).to_string(),
            "block 0 of its `content`: missing field `text`",
        ),
        (
            json!({"stop_reason": "end_turn", "usage": {"input_tokens": -1}}).to_string(),
            "its `usage`: invalid value: integer `-1`, expected u64",
        ),
    ] {
        let told = error(passed(&data)).await;
        assert_eq!(
            told,
            (
                "component-malformed".to_owned(),
                format!("{malformed}{why}"),
                Retry::Never
            ),
            "{data}"
        );
    }
}

#[tokio::test]
async fn a_failure_that_is_reported_keeps_its_class_and_whether_it_may_pass() {
    let answer = |error: Value| passed(json!({"stop_reason": "error", "content": [], "error": error}));
    let transient = |mut reply: ComponentReply| {
        reply.metadata.push(("transient".to_owned(), "true".to_owned()));
        reply
    };
    let failed = |text: &str| {
        let mut reply = passed(text);
        reply.end = ComponentEnd::Failed;
        reply
    };
    let said = |what: &str| format!("the driver's component reports: {what}");
    let wait = Retry::After(Duration::from_millis(1500));
    for (reply, code, message, retry) in [
        (answer(json!("no luck")), "component-failed", "no luck", Retry::Never),
        (answer(json!(null)), "component-failed", "no reason", Retry::Never),
        (
            transient(answer(json!("busy"))),
            "component-transient",
            "busy",
            Retry::Later,
        ),
        (
            answer(json!({"kind": "auth", "message": "401"})),
            "component-auth",
            "401",
            Retry::Never,
        ),
        (
            answer(json!({"kind": "context_overflow", "message": "full"})),
            "component-context",
            "full",
            Retry::Never,
        ),
        (
            transient(answer(
                json!({"kind": "rate_limited", "message": "slow", "retry_after": 1.5}),
            )),
            "component-rate-limited",
            "slow",
            wait,
        ),
        (transient(failed("503")), "component-transient", "503", Retry::Later),
        (
            failed(r#"{"stop_reason": "error", "error": "told"}"#),
            "component-failed",
            "told",
            Retry::Never,
        ),
    ] {
        assert_eq!(error(reply).await, (code.to_owned(), said(message), retry));
    }
}

#[tokio::test]
async fn h_11_a_failed_answer_is_paid_for() {
    let reply = passed(json!({"stop_reason": "error", "error": "x", "usage": {"input_tokens": 3}}));
    let (answered, items) = ask(&played(Vec::new(), reply)).await;
    let usage = Usage {
        input: 3,
        ..Usage::default()
    };
    assert_eq!((answered.is_err(), items), (true, vec![StreamItem::Usage(usage)]));
}

#[tokio::test]
async fn a_component_that_does_not_return_is_told_with_what_the_host_saw() {
    let ended = |end| {
        let mut reply = ComponentReply::new(end);
        reply.stderr = "panicked".to_owned();
        reply
    };
    let mut denied = ended(ComponentEnd::Failed);
    denied.denied = Some("a request was denied".to_owned());
    let mut limited = passed(json!({"stop_reason": "error", "error": "cut"}));
    limited.limit = Some("the limit of 1KiB".to_owned());
    limited.metadata.push(("transient".to_owned(), "true".to_owned()));
    limited.stderr = "panicked".to_owned();
    let limit = HumanDuration(Duration::from_secs(1));
    for (reply, code, message) in [
        (
            ended(ComponentEnd::Trapped("trapped".to_owned())),
            "component-trapped",
            "the driver's component trapped",
        ),
        (
            ended(ComponentEnd::TimedOut(limit)),
            "component-timed-out",
            "the driver's component did not answer within 1s (`component_limits.deadline`)",
        ),
        (
            ended(ComponentEnd::Limit("ran into a limit".to_owned())),
            "component-limit",
            "the driver's component ran into a limit",
        ),
        (
            limited,
            "component-limit",
            "the driver's component reports: cut (it ran into the limit of 1KiB)",
        ),
        (
            denied,
            "component-denied",
            "the driver's component reports: no reason (a request was denied)",
        ),
    ] {
        let expected = format!("{message}\nend of its standard error:\npanicked");
        assert_eq!(error(reply).await, (code.to_owned(), expected, Retry::Never));
    }
}
