//! The bridge as a CLI meets it: over HTTP, for one conversation.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use capsule_api::{
    CallId, Cancel, CancelReason, ErrorKind, Events, HttpClient as _, NobodyThere, RunEvent, SystemClock, ToolStatus,
    TurnIo, http,
};
use capsule_net::NetClient;
use capsule_transport_kit::{Entry, Recorder, TestTools};
use capsule_transport_process::{Bridge, BridgeOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

struct Turn {
    log: Arc<Recorder>,
    tools: Arc<TestTools>,
    io: TurnIo,
}

fn turn() -> Turn {
    let log = Arc::new(Recorder::new());
    let tools = Arc::new(TestTools::new(log.clone()));
    let io = TurnIo {
        events: Events::new(log.clone()),
        tools: tools.clone(),
        caller: Arc::new(NobodyThere),
        cancel: Cancel::new(),
    };
    Turn { log, tools, io }
}

async fn bridge() -> Bridge {
    let mut options = BridgeOptions::new("capsule", "1.2.3");
    options.call_id_keys = vec!["own/callId".into()];
    Bridge::start(TestTools::offered(), options, None, Arc::new(SystemClock))
        .await
        .unwrap()
}

/// A client that knows where the bridge is and its token.
struct Peer(String, String, NetClient);

impl Peer {
    fn of(bridge: &Bridge) -> Self {
        Self(
            bridge.url(),
            bridge.token().expose().to_owned(),
            NetClient::new(Arc::new(SystemClock)),
        )
    }

    fn address(&self) -> SocketAddr {
        self.0
            .trim_start_matches("http://")
            .trim_end_matches("/mcp")
            .parse()
            .unwrap()
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, capsule_api::Error> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = http::Request::post(&self.0)
            .header("authorization", format!("Bearer {}", self.1))
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .body(Bytes::from(body.to_string()))
            .unwrap();
        let mut body = self.2.send(request).await?.into_body();
        let mut all = Vec::new();
        while let Some(piece) = body.chunk().await? {
            all.extend_from_slice(&piece);
        }
        Ok(serde_json::from_slice(&all).unwrap())
    }

    /// Calls a tool: whether it is an error, and its text.
    async fn call(&self, alias: &str, id: &str) -> (bool, String) {
        let params = json!({"name": alias, "arguments": {"text": "hello"}, "_meta": {"own/callId": id}});
        let answer = self.ask("tools/call", params).await.unwrap();
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap();
        (result["isError"].as_bool().unwrap(), text.to_owned())
    }
}

/// How the calls ended, as the dispatch recorded it, sorted.
fn ends(log: &Recorder) -> Vec<(CallId, ToolStatus)> {
    let entries = log.entries().into_iter();
    let mut ends: Vec<_> = entries
        .filter_map(|entry| match entry {
            Entry::Run(RunEvent::Ended { call, reply, .. }) => Some((call, reply.status)),
            _ => None,
        })
        .collect();
    ends.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
    ends
}

#[tokio::test]
async fn it_is_on_loopback_for_the_holder_of_its_own_token_and_gone_when_it_is_closed() {
    let (one, two) = (bridge().await, bridge().await);
    let peer = Peer::of(&one);
    assert!(peer.address().ip().is_loopback() && peer.address().port() != 0);
    assert_eq!((peer.1.len(), peer.1 == two.token().expose()), (64, false));
    for shown in [format!("{one:?}"), format!("{:?}", one.token())] {
        assert!(!shown.contains(&peer.1), "{shown}");
    }
    let listed = peer.ask("tools/list", json!({})).await.unwrap();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 5);
    // The token of one conversation opens no other's bridge.
    let stranger = Peer(two.url(), peer.1.clone(), NetClient::new(Arc::new(SystemClock)));
    let request = http::Request::post(&stranger.0).header("authorization", format!("Bearer {}", stranger.1));
    let response = stranger.2.send(request.body(Bytes::new()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 401);
    one.close(Duration::ZERO).await;
    assert!(
        TcpStream::connect(peer.address()).await.is_err(),
        "nobody listens any more"
    );
}

#[tokio::test]
async fn a_bridge_that_cannot_be_bound_leaves_the_tools_unavailable() {
    const ALONE: &str = "CAPSULE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        // In a process of its own, because there no other test needs a descriptor.
        let test = "bridge::a_bridge_that_cannot_be_bound_leaves_the_tools_unavailable";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let ran = again.args(["--exact", test]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let few = Rlimit {
        current: Some(64),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, few).unwrap();
    let taken: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    let options = BridgeOptions::new("capsule", "1.2.3");
    let refused = Bridge::start(TestTools::offered(), options, None, Arc::new(SystemClock)).await;
    drop(taken);
    let error = refused.unwrap_err();
    assert_eq!(
        (error.code, error.kind),
        ("process-bridge-bind", ErrorKind::ToolsUnavailable)
    );
}

#[tokio::test]
async fn a_call_outside_a_turn_gets_words() {
    let bridge = bridge().await;
    let peer = Peer::of(&bridge);
    let nobody = (true, "no turn is running".to_owned());
    assert_eq!(peer.call("echo", "1").await, nobody);
    let turn = turn();
    let attached = bridge.attach(&turn.io);
    assert_eq!(peer.call("echo", "2").await, (false, "hello".to_owned()));
    assert!(attached.saw(&CallId::new("2")), "under the id that the CLI gave it");
    attached.finish(CancelReason::Shutdown).await;
    assert_eq!(peer.call("echo", "3").await, nobody);
    assert_eq!(ends(&turn.log), [(CallId::new("2"), ToolStatus::Passed)]);
}

#[tokio::test]
async fn m_03_a_dropped_connection_cancels_the_call_which_is_recorded_once() {
    let bridge = bridge().await;
    let turn = turn();
    let _attached = bridge.attach(&turn.io);
    let peer = Peer::of(&bridge);
    tokio::select! {
        answer = peer.call("sleep", "long") => panic!("answered: {answer:?}"),
        () = turn.tools.live_calls(1) => {}
    }
    turn.tools.live_calls(0).await;
    assert_eq!(ends(&turn.log), [(CallId::new("long"), ToolStatus::Cancelled)]);
}

#[tokio::test]
async fn m_04_a_silent_client_and_a_slow_call_delay_nobody_and_calls_overlap() {
    let bridge = bridge().await;
    let turn = turn();
    let _attached = bridge.attach(&turn.io);
    let peer = Peer::of(&bridge);
    let silent = TcpStream::connect(peer.address()).await.unwrap();
    let mut half = TcpStream::connect(peer.address()).await.unwrap();
    half.write_all(b"POST /mcp HT").await.unwrap();
    let others = async {
        turn.tools.live_calls(1).await;
        // Each of the two is answered only while the other runs.
        let both = (false, "both are here".to_owned());
        assert_eq!(
            tokio::join!(peer.call("meet", "a"), peer.call("meet", "b")),
            (both.clone(), both)
        );
    };
    tokio::select! {
        answer = peer.call("sleep", "slow") => panic!("answered: {answer:?}"),
        () = others => {}
    }
    drop((silent, half));
}

#[tokio::test]
async fn sixteen_calls_run_at_once_and_the_end_of_the_turn_cancels_and_waits_for_all() {
    let bridge = bridge().await;
    let turn = turn();
    let attached = bridge.attach(&turn.io);
    let peer = Arc::new(Peer::of(&bridge));
    let calls: Vec<_> = (10..26)
        .map(|id| {
            let peer = peer.clone();
            tokio::spawn(async move { peer.call("sleep", &id.to_string()).await })
        })
        .collect();
    turn.tools.live_calls(16).await;
    attached.finish(CancelReason::Caller).await;
    assert_eq!(turn.tools.live(), 0);
    assert!(
        calls.iter().all(|call| !call.is_finished()),
        "with a result the CLI would go on"
    );
    bridge.close(Duration::ZERO).await;
    let expected: Vec<_> = (10..26)
        .map(|id| (CallId::new(id.to_string()), ToolStatus::Cancelled))
        .collect();
    assert_eq!(ends(&turn.log), expected);
}

#[tokio::test]
async fn the_end_of_the_conversation_cancels_every_call_and_waits_for_it() {
    let bridge = bridge().await;
    let turn = turn();
    let _attached = bridge.attach(&turn.io);
    let peer = Peer::of(&bridge);
    let closing = async {
        turn.tools.live_calls(1).await;
        bridge.close(Duration::ZERO).await;
        assert_eq!(ends(&turn.log), [(CallId::new("1"), ToolStatus::Cancelled)]);
    };
    let call = json!({"name": "sleep", "_meta": {"own/callId": "1"}});
    let (answer, ()) = tokio::join!(peer.ask("tools/call", call), closing);
    assert_eq!(answer.unwrap_err().code, "net-exchange");
}

#[tokio::test]
async fn a_result_that_the_cli_does_not_pass_on_whole_is_cut_with_a_notice_and_recorded_whole() {
    let options = BridgeOptions::new("capsule", "1.2.3");
    let bridge = Bridge::start(TestTools::offered(), options, Some(200), Arc::new(SystemClock))
        .await
        .unwrap();
    let peer = Peer::of(&bridge);
    let turn = turn();
    let attached = bridge.attach(&turn.io);
    let long = "x".repeat(300);
    let params = json!({"name": "echo", "arguments": {"text": long}});
    let answer = peer.ask("tools/call", params).await.unwrap();
    let shown = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(
        shown.len() <= 200 && shown.contains("the result has 300 characters"),
        "{shown}"
    );
    let whole = turn.log.entries().into_iter().find_map(|entry| match entry {
        Entry::Run(RunEvent::Ended { reply, .. }) => Some(reply.joined_text()),
        _ => None,
    });
    assert_eq!(whole.as_deref(), Some(long.as_str()));
    attached.finish(CancelReason::Shutdown).await;
}
