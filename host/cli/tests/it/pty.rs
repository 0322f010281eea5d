//! A run on a real terminal.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::support::Sandbox;

const ROWS: u16 = 40;
const COLUMNS: u16 = 100;

/// A command with a terminal as all three streams.
pub(crate) struct Pty {
    pub(crate) child: Child,
    /// The other side of the terminal; reading ends with an error when the command's ends are gone.
    pub(crate) terminal: File,
}

impl Pty {
    pub(crate) fn spawn(command: Command) -> Self {
        Self::spawn_typed(command, b"")
    }

    /// The same where somebody has typed ahead.
    pub(crate) fn spawn_typed(mut command: Command, typed: &[u8]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let size = Winsize {
            ws_row: ROWS,
            ws_col: COLUMNS,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let end = || {
            Stdio::from(OwnedFd::from(
                OpenOptions::new().read(true).write(true).open(&name).unwrap(),
            ))
        };
        command.stdin(end()).stdout(end()).stderr(end());
        let mut terminal = File::from(master);
        terminal.write_all(typed).unwrap();
        // The command's value holds the terminal's ends; it is gone when this returns.
        let child = command.spawn().unwrap();
        Self { child, terminal }
    }
}

/// Runs the command on a terminal; all that came, and the exit code.
fn on_terminal(command: Command) -> (Vec<u8>, i32) {
    let Pty {
        mut child,
        mut terminal,
    } = Pty::spawn(command);
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = terminal.read(&mut buffer) {
        all.extend_from_slice(&buffer[..n]);
    }
    (all, child.wait().unwrap().code().unwrap())
}

pub(crate) fn screen(bytes: &[u8]) -> String {
    let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 0);
    terminal.process(bytes);
    terminal.screen().contents()
}

fn run_hello(sandbox: &Sandbox) -> Command {
    let mut command = sandbox.command(["run", "hello", "--set", "inference.parallel_calls=1"]);
    command.env("TERM", "xterm-256color");
    command
}

#[test]
fn a_person_sees_text_calls_and_the_answer_in_their_order() {
    let sandbox = Sandbox::new().with_hello();
    let (bytes, code) = on_terminal(run_hello(&sandbox));
    assert_eq!(code, 0);
    let seen = sandbox.filtered(&screen(&bytes).replace("\n/", "/"));
    let without_trace: Vec<_> = seen
        .lines()
        .map(|line| line.split(" · trace ").next().unwrap().trim_end())
        .collect();
    let end = without_trace
        .iter()
        .position(|line| line.starts_with("3 requests"))
        .unwrap();
    insta::assert_snapshot!(without_trace[..=end].join("\n"), @r#"
    ● hello 0.1.0 on http
      claude-sonnet-4-5 · cassette
    I will read the team list first.
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
    The team, each in their own language:

    - Amélie (French): Bonjour, Amélie !
    - Kenji (Japanese): こんにちは、Kenjiさん！
    - Zofia (Polish): Cześć, Zofia!

    I could not read /etc/passwd: the call was denied, because no grant of this
    capsule covers it. Nothing of that file was read.
    3 requests · 5 tool calls (1 denied) · 2810 tokens in, 423 out
    "#);
    assert!(bytes.windows(2).any(|two| two == b"\x1b["), "colours on a terminal");
}

#[test]
fn no_color_turns_colours_off() {
    let sandbox = Sandbox::new().with_hello();
    let mut command = run_hello(&sandbox);
    command.env("NO_COLOR", "1");
    let (bytes, code) = on_terminal(command);
    assert_eq!(code, 0);
    assert!(!bytes.contains(&0x1b), "{}", String::from_utf8_lossy(&bytes));
}

#[test]
fn without_a_task_a_terminal_is_not_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "t/capsule.yaml",
        "name: t\nversion: 0.1.0\ndescription: Repeats.\ninference: {transport: echo}\n",
    );
    let mut command = sandbox.command(["run", "t"]);
    command.env("NO_COLOR", "1");
    let (bytes, code) = on_terminal(command);
    assert_eq!(code, 2);
    assert!(screen(&bytes).contains("there is no task"), "{}", screen(&bytes));
}
