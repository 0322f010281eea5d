//! After each attack of the suite the host is where it was: descriptors to the last one, threads, memory. Counted in a process of its own,
//! in which no other test opens anything.

use std::{
    collections::BTreeMap,
    env, fs,
    process::Command,
    time::{Duration, Instant},
};

use capsule_api::ToolStatus::{self, Denied, Failed, Passed, TimedOut, Trapped};
use capsule_tools::{Mode, Preopen};
use serde_json::json;

use crate::{
    attacks_network::{Server, granted, resolving_to},
    guests::{self, Guest, delegates, guest},
    guests_net::{Fetch, looks_up, socket},
    support::{Capsule, Turn},
};

/// Set in the process that measures.
const ALONE: &str = "CAPSULE_TEST_ALONE";
/// Calls before the count, which fill caches and the allocator's own stock, and calls that are counted.
const WARM: usize = 3;
const COUNTED: usize = 12;
/// Bytes that the allocator may have more of after so many calls: less than one call of the attacks on memory takes.
const SLACK: usize = 2 << 20;
/// How long closed connections may take to be gone.
const SETTLES: Duration = Duration::from_secs(20);

/// One attack: the capsule that makes it, and how each of its calls ends.
struct Attack {
    name: String,
    capsule: Capsule,
    ends: ToolStatus,
}

fn attack(name: impl Into<String>, capsule: Capsule, ends: ToolStatus) -> Attack {
    let name = name.into();
    Attack { name, capsule, ends }
}

/// A capsule whose one tool, `x`, has a granted directory.
fn with_directory(guest: &Guest, data: &str, mode: Mode) -> Capsule {
    let mut capsule = Capsule::with("x", guest.build_with_data(data));
    for name in ["one", "two"] {
        let host = capsule.directory(name);
        fs::write(host.join("notes.txt"), "keep me").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", host.join("link")).unwrap();
        let guest = format!("/{name}");
        capsule.grants.filesystem.push(Preopen { host, guest, mode });
    }
    capsule
}

fn on_files() -> Vec<Attack> {
    let open = |flags, rights, path: &str| {
        let name = format!("open {path} with {flags} {rights}");
        attack(
            name,
            with_directory(&guests::opens(flags, rights), path, Mode::Ro),
            Failed,
        )
    };
    let across = |function: &str| {
        let capsule = with_directory(&guests::takes_across(function), "notes.txt", Mode::Ro);
        attack(function, capsule, Failed)
    };
    vec![
        open(0, 1, "../outside.txt"),
        open(0, 1, "/etc/passwd"),
        open(0, 1, "link"),
        open(0, 1, "link/"),
        open(0, 1, "/proc/self/environ"),
        open(0, 2, "notes.txt"),
        open(8, 1, "notes.txt"),
        open(1, 2, "new.txt"),
        across("rename-at"),
        across("link-at"),
        attack(
            "a link to /etc",
            with_directory(&guests::links_to(), "/etc/passwd", Mode::Rw),
            Failed,
        ),
        attack("files without end", opens_without_end(), Trapped),
        attack(
            "the environment",
            Capsule::with("x", guests::environment().build()),
            Failed,
        ),
    ]
}

fn opens_without_end() -> Capsule {
    with_directory(&guests::opens_without_end(), "notes.txt", Mode::Ro)
}

fn on_the_network(server: &Server, moved: &Server) -> Vec<Attack> {
    let here = server.authority();
    let fetch = |authority: &str, grants: &[&str]| {
        let mut capsule = granted(Fetch::http(authority).build(), grants);
        capsule.sources[0].name = "x".into();
        capsule
    };
    let own = |guest: Vec<u8>| {
        let mut capsule = granted(guest, &[&server.origin()]);
        capsule.sources[0].name = "x".into();
        capsule
    };
    let name = format!("api.test:{}", server.port);
    let named = format!("http://{name}");
    vec![
        attack("another host", fetch("evil.test", &["https://api.test"]), Denied),
        attack("an address", fetch(&here, &["https://api.test"]), Denied),
        attack(
            "a name of loopback",
            resolving_to(fetch(&name, &[&named]), "127.0.0.1"),
            Denied,
        ),
        attack(
            "a name of a metadata server",
            resolving_to(fetch(&name, &[&named]), "169.254.169.254"),
            Denied,
        ),
        attack("a redirect", fetch(&moved.authority(), &[&moved.origin()]), Passed),
        attack("a TCP socket", own(socket("tcp", server.port).build()), Failed),
        attack("a UDP socket", own(socket("udp", 0).build()), Failed),
        attack("a look-up", own(looks_up().build_with_data("localhost")), Failed),
    ]
}

