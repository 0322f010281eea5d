//! What a newcomer meets: half a manifest, a slip of the hand, and what is said about each.

use std::fs;

use crate::support::{Ran, Sandbox, prebuilt};

/// A capsule `box` with the tool `hello` and these lines after the name.
fn capsule(rest: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("box/hello.wasm", fs::read(prebuilt("hello.wasm")).unwrap());
    let tools = "tools:\n  - {name: hello, component: hello.wasm}\n";
    sandbox.write("box/capsule.yaml", format!("name: box\nversion: 0.1.0\n{tools}{rest}"));
    sandbox
}

#[test]
fn tools_are_listed_called_and_served_without_a_model() {
    let wrong = "inference: {transport: http, model: 7, nobody: knows}\n";
    for inference in ["", "inference: {transport: nowhere}\n", wrong] {
        let sandbox = capsule(inference);
        let listed = sandbox.run(&["tool", "list", "--capsule", "box"]).code(0);
        assert!(listed.out.starts_with("hello\n"), "{}", listed.out);
        let called = sandbox.run(&["tool", "call", "hello", r#"{"name": "Ada"}"#, "--capsule", "box"]);
        assert_eq!(called.code(0).answer(), "Hello, Ada!");
        // A client that leaves at once.
        sandbox.run(&["mcp", "box"]).code(0);
        sandbox.run(&["build", "box"]).code(0);
    }
    // A run needs one.
    let ran = capsule("").run(&["run", "box", "-t", "x"]).code(2);
    ran.says(&["the key `driver` is missing"]);
}

#[test]
fn doctor_says_of_a_capsule_without_a_model_that_its_transport_is_not_set_up() {
    let sandbox = capsule("");
    // As a run ends: what is missing is the manifest's.
    let ran = sandbox.run(&["doctor", "box"]).code(2);
    let wanted = "  http (this capsule's)\n    not set up: the transport http needs `driver`\n    Give it in `inference`, for example: ";
    assert!(ran.out.contains(wanted), "{}", ran.out);
    // `transports`, which asks without a capsule, says it in the same words.
    let listed = sandbox.run(&["transports"]).code(0);
    assert!(
        listed.out.contains("not set up: the transport http needs `driver`"),
        "{}",
        listed.out
    );
    // What is there has to be right all the same.
    let ran: Ran = capsule("inference: {modle: x}\n").run(&["doctor", "box"]).code(2);
    ran.says(&["unknown key `modle`"]);
}
