//! Drivers that are components: what reaches them, what they may reach, and how a request of theirs ends.

use std::{net::IpAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use capsule_api::{
    ByteSize, Component, ComponentCall, ComponentEnd, ComponentReply, ComponentSignal, ComponentSpec, Components,
    Credential, Error, HumanDuration, Secret,
};
use capsule_net::Resolver;
use capsule_tools::{Options, SandboxComponents};
use capsule_transport_kit::ManualClock;
use http::{HeaderName, HeaderValue};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    attacks_network::Server,
    guests::{self, Guest, guest},
    guests_net::Fetch,
};

/// A component in a folder, and what it is to be granted.
struct Stand {
    _dir: TempDir,
    clock: ManualClock,
    options: Options,
    spec: ComponentSpec,
}

impl Stand {
    fn new(component: Vec<u8>, endpoint: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("driver.wasm");
        std::fs::write(&file, component).unwrap();
        let clock = ManualClock::new();
        Self {
            spec: ComponentSpec::new(file, endpoint.parse().unwrap()),
            options: Options {
                clock: Arc::new(clock.clone()),
                ..Options::default()
            },
            clock,
            _dir: dir,
        }
    }

    /// One that asks for nothing of the network.
    fn of(component: &Guest) -> Self {
        Self::new(component.build(), "https://api.test")
    }

    fn with_key(mut self, yields: bool) -> Self {
        let mut value = HeaderValue::from_static("Bearer hunter2");
        value.set_sensitive(true);
        self.spec.credential = Some(Credential {
            header: HeaderName::from_static("authorization"),
            value,
            yields,
        });
        self
    }

    fn try_load(&self) -> Result<Arc<dyn Component>, Error> {
        SandboxComponents::new(self.options.clone()).load(self.spec.clone())
    }

    fn load(&self) -> Arc<dyn Component> {
        self.try_load().unwrap()
    }
}

fn call(env: &[(&str, &str)]) -> ComponentCall {
    let env = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Secret::new(*value)));
    ComponentCall {
        input: json!({"model": "m"}),
        env: env.collect(),
    }
}

async fn run(component: &Arc<dyn Component>) -> ComponentReply {
    component.run(call(&[]), &mut |_| {}).await
}

/// A reply that was returned with this status and this data.
fn returned(end: ComponentEnd, data: &str) -> ComponentReply {
    let mut reply = ComponentReply::new(end);
    reply.data = Some(data.to_owned());
    reply
}

/// Returns all of its environment, a line each.
fn dumps_environment() -> Guest {
    guest(
        "(local $at i32) (local $out i32) (local $entry i32)
         (call $environment (i32.const 32))
         (local.set $out (i32.const 2048))
         (block $end (loop $next
           (br_if $end (i32.ge_u (local.get $at) (i32.load (i32.const 36))))
           (local.set $entry (i32.add (i32.load (i32.const 32)) (i32.mul (local.get $at) (i32.const 16))))
           (memory.copy (local.get $out) (i32.load (local.get $entry)) (i32.load offset=4 (local.get $entry)))
           (local.set $out (i32.add (local.get $out) (i32.load offset=4 (local.get $entry))))
           (i32.store8 (local.get $out) (i32.const 0x3d))
           (local.set $out (i32.add (local.get $out) (i32.const 1)))
           (memory.copy (local.get $out) (i32.load offset=8 (local.get $entry)) (i32.load offset=12 (local.get $entry)))
           (local.set $out (i32.add (local.get $out) (i32.load offset=12 (local.get $entry))))
           (i32.store8 (local.get $out) (i32.const 0x0a))
           (local.set $out (i32.add (local.get $out) (i32.const 1)))
           (local.set $at (i32.add (local.get $at) (i32.const 1)))
           (br $next)))
         (call $ret (i32.const 0) (i32.const 2048) (i32.sub (local.get $out) (i32.const 2048)))",
    )
    .imports(
        "wasi:cli/environment@0.2.3",
        r#"(import "wasi:cli/environment@0.2.3" "get-environment" (func $environment (param i32)))"#,
    )
}

