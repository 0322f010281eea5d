//! Which transport runs a capsule that leaves it open, and what `capsule transports` and `capsule doctor` say about this machine.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use capsule_fakes::{Reply, Script};
use serde_json::{Value, json};

use crate::{
    peer::{KEY, Peer},
    support::{ROOT, Ran, Sandbox, kinds},
};

/// A machine whose path has these programs and nothing else; each is a script that prints its version.
fn machine(programs: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new();
    let bin = sandbox.path("bin");
    fs::create_dir(&bin).unwrap();
    for (name, version) in programs {
        let path = bin.join(name);
        fs::write(&path, format!("#!/bin/sh\necho '{version}'\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = bin.display().to_string();
    sandbox.env("PATH", path)
}

/// A capsule without tools, with this `inference`.
fn capsule(sandbox: &Sandbox, inference: &str) {
    let manifest = format!("name: box\nversion: 0.1.0\ninference: {{{inference}}}\n");
    sandbox.write("box/capsule.yaml", manifest);
}

/// Which transport would run, by `--dry-run`, and how it was chosen. Whether it then could is another matter.
fn chosen(ran: &Ran) -> (String, String) {
    let mut lines = ran.out.lines().skip_while(|line| !line.starts_with("transport "));
    let mut next = || lines.next().unwrap_or_else(|| panic!("{ran:#?}")).trim().to_owned();
    (next().replace("transport  ", ""), next())
}

fn dry_run(sandbox: &Sandbox, inference: &str) -> Ran {
    capsule(sandbox, inference);
    sandbox.run(&["run", "box", "--dry-run"])
}

#[test]
fn a_program_is_recognised_by_what_it_prints() {
    // Their names say the opposite.
    let sandbox = machine(&[("codex", "2.1.332 (Claude Code)"), ("claude", "codex-cli 0.171.0")]);
    for (command, transport) in [("codex", "claude"), ("claude", "codex")] {
        let inference = format!("transport: process, model: m, command: {command}, api_key: k-123456");
        let ran = dry_run(&sandbox, &inference);
        let (which, how) = chosen(&ran);
        assert_eq!(which, transport, "{ran:#?}");
        let prints = format!("process: {} prints ", sandbox.path("bin").join(command).display());
        assert!(how.starts_with(&prints), "{how}");
    }
}

#[test]
fn a_program_that_says_nothing_is_recognised_by_its_name() {
    let sandbox = machine(&[]);
    let path = sandbox.write("box/tools/claude", "#!/bin/sh\nexit 1\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = dry_run(
        &sandbox,
        "transport: process, model: m, command: tools/claude, api_key: k-123456",
    );
    let (which, how) = chosen(&ran);
    assert_eq!(which, "claude");
    assert!(how.starts_with("process: the file name of "), "{how}");
}

#[test]
fn a_program_that_nobody_knows_is_not_guessed() {
    let sandbox = machine(&[("my-agent", "my-agent 1.0")]);
    let ran = dry_run(&sandbox, "transport: process, command: my-agent");
    let ran = ran.code(2).says(&[
        "prints \"my-agent 1.0\"",
        "the dialects are: claude, codex",
        "Set `inference.dialect`",
        "cli-dialect-unclear",
    ]);
    assert_eq!(ran.out, "");
    let ran = dry_run(
        &sandbox,
        "transport: process, command: my-agent, dialect: codex, model: m, api_key: k-123456",
    );
    assert_eq!(chosen(&ran), ("codex".into(), "process: `dialect: codex`".into()));
    let ran = dry_run(&sandbox, "transport: process, command: my-agent, dialect: cluade");
    ran.code(2)
        .says(&["expected one of `claude`, `codex`, found \"cluade\""]);
    let ran = dry_run(&sandbox, "transport: process, command: no-such-agent");
    ran.code(3)
        .says(&["no program `no-such-agent` is in PATH", "cli-program-not-found"]);
}

#[test]
fn without_any_program_the_run_says_for_each_why_not_and_what_to_do() {
    let sandbox = machine(&[]);
    capsule(&sandbox, "transport: echo");
    let ran = sandbox.run(&["run", "box", "--transport", "process", "-t", "hello"]);
    let ran = ran.code(3).says(&[
        "none of claude, codex could run here",
        "\n  claude: ",
        "\n  codex: ",
        "cli-no-program",
    ]);
    assert_eq!(ran.out, "");
}

#[test]
fn a_provider_s_key_does_not_go_to_whoever_is_installed() {
    let sandbox = machine(&[]);
    let ran = dry_run(&sandbox, "transport: process, api_key: k-123456").code(2);
    let ran = ran.says(&["`inference.transports.claude.api_key`", "`command` or `dialect`"]);
    assert!(!ran.err.contains("k-123456"), "{ran:#?}");
}

#[test]
fn what_leaves_the_loop_to_a_program_cannot_be_recorded() {
    let sandbox = machine(&[]);
    capsule(&sandbox, "transport: process");
    let ran = sandbox.run(&["run", "box", "-t", "x", "--record", "tape.json"]).code(2);
    ran.says(&["the transport `process` leaves that to its peer"]);
}

/// Standard output with what differs between machines taken out.
fn shown(sandbox: &Sandbox, args: &[&str], code: i32) -> String {
    let ran = sandbox.run(args).code(code);
    sandbox.filtered(&ran.out)
}

#[test]
fn the_transports_are_listed_with_how_they_stand() {
    let sandbox = machine(&[("codex", "codex-cli 0.171.0")]);
    let listed = shown(&sandbox, &["transports"], 0);
    let (transports, drivers) = listed.split_once("\n\nDrivers of the transport http\n").unwrap();
    insta::assert_snapshot!("transports", transports);
    assert!(drivers.contains("  anthropic "), "{drivers}");
}

#[test]
fn doctor_says_what_a_family_comes_to() {
    let sandbox = machine(&[("claude", "2.1.332 (Claude Code)")]);
    capsule(&sandbox, "transport: process, model: m");
    insta::assert_snapshot!("doctor_none", shown(&sandbox, &["doctor", "box"], 3));
    capsule(&sandbox, "transport: process, model: m, command: claude");
    let report = sandbox.run(&["doctor", "box", "--json"]).code(3).json();
    assert_eq!(
        (&report["asked"], &report["transport"], &report["could_run"]),
        (&json!("process"), &json!("claude"), &json!(false))
    );
    let how = report["chosen_by"].as_str().unwrap();
    assert!(how.ends_with("prints \"2.1.332 (Claude Code)\""), "{how}");
}

#[test]
fn the_machine_forms_have_their_schema() {
    let schema: Value =
        serde_json::from_str(&fs::read_to_string(format!("{ROOT}/docs/doctor.schema.json")).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let sandbox = machine(&[("claude", "2.1.332 (Claude Code)")]).with_hello();
    capsule(&sandbox, "transport: process");
    for (args, code) in [
        (&["transports", "--json"][..], 0),
        (&["doctor", "--json"], 0),
        (&["doctor", "hello", "--json"], 0),
        (&["doctor", "box", "--json"], 3),
    ] {
        let report = sandbox.run(args).code(code).json();
        let problems: Vec<_> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
        assert_eq!(problems, [] as [String; 0], "{args:?}: {report:#}");
    }
}

/// The real CLIs of this machine, as `claude` and `codex` in a path of their own.
fn real() -> Option<Sandbox> {
    let sandbox = machine(&[]);
    for (name, program) in [("claude", capsule_fakes::claude()?), ("codex", capsule_fakes::codex()?)] {
        symlink(program, sandbox.path("bin").join(name)).unwrap();
    }
    Some(sandbox)
}

#[test]
fn the_real_programs_are_found_with_their_versions_and_the_first_that_has_its_key_runs() {
    let Some(sandbox) = real() else { return };
    let listed = sandbox.run(&["transports", "--json"]).code(0).json();
    let fact = |name: &str, fact: &str| -> Value {
        let transports = listed["transports"].as_array().unwrap();
        let one = transports.iter().find(|one| one["name"] == name).unwrap();
        one["facts"][fact].clone()
    };
    for (name, version) in [("claude", "2.1.332"), ("codex", "0.171.0")] {
        assert_eq!(fact(name, "version"), version, "{listed:#}");
    }

    // Only one has what it needs to be paid.
    let inference = "transport: process, model: gpt-5.5, transports: {codex: {login: api_key, api_key: k-123456}}";
    let ran = dry_run(&sandbox, inference).code(0);
    let how = "process: the first of claude, codex that could run here";
    assert_eq!(chosen(&ran), ("codex".into(), how.into()));
    let ran = dry_run(
        &sandbox,
        "transport: process, model: m, command: claude, login: api_key, api_key: k-123456",
    );
    assert_eq!(chosen(&ran.code(0)).0, "claude");
    let report = sandbox.run(&["doctor", "box", "--json"]).code(0).json();
    assert_eq!(
        (&report["asked"], &report["transport"], &report["could_run"]),
        (&json!("process"), &json!("claude"), &json!(true))
    );
    assert!(!report.to_string().contains("k-123456"), "{report:#}");
}

#[test]
fn a_run_says_first_which_program_it_is_and_who_pays() {
    let Some(sandbox) = real() else { return };
    let script = Script::new()
        .then(Reply::text("Calling.").call("call-1", "mcp__capsule__hello", json!({"name": "Ada"})))
        .then(Reply::text("It said hello."));
    let peer = Peer::start(script);
    let sandbox = sandbox.with_hello().env("ANTHROPIC_API_KEY", KEY);
    let manifest = format!(
        "name: hello\nversion: 0.1.0\ntools:\n  - {{name: hello, component: tools/hello.wasm}}\n\
         inference:\n  transport: process\n  command: claude\n  model: claude-sonnet-4-5\n  login: api_key\n  \
         api_key: ${{ANTHROPIC_API_KEY}}\n  endpoint: {}\n",
        peer.provider().url()
    );
    sandbox.write("hello/capsule.yaml", manifest);
    let ran = sandbox.run(&["run", "hello", "-t", "Greet Ada"]).code(0);
    assert_eq!(ran.answer(), "It said hello.");
    let shown = sandbox.filtered(&ran.err);
    let first: Vec<_> = shown.lines().take(2).collect();
    assert_eq!(
        first,
        [
            "● hello 0.1.0 on claude (process: DIR/bin/claude prints \"2.1.332 (Claude Code)\")",
            "  claude-sonnet-4-5 · claude 2.1.332 · billed to the API key",
        ]
    );
    let trace = sandbox.trace();
    assert_eq!(kinds(&trace)[0], "run_start");
    let how = trace[0]["chosen_by"].as_str().unwrap();
    assert_eq!(trace[0]["transport"], "claude");
    assert!(how.ends_with("/bin/claude prints \"2.1.332 (Claude Code)\""), "{how}");
    let started = trace.iter().find(|record| record["kind"] == "started").unwrap();
    assert_eq!(started["billed"], "api_key");
    assert!(!ran.err.contains(KEY), "{ran:#?}");
}
