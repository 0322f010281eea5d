//! Attacks on the host's own resources: each call ends with a clear error, and afterwards memory and descriptors are where they were.

use std::{
    fs,
    task::{Context, Waker},
    time::Duration,
};

use capsule_api::{CancelReason, ToolStatus};
use serde_json::json;
use tokio::sync::Mutex;

use crate::{
    attacks_network::{Server, granted},
    guests::{self, delegates, guest},
    guests_net::Fetch,
    support::{Capsule, Turn, said},
};

/// What this process may have more of after an attack than before: pages that the allocator and the pool keep.
const SLACK: usize = 96 << 20;

/// Held by what measures the memory of this process, so that one measures at a time.
static MEASURES: Mutex<()> = Mutex::const_new(());

/// Bytes that this process holds in memory.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Descriptors below a path that only this test has.
fn descriptors(below: &std::path::Path) -> usize {
    let open = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    open.filter(|target| target.starts_with(below)).count()
}

/// Makes the same attack several times: the same end each time, and no growth from the second time on.
async fn repeated(turn: &Turn, name: &str, times: usize) -> (ToolStatus, String) {
    let _alone = MEASURES.lock().await;
    let first = turn.ask(name).await;
    let before = resident();
    for _ in 1..times {
        assert_eq!(turn.ask(name).await, first);
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < SLACK, "{name}: {grown} bytes more after {times} calls");
    first
}

#[tokio::test]
async fn w_04_a_memory_balloon_leaves_no_memory_behind() {
    let mut capsule = Capsule::with("balloon", guests::balloon().build());
    capsule.grants.limits.memory = 64 << 20;
    let text = "tool 'balloon' was stopped: it ran into the memory limit of 64MiB (`limits.memory`)";
    assert_eq!(
        repeated(&capsule.turn(), "balloon", 50).await,
        said(ToolStatus::Trapped, text)
    );
}

#[tokio::test]
async fn w_04_memory_that_is_touched_is_given_back() {
    let body = "(drop (memory.grow (i32.const 900))) (memory.fill (i32.const 65536) (i32.const 7) (i32.const 58000000))
        (call $ret (i32.const 0) (i32.const 64) (global.get $data))";
    let turn = Capsule::with("fills", guest(body).build()).turn();
    assert_eq!(repeated(&turn, "fills", 30).await.0, ToolStatus::Passed);
}

