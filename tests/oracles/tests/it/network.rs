//! Where the CLIs connect to and what they run, as the kernel sees it.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
};

use capsule_api::Input;
use capsule_fakes::{Reply, Script, program};
use serde_json::{Value, json};

use crate::{
    cli::{CLAUDE, Cli, of_each_cli},
    logins::Home,
    support::{Scene, Under},
    watch::cli_of,
};

of_each_cli!(
    only_the_provider_and_the_bridge_are_connected_to_and_nothing_is_run,
    with_a_lent_login_no_others_are_connected_to,
);

/// Tells the traced process where to write which addresses are its own.
const TRACED: &str = "CAPSULE_TEST_TRACED";

async fn only_the_provider_and_the_bridge_are_connected_to_and_nothing_is_run(cli: &Cli) {
    let test = "only_the_provider_and_the_bridge_are_connected_to_and_nothing_is_run";
    traced(cli, test, json!({})).await;
}

async fn with_a_lent_login_no_others_are_connected_to(cli: &Cli) {
    let home = Home::of(cli);
    traced(cli, "with_a_lent_login_no_others_are_connected_to", home.settings()).await;
}

/// Runs this very test again under the kernel's eyes, with these settings.
async fn traced(cli: &Cli, test: &str, settings: Value) {
    let Some(path) = cli.path() else { return };
    if let Some(file) = std::env::var_os(TRACED) {
        return one_run(cli, file.as_ref(), settings).await;
    }
    let Some(strace) = program("CAPSULE_TEST_STRACE", "/usr/bin/strace", "apt-get install strace") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (trace, own) = (dir.path().join("trace"), dir.path().join("own"));
    let ran = Command::new(strace)
        .args(["-f", "--seccomp-bpf", "-qq", "-s", "256", "-e", "signal=none"])
        .args(["-e", "trace=connect,sendto,sendmsg,sendmmsg,execve,execveat", "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("network::{}::{test}", cli.name), "--nocapture"])
        .env(TRACED, &own)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    let own = std::fs::read_to_string(own).expect("the traced test ran");
    let own: BTreeSet<SocketAddr> = own.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(own.len(), 2, "the provider and the bridge");
    let trace = std::fs::read_to_string(trace).unwrap();
    let seen: Vec<_> = trace.lines().filter_map(reached).collect();
    let wanted: BTreeSet<_> = own
        .into_iter()
        .map(|address| Reached::Address(address.to_string()))
        .collect();
    assert_eq!(seen.iter().cloned().collect::<BTreeSet<_>>(), wanted);
    let run = programs(&trace, &path);
    assert!(run.is_subset(&helpers(cli)), "{run:?}");
}

/// A run with a tool call, to its end.
async fn one_run(cli: &Cli, file: &Path, settings: Value) {
    let script = Script::new()
        .then(Reply::new().call("call-1", "echo", json!({"text": "hello"})))
        .then(
            Reply::new()
                .call("call-2", "meet", json!({}))
                .call("call-3", "meet", json!({})),
        )
        .then(Reply::text("stall ").stall(cli.first_piece()));
    let scene = cli.set(script, settings).await.unwrap();
    let mut talk = scene.open(scene.spec()).await;
    let (under, io) = Under::new();
    let turn = talk.0.turn(Input::text("Go."), io);
    let look = async {
        scene.provider.wait_for_requests(3).await;
        let addresses = format!("{}\n{}\n", scene.provider.address(), bridge_of(&scene));
        std::fs::write(file, addresses).unwrap();
        scene.provider.gate().open();
    };
    let (outcome, ()) = tokio::join!(turn, look);
    outcome.unwrap();
    talk.close().await;
    under.log.close();
}

/// The address of the running CLI's bridge, as the CLI was told it.
pub(crate) fn bridge_of(scene: &Scene) -> SocketAddr {
    let seen = cli_of(scene);
    let args: Vec<_> = seen.args.lines().collect();
    let told = match args.iter().position(|arg| *arg == "--mcp-config") {
        Some(at) => std::fs::read_to_string(args[at + 1]).unwrap(),
        None => args.concat(),
    };
    let end = told.find("/mcp").unwrap();
    let start = told[..end].rfind("http://").unwrap() + "http://".len();
    told[start..end].parse().unwrap()
}

/// What a call of the system reached for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    /// An address and a port.
    Address(String),
    /// Anything else, as it was written.
    Other(String),
}

/// The address in a line of the trace. Local sockets and those to the kernel reach nobody.
fn reached(line: &str) -> Option<Reached> {
    let call = line.split_once(' ')?.1.trim_start();
    if !call.starts_with("connect(") && !call.starts_with("send") {
        return None;
    }
    let port = between(call, "sin_port=htons(", ")");
    let address = between(call, "inet_addr(\"", "\")");
    if let (Some(port), Some(address)) = (port, address) {
        return Some(Reached::Address(format!("{address}:{port}")));
    }
    call.contains("AF_INET6").then(|| Reached::Other(call.to_owned()))
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = text.split_once(before)?.1;
    Some(rest.split_once(after)?.0)
}

/// The programs that were started, by their names, without this test and the CLI.
fn programs(trace: &str, cli: &Path) -> BTreeSet<String> {
    let own = [
        std::env::current_exe().unwrap(),
        cli.to_owned(),
        cli.canonicalize().unwrap(),
    ];
    let started = trace
        .lines()
        .filter(|line| line.contains("execve") && line.ends_with("= 0"));
    let paths = started.filter_map(|line| between(line, "\"", "\""));
    paths
        .filter(|path| own.iter().all(|own| own != Path::new(path)))
        .filter_map(|path| Path::new(path).file_name()?.to_str().map(str::to_owned))
        .collect()
}

/// What a CLI runs to learn about the machine: `getconf` and `lsb_release`, which is a script of these others.
fn helpers(cli: &Cli) -> BTreeSet<String> {
    let names: &[&str] = if cli.name == CLAUDE.name {
        &[]
    } else {
        &["getconf", "lsb_release", "getopt", "tr", "cut"]
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_line_of_the_trace_is_read() {
    let connect = r#"12  connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("1.2.3.4")}, 16) = -1 EINPROGRESS"#;
    assert_eq!(reached(connect), Some(Reached::Address("1.2.3.4:443".into())));
    let datagram =
        r#"12  sendto(3, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("1.2.3.4")}, 16) = 1"#;
    assert_eq!(reached(datagram), Some(Reached::Address("1.2.3.4:53".into())));
    let six =
        r#"12  connect(3, {sa_family=AF_INET6, sin6_port=htons(443), inet_pton(AF_INET6, "::1", &sin6_addr)}, 28) = 0"#;
    assert!(matches!(reached(six), Some(Reached::Other(_))));
    let local = r#"12  connect(3, {sa_family=AF_UNIX, sun_path="/x"}, 110) = 0"#;
    assert_eq!(reached(local), None);
}