fn on_memory() -> Vec<Attack> {
    let plain = |name: &str, guest: Guest, ends| attack(name, Capsule::with("x", guest.build()), ends);
    let mut balloon = Capsule::with("x", guests::balloon().build());
    balloon.grants.limits.memory = 64 << 20;
    let mut flood = Capsule::with("x", guests::writes("stdout", true).build_with_data(&"x".repeat(900)));
    flood.grants.limits.output = 8 << 20;
    let table = r#"(component
        (core module $m
          (table $t 1 funcref)
          (func (export "go") (result i32)
            (loop $more (br_if $more (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
            unreachable))
        (core instance $i (instantiate $m))
        (func (export "go") (result u32) (canon lift (core func $i "go"))))"#;
    let handles = guest("(loop $more (drop (call $fields)) (br $more)) unreachable").imports(
        "wasi:http/types@0.2.3",
        r#"(import "wasi:http/types@0.2.3" "[constructor]fields" (func $fields (result i32)))"#,
    );
    let large = guest(
        "(drop (memory.grow (i32.const 3000))) (memory.fill (i32.const 65536) (i32.const 0x78) (i32.const 100000000))
         (call $ret (i32.const 0) (i32.const 65536) (i32.const 100000000))",
    );
    let stops = guest("(call $text (i32.const 64) (global.get $data)) unreachable").imports(
        "murmur:stream/events@0.1.0",
        r#"(import "murmur:stream/events@0.1.0" "emit-chunk" (func $text (param i32 i32)))"#,
    );
    let mut bomb = Capsule::with("x", delegates().build_with_data("y")).tool("y", delegates().build_with_data("x"));
    bomb.grants.limits.registry_depth = 2;
    vec![
        attack("a memory balloon", balloon, Trapped),
        attack(
            "a table balloon",
            Capsule::with("x", wat::parse_str(table).unwrap()),
            Trapped,
        ),
        plain("handles by the million", handles, Trapped),
        plain("deep recursion", guests::recursion(), Trapped),
        attack("a flood of output", flood, Trapped),
        plain("a result of 100 MB", large, Passed),
        plain(
            "a result that claims a gigabyte",
            guest("(call $ret (i32.const 0) (i32.const 64) (i32.const 1073741824))"),
            Trapped,
        ),
        attack(
            "bytes that swell as values",
            Capsule::with("x", crate::functions::bytes(50_000_000)),
            Trapped,
        ),
        plain("text that is not UTF-8", guests::bad_utf8(), Trapped),
        plain("a trap in a stream", stops, Trapped),
        attack("a fork bomb", bomb, Failed),
        plain("a guest that spins", guests::spin(), TimedOut),
        plain("a guest that sleeps in the host", guests::sleep(), TimedOut),
    ]
}

/// What this process holds.
#[derive(Debug, PartialEq)]
struct Held {
    descriptors: BTreeMap<String, usize>,
    threads: usize,
}

impl Held {
    fn now() -> Self {
        let mut descriptors = BTreeMap::new();
        for entry in fs::read_dir("/proc/self/fd").unwrap() {
            let Ok(target) = fs::read_link(entry.unwrap().path()) else {
                continue;
            };
            // The number of a socket or pipe says nothing; the directory that is being read is among the entries.
            let kind = target.to_string_lossy().split(':').next().unwrap().to_owned();
            if !kind.starts_with("/proc/") {
                *descriptors.entry(kind).or_default() += 1;
            }
        }
        let threads = fs::read_dir("/proc/self/task").unwrap().count();
        Self { descriptors, threads }
    }
}

fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Waits until what was open is closed: the other end of a connection takes its time.
async fn settled(expected: &Held, attack: &str) {
    let started = Instant::now();
    loop {
        let now = Held::now();
        let threads_fit = now.threads <= expected.threads;
        if now.descriptors == expected.descriptors && threads_fit {
            return;
        }
        let given_up = started.elapsed() > SETTLES;
        assert!(!given_up, "{attack}: {now:?} is held, where it was {expected:?}");
        tokio::task::yield_now().await;
    }
}

async fn call(turn: &Turn, attack: &Attack) {
    let call = tokio::spawn(turn.call("x", json!({})));
    if attack.ends == TimedOut {
        attack.capsule.clock.sleepers(1).await;
        attack.capsule.clock.advance(attack.capsule.grants.limits.deadline);
    }
    let reply = call.await.unwrap();
    // What a test keeps of the results is not the host's.
    turn.log.clear();
    assert_eq!(reply.status, attack.ends, "{}: {}", attack.name, reply.joined_text());
}

async fn measured(attack: &Attack) {
    let before_it = Held::now();
    let turn = attack.capsule.turn();
    for _ in 0..WARM {
        call(&turn, attack).await;
    }
    let (before, memory) = (Held::now(), resident());
    for _ in 0..COUNTED {
        call(&turn, attack).await;
    }
    settled(&before, &attack.name).await;
    let grown = resident().saturating_sub(memory);
    assert!(
        grown < SLACK,
        "{}: {grown} bytes more after {COUNTED} calls",
        attack.name
    );
    drop(turn);
    let gone = Held {
        threads: before.threads,
        ..before_it
    };
    settled(&gone, &attack.name).await;
}

async fn suite() {
    let server = Server::with_body("hello").await;
    let location = format!("location: {}/", server.origin());
    let answer = format!("HTTP/1.1 302 Found\r\n{location}\r\ncontent-length: 5\r\n\r\nmoved");
    let moved = Server::answering(answer).await;
    let attacks = [on_files(), on_the_network(&server, &moved), on_memory()];
    for attack in attacks.iter().flatten() {
        measured(attack).await;
    }
}

#[test]
fn w_04_after_each_attack_descriptors_threads_and_memory_are_where_they_were() {
    if env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        runtime.unwrap().block_on(suite());
        return;
    }
    let name = "aftermath::w_04_after_each_attack_descriptors_threads_and_memory_are_where_they_were";
    let ran = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(told.contains("1 passed"), "{told}");
}