#[tokio::test]
async fn w_04_a_table_balloon_is_told_which_limit_it_met() {
    let wat = r#"(component
        (core module $m
          (table $t 1 funcref)
          (func (export "go") (result i32)
            (loop $more (br_if $more (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
            unreachable))
        (core instance $i (instantiate $m))
        (func (export "go") (result u32) (canon lift (core func $i "go"))))"#;
    let mut capsule = Capsule::with("tables", wat::parse_str(wat).unwrap());
    capsule.grants.limits.table_elements = 5000;
    let text = "tool 'tables' was stopped: it ran into the limit of 5000 table elements (`limits.table_elements`)";
    assert_eq!(
        repeated(&capsule.turn(), "tables", 50).await,
        said(ToolStatus::Trapped, text)
    );
}

#[tokio::test]
async fn w_04_more_instances_than_their_limit_end_the_call() {
    let instances = "(core instance (instantiate $none))".repeat(20);
    let wat = format!(
        r#"(component
             (core module $none) {instances}
             (core module $m (func (export "go") (result i32) (i32.const 7)))
             (core instance $i (instantiate $m))
             (func (export "go") (result u32) (canon lift (core func $i "go"))))"#
    );
    let mut capsule = Capsule::with("many", wat::parse_str(&wat).unwrap());
    capsule.grants.limits.instances = 20;
    let text = "tool 'many' was stopped: it ran into the limit of 20 core instances (`limits.instances`)";
    assert_eq!(capsule.turn().ask("many").await, said(ToolStatus::Trapped, text));
    capsule.grants.limits.instances = 21;
    assert_eq!(capsule.turn().ask("many").await, said(ToolStatus::Passed, "7"));
}

#[tokio::test]
async fn w_04_handles_by_the_million_end_the_call() {
    let body = "(loop $more (drop (call $fields)) (br $more)) unreachable";
    let component = guest(body)
        .imports(
            "wasi:http/types@0.2.3",
            r#"(import "wasi:http/types@0.2.3" "[constructor]fields" (func $fields (result i32)))"#,
        )
        .build();
    let (status, text) = repeated(&Capsule::with("handles", component).turn(), "handles", 20).await;
    assert_eq!(status, ToolStatus::Trapped, "{text}");
    let limit = "tool 'handles' was stopped: it ran into the limit of 1024 handles of host resources (files, streams, requests)";
    assert_eq!(text, limit);
}

#[tokio::test]
async fn w_04_open_files_go_with_their_call() {
    let component = guests::opens_without_end().build_with_data("notes.txt");
    let mut capsule = Capsule::with("files", component);
    let host = capsule.directory("granted");
    fs::write(host.join("notes.txt"), "").unwrap();
    capsule.grants.filesystem.push(capsule_tools::Preopen {
        host: host.clone(),
        guest: "/data".into(),
        mode: capsule_tools::Mode::Ro,
    });
    let (status, text) = repeated(&capsule.turn(), "files", 5).await;
    assert_eq!(status, ToolStatus::Trapped, "{text}");
    assert_eq!(descriptors(&host), 0);
}

#[tokio::test]
async fn w_04_a_flood_of_output_keeps_nothing() {
    let mut capsule = Capsule::with(
        "flood",
        guests::writes("stdout", true).build_with_data(&"x".repeat(900)),
    );
    capsule.grants.limits.output = 8 << 20;
    assert_eq!(repeated(&capsule.turn(), "flood", 10).await.0, ToolStatus::Trapped);
}

#[tokio::test]
async fn w_04_a_result_of_a_gigabyte_is_cut_or_refused() {
    // Its own memory is the limit of what a guest can say: one that claims more lies about its pointers.
    let claims = guest("(call $ret (i32.const 0) (i32.const 64) (i32.const 1073741824))");
    let (status, text) = repeated(&Capsule::with("claims", claims.build()).turn(), "claims", 10).await;
    assert_eq!(status, ToolStatus::Trapped, "{text}");
    let says = guest(
        "(drop (memory.grow (i32.const 3000))) (memory.fill (i32.const 65536) (i32.const 0x78) (i32.const 100000000))
         (call $ret (i32.const 0) (i32.const 65536) (i32.const 100000000))",
    );
    let turn = Capsule::with("says", says.build()).turn();
    let (status, text) = repeated(&turn, "says", 4).await;
    assert_eq!(status, ToolStatus::Passed);
    assert!(text.ends_with("[cut: the first 1048576 of 100000000 bytes; `limits.output` is 1MiB]"));
}

#[tokio::test]
async fn w_02_what_is_not_utf_8_or_breaks_off_in_a_stream_ends_its_call_and_the_next_is_clean() {
    let stops = guest("(call $text (i32.const 64) (global.get $data)) unreachable").imports(
        "murmur:stream/events@0.1.0",
        r#"(import "murmur:stream/events@0.1.0" "emit-chunk" (func $text (param i32 i32)))"#,
    );
    let turn = Capsule::with("utf8", guests::bad_utf8().build())
        .tool("stops", stops.build())
        .tool("echo", guests::echo().build())
        .turn();
    for name in ["utf8", "stops"] {
        assert_eq!(repeated(&turn, name, 20).await.0, ToolStatus::Trapped);
        assert_eq!(turn.ask("echo").await, said(ToolStatus::Passed, "{}"));
    }
}

#[tokio::test]
async fn w_04_a_fork_bomb_of_tools_ends_at_its_depth() {
    // Each tool calls all the others; none can be inside itself.
    let calls = |other: &str| delegates().build_with_data(other);
    let mut capsule = Capsule::with("a", calls("b"))
        .tool("b", calls("c"))
        .tool("c", calls("a"));
    capsule.grants.limits.registry_depth = 2;
    let text = "tool 'a' failed: tool 'b' failed: tool 'c' was not run: calls may be 2 deep (a -> b -> c; `limits.registry_depth`)";
    assert_eq!(repeated(&capsule.turn(), "a", 50).await, said(ToolStatus::Failed, text));
}

#[tokio::test]
async fn w_05_a_thousand_dropped_requests_leave_no_memory_and_no_connection() {
    // It accepts and never answers.
    let server = Server::answering("").await;
    let capsule =
        granted(Fetch::http(&server.authority()).build(), &[&server.origin()]).tool("echo", guests::echo().build());
    let turn = capsule.turn();
    let _alone = MEASURES.lock().await;
    let before = resident();
    for _ in 0..1000 {
        let mut call = Box::pin(turn.call("fetch", json!({})));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let (started, ended) = turn.log.ends();
    assert_eq!((started, ended), (1000, vec![ToolStatus::Cancelled; 1000]));
    assert_eq!(turn.ask("echo").await, said(ToolStatus::Passed, "{}"));
    assert!(resident().saturating_sub(before) < SLACK);
}

#[tokio::test]
async fn w_01_a_server_that_never_answers_holds_a_call_until_its_deadline() {
    let server = Server::answering("").await;
    let capsule = granted(Fetch::http(&server.authority()).build(), &[&server.origin()]);
    let turn = capsule.turn();
    let call = tokio::spawn(turn.call("fetch", json!({})));
    while server.heads().is_empty() {
        tokio::task::yield_now().await;
    }
    capsule.clock.advance(Duration::from_secs(60));
    assert_eq!(call.await.unwrap().status, ToolStatus::TimedOut);
    let call = tokio::spawn(turn.call("fetch", json!({})));
    while server.heads().len() < 2 {
        tokio::task::yield_now().await;
    }
    turn.cancel.cancel(CancelReason::Caller);
    assert_eq!(call.await.unwrap().status, ToolStatus::Cancelled);
}

#[tokio::test]
async fn w_01_an_answer_that_stops_half_way_is_given_up_when_the_guest_says() {
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello").await;
    let authority = server.authority();
    let patient = Fetch {
        patience: Some(1_000_000_000),
        ..Fetch::http(&authority)
    };
    let capsule = granted(patient.build(), &[&server.origin()]);
    let call = tokio::spawn(capsule.turn().call("fetch", json!({})));
    // Connected; what sleeps from now on is the call's own deadline and the guest's patience.
    while server.heads().is_empty() {
        tokio::task::yield_now().await;
    }
    capsule.clock.sleepers(2).await;
    capsule.clock.advance(Duration::from_secs(1));
    let cut = capsule_api::ToolReply::new(ToolStatus::Failed, "tool 'fetch' failed: cut");
    assert_eq!(call.await.unwrap(), cut);
}
