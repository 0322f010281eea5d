//! `capsule run`: one task, on the transports that need no key.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Stdio};

use serde_json::json;

use crate::{
    guests,
    support::{ROOT, Ran, Sandbox, files, kinds, lines, mode},
};

/// What the tape of the capsule `hello` ends with.
pub(crate) const ANSWER: &str = "The team, each in their own language:\n\n\
    - Amélie (French): Bonjour, Amélie !\n- Kenji (Japanese): こんにちは、Kenjiさん！\n- Zofia (Polish): Cześć, Zofia!\n\n\
    I could not read /etc/passwd: the call was denied, because no grant of this\n\
    capsule covers it. Nothing of that file was read.";

#[test]
fn hello_answers_on_standard_output_and_tells_the_rest_on_standard_error() {
    let sandbox = Sandbox::new();
    let hello = format!("{ROOT}/plugins/capsules/hello");
    // One call at a time, so that the lines come in one order only.
    let ran = sandbox
        .run(&["run", &hello, "--set", "inference.parallel_calls=1"])
        .code(0);
    assert_eq!(ran.answer(), ANSWER);
    insta::assert_snapshot!(sandbox.filtered(&ran.err), @r#"
    ● hello 0.1.0 on http
      claude-sonnet-4-5 · cassette
    → read-file {"path":"/notes/team.md"}
    ✓ read-file N ms 60 bytes
    → read-file {"path":"/etc/passwd"}
    ✗ read-file N ms denied: tool 'read-file' failed: not readable here: no grant covers '/etc/passwd'; a path begins with a dire…
    → hello {"name":"Amélie","language":"French"}
    ✓ hello N ms 18 bytes
    → hello {"name":"Kenji","language":"Japanese"}
    ✓ hello N ms 32 bytes
    → hello {"name":"Zofia","language":"Polish"}
    ✓ hello N ms 15 bytes
    3 requests · 5 tool calls (1 denied) · 2810 tokens in, 423 out · trace DIR/state/capsule/hello/runs/ID/trace.jsonl
    "#);
}

#[test]
fn a_run_leaves_its_private_trace_and_nothing_else() {
    let sandbox = Sandbox::new().with_hello();
    sandbox.run(&["run", "hello"]).code(0);
    assert_eq!(sandbox.leftovers(), [] as [std::path::PathBuf; 0]);
    assert_eq!(files(&sandbox.path("home")), [] as [std::path::PathBuf; 0]);
    let kept = files(&sandbox.path("state"));
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(kept[0].ends_with("trace.jsonl"));
    assert_eq!(mode(&kept[0]), 0o600);
    let above = kept[0].ancestors().skip(1);
    for dir in above.take_while(|dir| *dir != sandbox.path("state")) {
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
    }
}

#[test]
fn json_is_one_object_a_line_in_sequence_and_ends_with_the_answer() {
    let sandbox = Sandbox::new().with_hello();
    let ran = sandbox.run(&["run", "hello", "--json"]).code(0);
    let records = lines(&ran.out);
    let seqs: Vec<_> = records.iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=records.len() as u64).collect::<Vec<_>>());
    let last = records.last().unwrap();
    assert_eq!(last["kind"], "run_end");
    assert_eq!(last["outcome"], json!({"is": "completed", "text": ANSWER}));
    assert_eq!(kinds(&records)[0], "run_start");
    assert!(kinds(&records).contains(&"delta"), "the text as it comes is among them");
}

#[test]
fn the_task_comes_from_the_flag_the_pipe_or_the_manifest() {
    let sandbox = Sandbox::new().with_hello();
    let echo = ["run", "hello", "--transport", "echo"];
    assert_eq!(
        sandbox
            .run(&[&echo[..], &["-t", "from the flag"]].concat())
            .code(0)
            .answer(),
        "from the flag"
    );
    let piped = sandbox
        .pipe(&[&echo[..], &["-t", "-"]].concat(), "from the pipe\n")
        .code(0);
    assert_eq!(piped.answer(), "from the pipe");
    assert!(
        sandbox
            .run(&echo)
            .code(0)
            .answer()
            .starts_with("Greet everyone in /notes/team.md")
    );

    sandbox.write(
        "bare/capsule.yaml",
        "name: bare\nversion: 0.1.0\ndescription: Repeats.\ninference: {transport: echo}\n",
    );
    let bare = sandbox.pipe(&["run", "bare"], "without a flag");
    assert_eq!(bare.code(0).answer(), "without a flag");
    for none in [
        sandbox.run(&["run", "bare"]),
        sandbox.pipe(&["run", "bare", "-t", "-"], " \n"),
        sandbox.run(&["run", "bare", "-t", ""]),
    ] {
        assert_eq!(none.code(2).says(&["there is no task", "-t TEXT", "task:"]).out, "");
    }
}

