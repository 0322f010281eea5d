//! `capsule build` around programs that stand for cargo and the compiler, so that no toolchain is needed; `tool_author` has the real ones.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

use crate::{
    guests,
    support::{ROOT, Sandbox},
};

/// Leaves `made.wasm` of the home directory as cargo would, with a rule for its sources.
const GOOD: &str = r#"
mkdir -p out && cp "$HOME/made.wasm" out/a.wasm
printf '%s\n' "$PWD/out/a.wasm: $PWD/src/lib.rs" > out/a.d
echo "   Compiling a" >&2
printf '{"reason":"compiler-artifact","package_id":"path+file://%s#0.1.0","manifest_path":"%s/Cargo.toml","filenames":["%s/out/a.wasm"]}\n' "$PWD" "$PWD" "$PWD"
"#;

/// A capsule with the sources of the tool `hello`, and a toolchain whose `cargo build` is this script.
fn capsule(build: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(
        "c/capsule.yaml",
        manifest("tools: [{name: hello, component: src/hello}]\n"),
    );
    sandbox.write("c/src/hello/Cargo.toml", "");
    sandbox.write("c/src/hello/src/lib.rs", "// as built\n");
    let hello = fs::read(format!("{ROOT}/plugins/tools/prebuilt/hello.wasm")).unwrap();
    fs::write(sandbox.path("home/made.wasm"), hello).unwrap();
    let bin = sandbox.path("toolchain");
    fs::create_dir_all(bin.join("lib")).unwrap();
    fs::write(bin.join("lib/libstd-1.rlib"), "").unwrap();
    let rustc = format!("echo {}/lib", bin.display());
    program(&bin.join("rustc"), &rustc);
    let cargo = format!("case $1 in\nlocate-project) echo \"$PWD/Cargo.toml\";;\nbuild) {build} ;;\nesac");
    program(&bin.join("cargo"), &cargo);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    sandbox.env("PATH", path)
}

fn manifest(rest: &str) -> String {
    format!("name: c\nversion: 0.1.0\ninference: {{transport: echo}}\n{rest}")
}

