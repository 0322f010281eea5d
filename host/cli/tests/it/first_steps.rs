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

#[test]
fn an_unset_key_ends_a_run_its_plan_and_the_doctor_alike_and_says_where_it_is_asked_for() {
    let inference = "inference:\n  driver: anthropic\n  model: m\n  api_key: ${NOBODY_SETS_IT}\n";
    let sandbox = capsule(inference);
    let place = "box/capsule.yaml:8:12: inference.api_key: the variable `NOBODY_SETS_IT` is not set";
    let run = ["run", "box", "-t", "x"];
    sandbox.run(&run).code(2).says(&[place, "manifest-variable-unset"]);
    let plan = sandbox.run(&[&run[..], &["--dry-run"]].concat()).code(2).says(&[place]);
    for line in [
        "capsule    box 0.1.0\n",
        "transport  http\n",
        "model      m\n",
        "tool       hello\n",
    ] {
        assert!(plan.out.contains(line), "{line}: {}", plan.out);
    }
    let doctor = sandbox.run(&["doctor", "box"]).code(2);
    assert!(doctor.out.contains(&format!("not set up: {place}")), "{}", doctor.out);
    // A flag has no line, and a block has its own key.
    let flag = "inference.api_key=${NOBODY_SETS_THIS}";
    let of_flag = "--set inference.api_key: the variable `NOBODY_SETS_THIS`";
    sandbox
        .run(&[&run[..], &["--set", flag]].concat())
        .code(2)
        .says(&[of_flag]);
    let block = "inference:\n  driver: anthropic\n  model: m\n  transports:\n    http: {api_key: '${'}\n";
    let of_block = "box/capsule.yaml:9:21: inference.transports.http.api_key: a `${` has no closing";
    capsule(block)
        .run(&run)
        .code(2)
        .says(&[of_block, "manifest-variable-syntax"]);
    let sandbox = capsule(inference);
    sandbox.write("box/.env", "no assignment\n");
    let of_file = "box/capsule.yaml:8:12: inference.api_key: box/.env:1: expected `NAME=value`";
    sandbox.run(&run).code(2).says(&[of_file, "manifest-dotenv"]);
}

#[test]
fn what_is_wrong_with_tools_and_grants_is_said_with_its_place() {
    let list = ["tool", "list", "--capsule", "box"];
    for (rest, told) in [
        (
            "capabilities:\n  filesystem:\n    - {path: ./dat, at: /dat, mode: ro}\n",
            &["box/capsule.yaml:7:14: capabilities.filesystem[0].path: the grant of box/dat at `/dat`"][..],
        ),
        (
            "capabilities:\n  network:\n    allow: [api.test, 169.254.169.254]\n",
            &[
                "box/capsule.yaml:7:23: capabilities.network.allow[1]: the grant of the network to `169.254.169.254`",
                "never connected to cannot be granted",
            ],
        ),
        (
            "capabilities: {limits: {instances: 20000}}\n",
            &["box/capsule.yaml:5:36: capabilities.limits.instances: "],
        ),
        (
            "capabilities:\n  secrets:\n    KEY: {hosts: [api.test], header: 'X: {}'}\n",
            &["box/capsule.yaml:7:", ": capabilities.secrets.KEY"],
        ),
    ] {
        capsule(rest).run(&list).code(2).says(told);
    }
    let sandbox = capsule("");
    fs::remove_file(sandbox.work("box/hello.wasm")).unwrap();
    let tool = "box/capsule.yaml:4:30: tools[0].component: tool `hello` (box/hello.wasm): the component cannot be read";
    sandbox.run(&list).code(2).says(&[tool, "tool-file"]);
}