#[test]
fn without_a_directory_it_takes_the_one_it_runs_in() {
    let sandbox = Sandbox::new().with_hello();
    let output = sandbox
        .command(["run", "-t", "here", "--transport", "echo"])
        .current_dir(sandbox.work("hello"))
        .output()
        .unwrap();
    assert_eq!(Ran::of(&output).code(0).answer(), "here");
    sandbox
        .run(&["run", "-t", "here"])
        .code(2)
        .says(&["capsule.yaml", "capsule new"]);
}

#[test]
fn a_file_may_stand_for_its_directory() {
    let sandbox = Sandbox::new().with_hello();
    fs::rename(sandbox.work("hello/capsule.yaml"), sandbox.work("hello/other.yaml")).unwrap();
    assert_eq!(sandbox.run(&["run", "hello/other.yaml"]).code(0).answer(), ANSWER);
}

#[test]
fn a_dry_run_says_what_would_run_and_runs_nothing() {
    let sandbox = Sandbox::new().with_hello();
    let ran = sandbox
        .run(&[
            "run",
            "hello",
            "--dry-run",
            "--model",
            "other-model",
            "--set",
            "inference.max_turns=3",
        ])
        .code(0);
    insta::assert_snapshot!(sandbox.filtered(&ran.out), @r"
    capsule    hello 0.1.0
    transport  http
               driver: cassette
    model      other-model
    requests   at most 3
    tool       hello
    tool       read-file
    grant      every tool may read hello/notes as /notes
    limits     256MiB memory, 1m a call, 1MiB of output, 16 calls at once
    ");
    assert_eq!(ran.err, "");
    assert_eq!(files(&sandbox.path("state")), [] as [std::path::PathBuf; 0]);
}

#[test]
fn the_readmes_command_for_a_subscription_asks_for_no_key() {
    let sandbox = Sandbox::new().with_hello();
    sandbox.run(&["new", "mine"]).code(0);
    for capsule in ["hello", "mine"] {
        for transport in ["claude", "codex"] {
            // No such CLI here, so that is what is missing, and not a key.
            let ran = sandbox
                .run(&["run", capsule, "--transport", transport, "-t", "x"])
                .code(3);
            assert!(!ran.err.contains("api_key"), "{ran:#?}");
            assert!(!ran.err.contains("_API_KEY"), "{ran:#?}");
        }
    }
}

#[test]
fn a_dry_run_on_a_transport_that_could_not_run_exits_3() {
    let sandbox = Sandbox::new().with_hello();
    let claude = [
        "run",
        "hello",
        "--transport",
        "claude",
        "--set",
        "inference.transports.claude.api_key=k",
    ];
    let ran = sandbox.run(&[&claude[..], &["--dry-run"]].concat()).code(3);
    assert!(ran.out.contains("transport  claude"), "{ran:#?}");
}

#[test]
fn a_transport_whose_program_is_missing_exits_3_and_names_it() {
    let sandbox = Sandbox::new().with_hello();
    let set = "inference.transports.claude={api_key: k, command: no-such-program}";
    let ran = sandbox
        .run(&["run", "hello", "--transport", "claude", "--set", set])
        .code(3);
    ran.says(&["no-such-program", "hint:"]);
    assert_eq!(sandbox.leftovers(), [] as [std::path::PathBuf; 0]);
}

#[test]
fn what_is_misspelt_is_named_with_the_nearest_spelling() {
    let sandbox = Sandbox::new().with_hello();
    let cases: [(&[&str], &[&str]); 5] = [
        (
            &["--transport", "ecco"],
            &["ecco", "claude, codex, echo, http", "`echo`"],
        ),
        (&["--driver", "cassete"], &["--driver", "cassete", "`cassette`"]),
        (
            &["--set", "inference.max_turn=1"],
            &["--set inference.max_turn", "`max_turns`"],
        ),
        (&["--set", "inference.max_turns"], &["key.path=value"]),
        (
            &["--set", "inference.max_turns=many"],
            &["--set inference.max_turns", "many"],
        ),
    ];
    for (flags, said) in cases {
        let ran = sandbox.run(&[&["run", "hello"], flags].concat());
        assert_eq!(ran.code(2).says(said).out, "");
    }
}

#[test]
fn a_driver_of_the_flag_is_the_one_that_runs_wherever_the_manifest_has_its_settings() {
    let sandbox = Sandbox::new().with_hello();
    let flat = "inference: {transport: http, driver: anthropic, api_key: k, model: m, tape: tapes/hello.json}\n";
    let block = "inference: {transport: http, model: m, transports: {http: {driver: anthropic, api_key: k, tape: tapes/hello.json}}}\n";
    let other = "inference: {transport: echo, model: m, transports: {http: {tape: tapes/hello.json}}}\n";
    let manifest = fs::read_to_string(sandbox.work("hello/capsule.yaml")).unwrap();
    let head = manifest.split("\ninference:").next().unwrap();
    for inference in [flat, block, other] {
        sandbox.write("hello/capsule.yaml", format!("{head}\n{inference}"));
        let ran = sandbox
            .run(&["run", "hello", "--transport", "http", "--driver", "cassette"])
            .code(0);
        assert_eq!(ran.answer(), ANSWER, "{inference}");
    }
    sandbox
        .run(&["run", "hello", "--driver", "cassette"])
        .code(2)
        .says(&["--driver", "driver"]);
}

#[test]
fn a_tool_that_traps_is_told_to_the_model_and_the_run_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.write("t/trap.wasm", guests::trap());
    sandbox.write(
        "t/capsule.yaml",
        "name: t\nversion: 0.1.0\ndescription: Traps.\ninference: {transport: echo}\n\
         tools: [{name: trap, component: trap.wasm, description: Traps., input_schema: {type: object}}]\n",
    );
    let ran = sandbox.run(&["run", "t", "-t", "call trap {}"]).code(0);
    ran.says(&["→ trap {}", "✗ trap"]);
}

