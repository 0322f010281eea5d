//! `capsule doctor`: a capsule that is right, wrong, and one whose transport cannot run.

use std::fs;

use serde_json::Value;

use crate::support::{Sandbox, prebuilt};

fn capsule(sandbox: &Sandbox, tools: &str, capabilities: &str, inference: &str) {
    let dir = sandbox.work("box");
    fs::create_dir_all(dir.join("data")).unwrap();
    for name in ["hello", "read-file"] {
        let file = format!("{name}.wasm");
        fs::copy(prebuilt(&file), dir.join(file)).unwrap();
    }
    let manifest = format!(
        "name: box\nversion: 0.1.0\ntools:\n  - {{name: hello, component: hello.wasm}}\n  - {{name: read-file, component: read-file.wasm{tools}}}\n\
         capabilities: {{{capabilities}}}\ninference: {{{inference}}}\n"
    );
    fs::write(dir.join("capsule.yaml"), manifest).unwrap();
}

#[test]
fn doctor_says_in_words_what_each_tool_may_do() {
    let sandbox = Sandbox::new();
    let data = "filesystem: [{path: data, at: /data, mode: ro}]";
    capsule(&sandbox, "", data, "transport: echo");
    let ran = sandbox.run(&["doctor", "box"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    for line in [
        "may read files below /data (",
        "  echo (this capsule's)\n    could run\n",
        "a call takes at most 1m, 256MiB of memory",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
}

#[test]
fn doctor_as_json_holds_what_is_declared_against_what_is_imported() {
    let sandbox = Sandbox::new();
    let grants = "filesystem: [{path: data, at: /data, mode: ro}], network: {allow: [api.test]}";
    capsule(&sandbox, ", capabilities: {}", grants, "transport: echo");
    let ran = sandbox.run(&["doctor", "box", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&report["could_run"], &report["transport"]),
        (&true.into(), &"echo".into())
    );
    let tool = |name: &str| {
        let tools = report["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap().clone()
    };
    // Narrowed to nothing by its own block.
    assert_eq!(tool("read-file")["may"], Value::Array(Vec::new()));
    assert_eq!(tool("hello")["profile"], "wasi");
    let network = "it is granted the network and cannot use it: it does not import wasi:http/outgoing-handler";
    assert!(
        tool("hello")["notes"].as_array().unwrap().contains(&network.into()),
        "{report:#}"
    );
    let transports = report["transports"].as_array().unwrap();
    let echo = transports.iter().find(|transport| transport["name"] == "echo").unwrap();
    assert_eq!((&echo["usable"], &echo["error"]), (&true.into(), &Value::Null));
}

#[test]
fn doctor_exits_3_where_the_capsule_s_transport_could_not_run() {
    let sandbox = Sandbox::new();
    capsule(
        &sandbox,
        "",
        "",
        "transport: claude, api_key: k, command: /nowhere/claude",
    );
    let ran = sandbox.run(&["doctor", "box"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(
        ran.out.contains("could not run") || ran.out.contains("not set up"),
        "{}",
        ran.out
    );
}

#[test]
fn doctor_exits_2_where_a_tool_asks_for_more_than_its_capsule_has() {
    let sandbox = Sandbox::new();
    capsule(
        &sandbox,
        ", capabilities: {network: {allow: [api.test]}}",
        "",
        "transport: echo",
    );
    let ran = sandbox.run(&["doctor", "box"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    let why = "`network.allow` has `https://api.test`, which is more than the capsule's (nothing)";
    assert!(ran.err.contains(why), "{}", ran.err);
}

#[test]
fn doctor_outside_a_capsule_shows_the_transports() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["tools"], Value::Null);
    assert!(report["transports"].as_array().unwrap().len() > 1);
}