#[test]
fn a_link_that_a_copy_left_behind_is_told_as_one() {
    let sandbox = capsule("capabilities: {filesystem: [{path: dat, at: /dat, mode: ro}]}\n");
    let list = ["tool", "list", "--capsule", "box"];
    fs::remove_file(sandbox.work("box/hello.wasm")).unwrap();
    std::os::unix::fs::symlink("../gone/dat", sandbox.work("box/dat")).unwrap();
    std::os::unix::fs::symlink("../gone/hello.wasm", sandbox.work("box/hello.wasm")).unwrap();
    let dir = "the grant of box/dat at `/dat`: it is a symbolic link to ../gone/dat, which is not there";
    sandbox.run(&list).code(2).says(&[dir, "cp -rL", "capsule new"]);
    fs::remove_file(sandbox.work("box/dat")).unwrap();
    fs::create_dir(sandbox.work("box/dat")).unwrap();
    let file = "the component is a symbolic link to ../gone/hello.wasm, which is not there";
    sandbox.run(&list).code(2).says(&[file, "cp -rL", "capsule new"]);
}

#[test]
fn a_new_capsule_is_read_about_under_its_own_name() {
    let sandbox = Sandbox::new();
    sandbox.run(&["new", "my-agent"]).code(0);
    let readme = fs::read_to_string(sandbox.work("my-agent/README.md")).unwrap();
    assert!(readme.starts_with("# my-agent\n"), "{readme}");
    assert!(readme.contains("    capsule run my-agent\n"), "{readme}");
    for stale in ["plugins/capsules", "In a copy of this folder"] {
        assert!(!readme.contains(stale), "{stale}: {readme}");
    }
}

#[test]
fn a_command_line_that_cannot_be_done_says_what_can() {
    let sandbox = Sandbox::new().with_hello();
    for (command, hint) in [
        (&["new", "hello"][..], "hint: Choose another name"),
        (&["new", "A"], "hint: For example `capsule new my-agent`"),
        (
            &["explain", "tool-fil"],
            "hint: Did you mean `tool-file`? The table in docs/errors.md",
        ),
        (
            &["tool", "call", "hello", "{name: Ada}", "--capsule", "hello"],
            "hint: Write one JSON object",
        ),
        (
            &["tool", "list", "hello"],
            "hint: Write `capsule tool list --capsule hello`.",
        ),
        (&["test", "hello/notes"], "capsule new"),
        (
            &["run", "hello", "--transport", "echo", "--record", "t.json"],
            "hint: Add `--transport http`",
        ),
        (&["build", "hello", "--tool", "helo"], "hint: Did you mean `hello`?"),
        (
            &["test", "hello/tapes/hello.json"],
            "hint: `capsule test hello` plays all of its tapes; `capsule run hello --replay hello/tapes/hello.json` plays this one.",
        ),
    ] {
        let ran = sandbox.run(command).code(2).says(&[hint]);
        assert!(!ran.err.contains("See the command's"), "{command:?}: {}", ran.err);
    }
    fs::remove_dir_all(sandbox.work("hello/tapes")).unwrap();
    sandbox
        .run(&["test", "hello"])
        .code(2)
        .says(&["hint: Record one: `capsule run hello --record hello/tapes/NAME.json`"]);
}

#[test]
fn doctor_says_nothing_of_what_every_tool_imports() {
    let ran = capsule("inference: {transport: echo}\n")
        .run(&["doctor", "box"])
        .code(0);
    let tool = "hello [wasi]\n  may touch nothing: no file, no host, no variable\n  a call takes at most ";
    assert!(ran.out.starts_with(tool), "{}", ran.out);
}

#[test]
fn a_code_that_transports_share_is_explained_as_theirs() {
    let ran = Sandbox::new().run(&["explain", "process-login-missing"]).code(0);
    assert!(
        ran.out.starts_with("process-login-missing (transports claude, codex, "),
        "{}",
        ran.out
    );
}

#[test]
fn a_script_that_is_none_is_told_what_a_script_exports() {
    let sandbox = capsule("script: hello.wasm\n");
    let ran = sandbox.run(&["run", "box"]).code(2);
    ran.says(&[
        "box/capsule.yaml:5:9: script: the script",
        "hint: Build the script for the world `script`",
    ]);
}