#[tokio::test]
async fn a_driver_finds_the_environment_of_its_call_and_neither_the_key_nor_the_hosts_own() {
    let component = Stand::of(&dumps_environment()).with_key(false).load();
    for model in ["one", "two"] {
        let reply = component.run(call(&[("MODEL", model), ("X", "")]), &mut |_| {}).await;
        let expected = returned(ComponentEnd::Passed, &format!("MODEL={model}\nX=\n"));
        assert_eq!(reply, expected);
    }
}

#[tokio::test]
async fn the_host_attaches_the_key_to_requests_for_the_endpoint() {
    let server = Server::with_body("hello").await;
    let fetch = Fetch::http(&server.authority()).build();
    let stand = Stand::new(fetch, &format!("{}/v1", server.origin())).with_key(false);
    assert_eq!(run(&stand.load()).await, returned(ComponentEnd::Passed, "hello"));
    let heads = server.heads();
    assert!(heads[0].contains("authorization: Bearer hunter2\r\n"), "{heads:?}");
    assert!(!format!("{:?}", stand.spec).contains("hunter2"));
}

#[tokio::test]
async fn a_key_header_that_the_driver_sets_itself_is_refused_unless_it_may_see_the_key() {
    let server = Server::with_body("hello").await;
    let authority = server.authority();
    let mut fetch = Fetch::http(&authority);
    fetch.header = Some(("Authorization", "mine"));
    let stand = |yields| Stand::new(fetch.build(), &server.origin()).with_key(yields);

    let refused = run(&stand(false).load()).await;
    let denied = format!(
        "an HTTP request to http://{authority} was denied: it sets the header `authorization`, which the host sets with the \
         secret api_key; leave it out"
    );
    assert_eq!((refused.end, refused.denied), (ComponentEnd::Failed, Some(denied)));
    assert_eq!(server.heads(), Vec::<String>::new());

    assert_eq!(run(&stand(true).load()).await, returned(ComponentEnd::Passed, "hello"));
    let heads = server.heads();
    assert!(
        heads[0].contains("uthorization: mine\r\n") && !heads[0].contains("hunter2"),
        "{heads:?}"
    );
}

