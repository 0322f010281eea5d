//! Places that cannot be written: the answer is shown all the same, and what was not kept is said.

use std::{fs, path::Path, process::Command};

use capsule_fakes::{Reply, Script};

use crate::{
    peer::Peer,
    run::ANSWER,
    support::{Ran, Sandbox, files, skip},
};

#[test]
fn a_state_directory_that_cannot_be_made_costs_the_trace_and_not_the_answer() {
    let sandbox = Sandbox::new().with_hello().env("XDG_STATE_HOME", "/proc/no-such-place");
    let ran = sandbox.run(&["run", "hello"]).code(1);
    assert_eq!(ran.answer(), ANSWER);
    ran.says(&["/proc/no-such-place", "session-storage", "hint:"]);
    assert_eq!(sandbox.leftovers(), [] as [std::path::PathBuf; 0]);
    sandbox.run(&["run", "hello", "--set", "trace.capture=none"]).code(0);
}

#[test]
fn a_context_that_cannot_be_made_costs_the_keeping_and_not_the_answer() {
    let peer = Peer::start(Script::new().then(Reply::text("Hello.")));
    let sandbox = peer.hello().env("XDG_STATE_HOME", "/proc/no-such-place");
    let trace = sandbox.work("t.jsonl").display().to_string();
    let ran = sandbox
        .run(&["run", "hello", "--continue", "talk", "-t", "x", "--trace", &trace])
        .code(1);
    assert_eq!(ran.answer(), "Hello.");
    ran.says(&["/proc/no-such-place", "contexts/talk", "session-storage", "hint:"]);
    peer.assert_clean();
}

#[test]
fn a_full_disk_costs_the_trace_and_not_the_answer() {
    let sandbox = Sandbox::new().with_hello();
    for form in [&[][..], &["--json"]] {
        let ran = sandbox
            .run(&[&["run", "hello", "--trace", "/dev/full"], form].concat())
            .code(1);
        assert!(ran.out.contains("Zofia"), "{ran:#?}");
        ran.says(&["/dev/full", "No space left", "session-trace", "hint:"]);
    }
}

#[test]
fn a_cache_that_cannot_be_written_is_a_warning() {
    let sandbox = Sandbox::new().with_hello().env("XDG_CACHE_HOME", "/proc/no-such-place");
    let ran = sandbox
        .run(&["run", "hello"])
        .code(0)
        .says(&["warning:", "/proc/no-such-place"]);
    assert_eq!(ran.answer(), ANSWER);
}

#[test]
fn a_runtime_directory_that_cannot_be_written_is_an_error() {
    let sandbox = Sandbox::new().with_hello().env("XDG_RUNTIME_DIR", "/proc/self");
    sandbox
        .run(&["run", "hello"])
        .code(1)
        .says(&["/proc/self", "session-storage", "hint:"]);
}

#[test]
fn a_full_state_directory_costs_what_was_to_be_kept_and_not_the_answer() {
    let long = "long ".repeat(4000);
    let Some((sandbox, peer)) = with_mounts(Script::new().then(Reply::text(long.as_str()))) else {
        return;
    };
    let state = sandbox.path("state");
    let mount = format!("mount -t tmpfs -o size=4k tmpfs {}", state.display());
    let ran = in_mounts(
        &sandbox,
        &mount,
        "run hello -t x --continue talk --set trace.capture=content",
    );
    let ran = ran
        .code(1)
        .says(&["No space left", "session-trace", "session-storage", "contexts/talk"]);
    assert_eq!(ran.answer(), long.trim_end_matches('\n'));
    peer.assert_clean();
}

#[test]
fn a_state_directory_that_became_read_only_still_continues_what_it_holds() {
    let script = Script::new()
        .then(Reply::text("Nice to meet you."))
        .then(Reply::text("You are Ada."));
    let Some((sandbox, peer)) = with_mounts(script) else {
        return;
    };
    sandbox
        .run(&["run", "hello", "--continue", "talk", "-t", "I am Ada."])
        .code(0);
    let kept = files(&sandbox.path("state"));
    let state = sandbox.path("state").display().to_string();
    let mount = format!("mount --bind {state} {state} && mount -o remount,ro,bind {state}");
    let ran = in_mounts(&sandbox, &mount, "run hello -t Who? --continue talk").code(1);
    assert_eq!(ran.answer(), "You are Ada.");
    assert_eq!(
        peer.provider().requests()[1].messages().len(),
        3,
        "the first turn is there"
    );
    ran.says(&["Read-only file system", "session-storage"]);
    assert_eq!(files(&sandbox.path("state")), kept);
    peer.assert_clean();
}

/// A sandbox and its provider, where this machine lets a test mount something for one process.
fn with_mounts(script: Script) -> Option<(Sandbox, Peer)> {
    let probe = Command::new("unshare")
        .args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        skip("no mount namespace of its own (`unshare -rm`)");
        return None;
    }
    let peer = Peer::start(script);
    Some((peer.hello(), peer))
}

/// Runs `capsule` in a mount namespace of its own, after this command.
fn in_mounts(sandbox: &Sandbox, mount: &str, args: &str) -> Ran {
    let capsule = sandbox.command(args.split(' '));
    let mut command = Command::new("unshare");
    let script = format!("{mount} && exec \"$0\" \"$@\"");
    command
        .args(["-rm", "sh", "-c", &script])
        .arg(capsule.get_program())
        .args(capsule.get_args());
    command.env_clear().current_dir(sandbox.work(""));
    command.envs(capsule.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Ran::of(&command.output().unwrap())
}

#[test]
fn the_places_follow_home_where_xdg_is_not_set() {
    let sandbox = Sandbox::new().with_hello();
    let mut command = sandbox.command(["run", "hello"]);
    command.env_remove("XDG_STATE_HOME").env_remove("XDG_RUNTIME_DIR");
    // `TMPDIR` stands in for the machine's own temporary directory.
    command.env("TMPDIR", sandbox.path("run"));
    Ran::of(&command.output().unwrap()).code(0);
    let kept = files(&sandbox.path("home"));
    let below = Path::new(".local/state/capsule/hello/runs");
    assert!(
        kept.len() == 1 && kept[0].starts_with(sandbox.path("home").join(below)),
        "{kept:?}"
    );
    assert!(fs::read_dir(sandbox.path("run")).unwrap().next().is_none());
}
