//! Ctrl-C and SIGTERM.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Stdio},
};

use capsule_fakes::{Position, Reply, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    guests,
    peer::Peer,
    support::{Ran, Sandbox, files, lines},
};

fn tell(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    kill_process(pid, signal).unwrap();
}

/// The run ended as cancelled, in order, and nothing is left.
#[track_caller]
fn assert_cancelled(sandbox: &Sandbox) {
    let trace = sandbox.trace();
    let end = trace.last().unwrap();
    assert_eq!(
        (&end["kind"], &end["outcome"]),
        (&json!("run_end"), &json!({"is": "cancelled"}))
    );
    assert_eq!(end.get("residue"), None);
    assert_eq!(sandbox.leftovers(), [] as [std::path::PathBuf; 0]);
    // No process either: each would have this sandbox in its environment.
    let ours = sandbox.path("").display().to_string();
    let ours = format!("HOME={ours}");
    let left: Vec<_> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            environ.windows(ours.len()).any(|window| window == ours.as_bytes())
        })
        .map(|entry| entry.path())
        .collect();
    assert_eq!(left, [] as [std::path::PathBuf; 0]);
}

#[test]
fn a_signal_ends_a_run_whose_provider_hangs() {
    let stalls = || Reply::text("A long story").stall(Position::Events(4));
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for script in [
            Script::new().then(Reply::text("x").hang()),
            Script::new().then(stalls()),
        ] {
            let peer = Peer::start(script);
            let sandbox = peer.hello();
            let child = sandbox.spawn(&["run", "hello", "-t", "x"]);
            peer.wait_until_hanging(1);
            tell(&child, signal);
            let ran = Ran::of(&child.wait_with_output().unwrap())
                .code(code)
                .says(&["cancelled"]);
            assert_eq!(ran.out, "");
            assert_cancelled(&sandbox);
        }
    }
}

fn with_spinning_tool() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("t/spin.wasm", guests::spin());
    let tools = "tools: [{name: spin, component: spin.wasm, description: Spins., input_schema: {type: object}}]\n";
    sandbox.write(
        "t/capsule.yaml",
        format!("name: t\nversion: 0.1.0\ndescription: Spins.\n{tools}inference: {{transport: echo}}\n"),
    );
    sandbox
}

#[test]
fn a_signal_ends_a_run_whose_tool_spins() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let sandbox = with_spinning_tool();
        let mut child = sandbox.spawn(&["run", "t", "--json", "-t", "call spin {}"]);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut seen = String::new();
        while !seen.contains("\"kind\":\"call_start\"") {
            assert_ne!(out.read_line(&mut seen).unwrap(), 0, "{seen}");
        }
        tell(&child, signal);
        out.read_to_string(&mut seen).unwrap();
        let ran = Ran::of(&child.wait_with_output().unwrap()).code(code);
        let records = lines(&seen);
        let ended = |record: &&Value| record["kind"] == "call_end";
        assert_eq!(records.iter().find(ended).unwrap()["status"], "cancelled", "{ran:#?}");
        assert_cancelled(&sandbox);
    }
}

#[test]
fn a_signal_ends_a_tool_called_without_a_model() {
    let sandbox = with_spinning_tool();
    // The tool says nothing when it runs, so the signal may come before or within the call.
    let mut command = sandbox.command(["tool", "call", "spin", "-", "--capsule", "t"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{}").unwrap();
    wait_for_handler(&child);
    tell(&child, Signal::INT);
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{ran:#?}");
}

/// Waits until the process catches SIGINT: the bit of the signal in `SigCgt`.
fn wait_for_handler(child: &Child) {
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0 {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_second_ctrl_c_leaves_at_once() {
    // Nobody reads standard output, so the run cannot end in order: the first signal alone does not end it.
    let sandbox = with_spinning_tool();
    let mut command = sandbox.command(["run", "t", "--json", "-t", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all("x".repeat(1 << 20).as_bytes())
        .unwrap();
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let mut sent = 0;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => {
                tell(&child, Signal::INT);
                sent += 1;
                std::thread::yield_now();
            }
        }
    };
    assert_eq!(status.code(), Some(130));
    assert!(sent >= 2, "one signal must not cut a run off");
    assert_eq!(files(&sandbox.path("home")), [] as [std::path::PathBuf; 0]);
}
