//! Programs that tests run where they are installed.

use std::{
    env, io,
    io::Write as _,
    path::{Path, PathBuf},
};

/// A program that this workspace's tests run, or `None` after saying on standard error that the test is skipped.
///
/// It is looked for at the path in the environment variable `variable`, else at `installed` below the workspace's folder `.tools`.
/// `install` is the command that puts it there.
///
/// # Panics
/// It is not there, and `CAPSULE_TEST_NO_SKIP` is `1`.
pub fn program(variable: &str, installed: &str, install: &str) -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
    let path = env::var_os(variable).map_or_else(|| tools.join(installed), PathBuf::from);
    if path.is_file() {
        return Some(path);
    }
    let reason = format!("there is no {}; run {install}, or set {variable}", path.display());
    assert!(
        env::var_os("CAPSULE_TEST_NO_SKIP").is_none_or(|value| value != "1"),
        "{reason}"
    );
    // Written past the test harness, which hides what a passing test prints. Where standard error is gone nobody reads it.
    let _ = writeln!(io::stderr(), "SKIPPED: {reason}");
    None
}

/// The pinned `claude` CLI.
pub fn claude() -> Option<PathBuf> {
    program(
        "CAPSULE_TEST_CLAUDE",
        "claude/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
        "tests/oracles/install-clis.sh .tools",
    )
}

/// The pinned `codex` CLI.
pub fn codex() -> Option<PathBuf> {
    program(
        "CAPSULE_TEST_CODEX",
        "codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        "tests/oracles/install-clis.sh .tools",
    )
}

/// A Python that has the official SDK.
pub fn python() -> Option<PathBuf> {
    program(
        "CAPSULE_TEST_PYTHON",
        "oracle-venv/bin/python",
        "tests/oracles/install-python.sh .tools",
    )
}