#[tokio::test]
async fn h_15_a_driver_reaches_the_origin_of_its_endpoint_and_nothing_else() {
    let (endpoint, other) = (Server::with_body("x").await, Server::with_body("y").await);
    // As after a redirect: the next hop is the driver's own request.
    let stand = Stand::new(Fetch::http(&other.authority()).build(), &endpoint.origin()).with_key(false);
    let reply = run(&stand.load()).await;
    let denied = format!(
        "an HTTP request to {} was denied: a driver may reach the host of its endpoint alone",
        other.origin()
    );
    assert_eq!((reply.end, reply.denied), (ComponentEnd::Failed, Some(denied)));
    assert_eq!(other.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn h_15_the_key_goes_to_no_other_scheme_port_or_spelling_of_the_endpoint() {
    let server = Server::with_body("x").await;
    let (authority, other) = (server.authority(), Server::with_body("y").await);
    let same_port = format!("localhost:{}", server.port);
    let user = format!("me@{authority}");
    for (asked, origin) in [
        (Fetch::https(&authority), format!("https://{authority}")),
        (Fetch::http(&other.authority()), other.origin()),
        (Fetch::http("127.0.0.1"), "http://127.0.0.1".to_owned()),
        (Fetch::http(&same_port), format!("http://{same_port}")),
    ] {
        let reply = run(&Stand::new(asked.build(), &server.origin()).with_key(false).load()).await;
        let denied =
            format!("an HTTP request to {origin} was denied: a driver may reach the host of its endpoint alone");
        assert_eq!((reply.end, reply.denied), (ComponentEnd::Failed, Some(denied)));
    }
    let reply = run(&Stand::new(Fetch::http(&user).build(), &server.origin())
        .with_key(false)
        .load())
    .await;
    assert_eq!(reply.end, ComponentEnd::Failed);
    assert_eq!((server.heads(), other.heads()), (Vec::new(), Vec::new()));
}

/// Every name stands for this address.
struct Name(IpAddr);

#[async_trait]
impl Resolver for Name {
    async fn resolve(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(vec![self.0])
    }
}

#[tokio::test]
async fn h_15_an_endpoint_whose_name_leads_inside_is_not_connected_to() {
    for address in ["169.254.169.254", "127.0.0.1", "10.0.0.1"] {
        let mut stand = Stand::new(Fetch::https("api.test").build(), "https://api.test").with_key(false);
        stand.options.net.resolver = Arc::new(Name(address.parse().unwrap()));
        let reply = run(&stand.load()).await;
        let denied = reply.denied.unwrap_or_default();
        assert_eq!(reply.end, ComponentEnd::Failed, "{address}");
        assert!(
            denied.starts_with("an HTTP request to https://api.test was denied: "),
            "{denied}"
        );
        assert!(denied.contains(address), "{denied}");
    }
}

#[tokio::test]
async fn a_driver_speaks_for_the_model() {
    for interface in ["murmur:stream/events@0.1.0", "murmur:text/chunks@0.1.0"] {
        let mut heard = Vec::new();
        let component = Stand::of(&guests::streams(interface)).load();
        let reply = component.run(call(&[]), &mut |signal| heard.push(signal)).await;
        assert_eq!(reply, returned(ComponentEnd::Passed, "some text"));
        let text = || "some text".to_owned();
        assert_eq!(
            heard,
            [ComponentSignal::Text(text()), ComponentSignal::Thinking(text())]
        );
    }
    let mut heard = Vec::new();
    let component = Stand::of(&guests::pretends()).load();
    component.run(call(&[]), &mut |signal| heard.push(signal)).await;
    let (id, name) = ("some text".to_owned(), "some text".to_owned());
    let started = ComponentSignal::CallStarted { id: id.clone(), name };
    assert_eq!(heard, [started, ComponentSignal::CallBytes { id, bytes: 7 }]);
}

#[tokio::test]
async fn what_a_driver_streams_beyond_its_limit_is_dropped_and_its_answer_stands() {
    let mut stand = Stand::new(
        guests::streams("murmur:stream/events@0.1.0").build_with_data(&"x".repeat(700)),
        "https://api.test",
    );
    stand.spec.limits.output = ByteSize(1024);
    let mut heard = 0;
    let reply = stand.load().run(call(&[]), &mut |_| heard += 1).await;
    assert_eq!((heard, reply.end), (1, ComponentEnd::Passed));
}

#[tokio::test]
async fn a_driver_calls_no_tool_and_asks_nobody() {
    let reply = run(&Stand::of(&guests::delegates()).load()).await;
    let why = "no tool is called 'some text'; there are no tools";
    assert_eq!(reply, returned(ComponentEnd::Failed, why));
    let reply = run(&Stand::of(&guests::asks()).load()).await;
    let why = "failed: it asked a question and there is nobody to answer";
    assert_eq!(reply.end, ComponentEnd::Trapped(why.to_owned()));
}

#[tokio::test]
async fn a_driver_that_crashes_or_meets_a_limit_is_told_so() {
    let small = |mut stand: Stand| {
        stand.spec.limits.memory = ByteSize(16 << 20);
        stand.spec.limits.output = ByteSize(1024);
        stand
    };
    let long = guests::says(0).build_with_data(&"x".repeat(900));
    assert_eq!(
        run(&small(Stand::of(&guests::trap())).load()).await.end,
        ComponentEnd::Trapped("trapped: wasm trap: wasm `unreachable` instruction executed".to_owned())
    );
    let limit = "was stopped: it ran into the memory limit of 16MiB (`limits.memory`)";
    let balloon = small(Stand::of(&guests::balloon()));
    assert_eq!(run(&balloon.load()).await.end, ComponentEnd::Limit(limit.to_owned()));
    let fits = run(&small(Stand::new(long, "https://api.test")).load()).await;
    assert_eq!(fits.end, ComponentEnd::Passed);
    let echo = small(Stand::of(&guests::echo())).load();
    let mut large = call(&[]);
    large.input = json!("x".repeat(2000));
    let limit = "returned 2002 bytes, and may return 1KiB (`limits.output`)";
    assert_eq!(
        echo.run(large, &mut |_| {}).await.end,
        ComponentEnd::Limit(limit.to_owned())
    );
}

#[tokio::test]
async fn w_01_the_deadline_ends_a_driver_that_waits() {
    let mut stand = Stand::of(&guests::sleep());
    stand.spec.limits.deadline = Duration::from_secs(30);
    let component = stand.load();
    let running = tokio::spawn(async move { run(&component).await });
    stand.clock.sleepers(1).await;
    stand.clock.advance(Duration::from_secs(30));
    let limit = HumanDuration(Duration::from_secs(30));
    assert_eq!(
        running.await.unwrap(),
        ComponentReply::new(ComponentEnd::TimedOut(limit))
    );
}

#[tokio::test]
async fn a_request_that_is_dropped_gives_its_place_back() {
    for component in [guests::sleep(), guests::spin()] {
        let mut stand = Stand::of(&component);
        stand.spec.limits.concurrent_calls = 1;
        let component = stand.load();
        for _ in 1..=3 {
            // Each gets the one place: the one before gave it back.
            let component = component.clone();
            let running = tokio::spawn(async move { run(&component).await });
            stand.clock.sleepers(1).await;
            running.abort();
            assert!(running.await.unwrap_err().is_cancelled());
        }
    }
}

#[test]
fn what_is_no_driver_names_its_file_and_the_way_out() {
    let refused = |stand: &Stand| {
        let error = stand.try_load().err().unwrap();
        let dir = format!("{}/", stand._dir.path().display());
        (error.code, error.message.replace(&dir, ""))
    };
    let gone = Stand::of(&guests::echo());
    std::fs::remove_file(&gone.spec.file).unwrap();
    let text = Stand::new(b"not wasm at all".to_vec(), "https://api.test");
    let command = Stand::new(guests::prints("x", "(i32.const 0)"), "https://api.test");
    let plain = Stand::new(guests::echo().build(), "http://api.test");
    let metadata = Stand::new(guests::echo().build(), "https://169.254.169.254");
    let mut limits = Stand::of(&guests::echo());
    limits.spec.limits.concurrent_calls = 0;
    let told = [&gone, &text, &command, &plain, &metadata, &limits].map(refused);
    let said = |what: &str| format!("the driver's component (driver.wasm): {what}");
    assert_eq!(
        told,
        [
            (
                "tool-file",
                said("the component cannot be read: No such file or directory (os error 2)")
            ),
            (
                "tool-not-a-component",
                said("it is not WebAssembly (text or another format)")
            ),
            (
                "tool-export-missing",
                said("it does not export `murmur:tool/run@0.1.0`, as a driver does")
            ),
            (
                "tool-grant-network",
                said("its endpoint cannot be granted: plain `http` is for this machine alone")
            ),
            (
                "tool-grant-network",
                said(
                    "its endpoint cannot be granted: 169.254.169.254 is a link-local or metadata address, which is never connected to"
                )
            ),
            (
                "tool-limits",
                said("`limits.concurrent_calls` is 0; it must be from 1 to 1024")
            ),
        ]
    );
}

#[test]
fn a_driver_says_what_it_may_do() {
    let stand = Stand::new(Fetch::https("api.test").build(), "https://api.test/v1").with_key(false);
    let file = stand.spec.file.display().to_string();
    let may = "send HTTP requests to https://api.test; have requests to https://api.test carry the secret api_key in the \
               header `authorization`, without seeing it";
    let limits = "a call takes at most 10m, 256MiB of memory, 16MiB of output, 64MiB in each HTTP body";
    let expected = [("component", file.as_str()), ("may", may), ("limits", limits)];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(stand.load().facts(), expected);

    let alone = Stand::of(&dumps_environment()).load().facts();
    let may = "reach no host: it does not import wasi:http/outgoing-handler; see the settings of its request as environment \
               variables";
    assert_eq!(alone[1], ("may".to_owned(), may.to_owned()));
}
