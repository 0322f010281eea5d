//! The loop of a tool author with the real cargo and a real compiler for WebAssembly.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    docs::{commands_in, shell},
    support::{ROOT, Sandbox, skip},
};

/// A compiler with the target: that of `CAPSULE_TEST_GUEST_RUSTC`, else this machine's own.
fn compiler() -> Option<PathBuf> {
    // It is not made where this machine's own has the target.
    let given = path_in("CAPSULE_TEST_GUEST_RUSTC").filter(|given| given.exists());
    if given.is_some() {
        return given;
    }
    let own = path_in("CARGO")?.with_file_name("rustc");
    let asked = Command::new(&own)
        .args(["--print", "target-libdir", "--target", "wasm32-wasip2"])
        .output();
    let dir = String::from_utf8(asked.ok()?.stdout).ok()?;
    let has = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with("libstd-");
    fs::read_dir(dir.trim()).ok()?.flatten().any(has).then_some(own)
}

fn path_in(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from)
}

/// A sandbox whose commands find cargo, its crates and the compiler.
fn with_rust(compiler: &Path) -> Sandbox {
    let cargo = path_in("CARGO").expect("cargo says where it is");
    let home = || PathBuf::from(env::var_os("HOME").expect("there is a home")).join(".cargo");
    let crates = path_in("CARGO_HOME").unwrap_or_else(home);
    let bin = cargo.parent().expect("it is in a directory").display().to_string();
    // One for all runs of the test: the dependencies are the same each time.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tool-author");
    Sandbox::new()
        .env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"))
        .env("CARGO_HOME", crates.display().to_string())
        .env("CARGO_TARGET_DIR", target.display().to_string())
        .env("RUSTC", compiler.display().to_string())
}

#[test]
fn a_tool_is_written_built_and_called_as_the_page_says() {
    let Some(compiler) = compiler() else {
        return skip(
            "no compiler has the target wasm32-wasip2; tests/guests/toolchain.sh makes one for CAPSULE_TEST_GUEST_RUSTC",
        );
    };
    let sandbox = with_rust(&compiler);
    let page = fs::read_to_string(format!("{ROOT}/docs/write-a-tool.md")).unwrap();
    let commands = commands_in(&page, "sh rust");
    assert!(commands.len() > 5, "{commands:?}");
    for (line, command) in commands {
        let ran = shell(&sandbox, &command);
        assert_eq!(ran.code, 0, "docs/write-a-tool.md:{line}: {command}\n{ran:#?}");
        if command.contains("tool call") {
            assert_eq!(ran.out, "{\"characters\":13,\"lines\":1,\"words\":3}\n");
        }
    }

    // The page ends with a capsule of components; back to the sources, which are still built.
    let source = sandbox.work("my-tool/tools/word-count/src/lib.rs");
    let call = ["tool", "call", "word-count", r#"{"text": "a"}"#, "--capsule", "my-tool"];
    let manifest = sandbox.work("my-tool/capsule.yaml");
    let of_sources = fs::read_to_string(&manifest)
        .unwrap()
        .replace("word-count.wasm\n", "word-count\n");
    fs::write(&manifest, of_sources).unwrap();
    sandbox.run(&call).code(0);

    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replace("\"words\"", "\"tokens\"")).unwrap();
    sandbox.run(&call).code(2).says(&["cli-stale", "src/lib.rs"]);
    sandbox.run(&["build", "my-tool"]).code(0);
    assert!(sandbox.run(&call).code(0).out.contains("\"tokens\":1"));

    fs::write(&source, "this does not compile").unwrap();
    let failed = sandbox
        .run(&["build", "my-tool"])
        .code(1)
        .says(&["src/lib.rs:1", "cli-build"]);
    assert_eq!(failed.out, "");
}