#[test]
fn what_a_reader_does_not_take_is_an_error_and_no_panic() {
    let sandbox = Sandbox::new().with_hello();
    for args in [
        &["run", "hello", "--json"][..],
        &["run", "hello"],
        &["schema"],
        &["tool", "list", "--capsule", "hello"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = sandbox.command(args).stdout(writer).output().unwrap();
        Ran::of(&output)
            .code(1)
            .says(&["cannot write the output", "cli-output"]);
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = sandbox.command(args).stdout(full).output().unwrap();
        Ran::of(&output)
            .code(1)
            .says(&["cannot write the output", "No space left"]);
    }
}

#[test]
fn without_standard_error_a_run_still_answers() {
    let sandbox = Sandbox::new().with_hello();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = sandbox
        .command(["run", "hello"])
        .stderr(Stdio::from(full))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), ANSWER);
}

#[test]
fn a_chosen_trace_file_is_private_too() {
    let sandbox = Sandbox::new().with_hello();
    sandbox
        .run(&["run", "hello", "--trace", "mine.jsonl"])
        .code(0)
        .says(&["trace mine.jsonl"]);
    assert_eq!(mode(&sandbox.work("mine.jsonl")), 0o600);
    // One that was open to everybody is not after it was written again.
    fs::set_permissions(sandbox.work("mine.jsonl"), fs::Permissions::from_mode(0o644)).unwrap();
    sandbox.run(&["run", "hello", "--trace", "mine.jsonl"]).code(0);
    assert_eq!(mode(&sandbox.work("mine.jsonl")), 0o600);
    assert_eq!(files(&sandbox.path("state")), [] as [std::path::PathBuf; 0]);
}