fn program(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

const CALL: &[&str] = &["tool", "call", "hello", r#"{"name": "Ada"}"#, "--capsule", "c"];

#[test]
fn sources_are_built_once_and_a_change_asks_for_it_again() {
    let sandbox = capsule(GOOD);
    sandbox
        .run(CALL)
        .code(2)
        .says(&["are not built yet", "cli-not-built", "`capsule build`"]);

    let built = sandbox
        .run(&["build", "c"])
        .code(0)
        .says(&["building hello in c/src/hello", "Compiling a"]);
    assert!(built.out.starts_with("hello [wasi]\n"), "{}", built.out);
    assert!(
        built.out.contains("imports ") && built.out.contains("may touch nothing"),
        "{}",
        built.out
    );
    assert_eq!(sandbox.run(CALL).code(0).out, "Hello, Ada!\n");
    sandbox.run(&["doctor", "c"]).code(0);

    sandbox.write("c/src/hello/src/lib.rs", "// changed\n");
    sandbox
        .run(CALL)
        .code(2)
        .says(&["changed since they were built: src/lib.rs", "cli-stale"]);
    sandbox.run(&["build", "c/capsule.yaml"]).code(0);
    assert_eq!(sandbox.run(CALL).code(0).out, "Hello, Ada!\n");
}

#[test]
fn programs_get_the_same_as_json() {
    let sandbox = capsule(GOOD);
    let ran = sandbox.run(&["build", "c", "--tool", "hello", "--json"]).code(0);
    let mut tools = ran.json()["tools"].take();
    let tool = &mut tools.as_array_mut().unwrap()[0];
    assert_eq!(tool["component"], "c/src/hello/target/capsule/component.wasm");
    let size = fs::metadata(sandbox.path("home/made.wasm")).unwrap().len();
    assert_eq!(
        (&tool["name"], &tool["bytes"], &tool["may"]),
        (&json!("hello"), &json!(size), &json!([]))
    );

    let failed = sandbox
        .run(&["build", "c", "--tool", "helo", "--json"])
        .code(2)
        .says(&["`hello`?"]);
    assert_eq!(failed.json()["errors"][0]["code"], "cli-usage");
}

#[test]
fn what_cannot_be_built_says_why_and_what_to_do() {
    let failing = capsule("printf 'error: \\033[2Jexpected `;`\\n' >&2; exit 101");
    failing
        .run(&["build", "c"])
        .code(1)
        .says(&["error: [2Jexpected `;`", "cli-build", "exit status: 101"]);

    let locked = capsule("echo 'cannot update the lock file because --locked was passed' >&2; exit 101");
    locked.write("c/src/hello/Cargo.lock", "");
    locked
        .run(&["build", "c"])
        .code(1)
        .says(&["`capsule build --unlocked`"]);

    let target = capsule(GOOD);
    fs::remove_file(target.path("toolchain/lib/libstd-1.rlib")).unwrap();
    target
        .run(&["build", "c"])
        .code(1)
        .says(&["rustup target add wasm32-wasip2", "cli-build-target"]);

    let none = capsule(GOOD).env("PATH", "/nowhere");
    none.run(&["build", "c"])
        .code(1)
        .says(&["`rustc` could not be started", "https://rustup.rs"]);

    let script = capsule(GOOD);
    fs::remove_file(script.work("c/src/hello/Cargo.toml")).unwrap();
    script.write("c/src/hello/package.json", "{}");
    script
        .run(&["build", "c"])
        .code(1)
        .says(&["has no Cargo.toml", "JavaScript", "cli-build-sources"]);

    let alien = capsule(GOOD);
    fs::write(alien.path("home/made.wasm"), guests::needs_a_database()).unwrap();
    alien
        .run(&["build", "c"])
        .code(2)
        .says(&["acme:database/query", "tool-imports-unmet"]);
}

#[test]
fn a_capsule_of_components_has_nothing_to_build() {
    let sandbox = Sandbox::new().with_hello();
    let ran = sandbox.run(&["build", "hello"]).code(0);
    assert!(ran.out.starts_with("nothing to build"), "{}", ran.out);
    sandbox
        .run(&["build", "hello", "--tool", "hello"])
        .code(2)
        .says(&["has no sources"]);
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let sandbox = capsule(GOOD);
    let tools = "tools: [{name: hello, component: src/hello}, {name: gone, component: gone.wasm}]\n";
    sandbox.write("c/capsule.yaml", manifest(tools));
    sandbox
        .run(CALL)
        .code(2)
        .says(&["cli-not-built", "tool `gone`", "tool-file"]);
    let ran = sandbox
        .run(&["tool", "list", "--capsule", "c", "--json"])
        .code(2)
        .json();
    let codes: Vec<_> = ran["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| &error["code"])
        .collect();
    assert_eq!(codes, ["cli-not-built", "tool-file"]);
    // The tool that is built is checked by itself.
    sandbox.run(&["build", "c"]).code(0);
}

#[test]
fn cargo_gets_what_it_needs_of_the_environment_and_no_more() {
    let sandbox = capsule("env | sed 's/=.*//' | sort > \"$HOME/env\"; exit 1")
        .env("CARGO_HOME", "/nowhere")
        .env("RUSTFLAGS", "-C target-cpu=native")
        .env("CARGO_REGISTRY_TOKEN", "sk-hunter2")
        .env("OPENAI_API_KEY", "sk-hunter2");
    sandbox.run(&["build", "c"]).code(1);
    let seen = fs::read_to_string(sandbox.path("home/env")).unwrap();
    // `sh` sets these of its own.
    let own = ["OLDPWD", "PWD", "SHLVL", "_"];
    let names: Vec<_> = seen.lines().filter(|name| !own.contains(name)).collect();
    assert_eq!(names, ["CARGO_HOME", "CARGO_TERM_COLOR", "HOME", "PATH"]);
}

/// Two processes that do not end by themselves; the first ignores what it is asked.
const ENDLESS: &str = "trap '' INT; sleep 600 & echo $! > \"$HOME/child\"; echo $$ > \"$HOME/ready\"; wait; wait";

/// Waits for what the script writes once it runs; both processes.
fn under_way(sandbox: &Sandbox) -> [Pid; 2] {
    let until = Instant::now() + Duration::from_secs(60);
    ["ready", "child"].map(|name| {
        loop {
            let text = fs::read_to_string(sandbox.path("home").join(name)).unwrap_or_default();
            if let Ok(id) = text.trim().parse() {
                return Pid::from_raw(id).unwrap();
            }
            assert!(Instant::now() < until, "it does not start");
            std::thread::yield_now();
        }
    })
}

#[test]
fn ctrl_c_ends_the_build_and_all_that_it_started() {
    let sandbox = capsule(ENDLESS);
    let mut child = sandbox.spawn(&["build", "c"]);
    let started = under_way(&sandbox);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    for id in started {
        assert!(test_kill_process(id).is_err() || is_zombie(id), "{id:?} is still there");
    }
}

#[test]
fn cargo_dies_with_a_host_that_is_killed() {
    let sandbox = capsule(ENDLESS);
    let mut child = sandbox.spawn(&["build", "c"]);
    let [cargo, grandchild] = under_way(&sandbox);
    child.kill().unwrap();
    child.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while test_kill_process(cargo).is_ok() && !is_zombie(cargo) {
        assert!(Instant::now() < until, "it outlives its host");
        std::thread::yield_now();
    }
    // Nobody is left to end this one but the test.
    let _ = kill_process(grandchild, Signal::KILL);
}

/// A process of nobody's, where nothing reaps it, is as gone as it can be.
fn is_zombie(id: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}
