//! Tools that ask whoever sent the task.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::Child,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    guests,
    pty::{Pty, screen},
    support::{Sandbox, lines},
};

fn capsule() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("c/ask.wasm", guests::asks_a_name());
    let manifest = "name: c\nversion: 0.1.0\ntools: [{name: ask, component: ask.wasm}]\ninference: {transport: echo}\n";
    sandbox.write("c/capsule.yaml", manifest);
    sandbox.env("NO_COLOR", "1")
}

const CALL: &[&str] = &["tool", "call", "ask", "{}", "--capsule", "c"];
const RUN: &[&str] = &["run", "c", "-t", "call ask {}"];
/// The question as people see it: nothing in it that a terminal would obey.
const QUESTION: &str = "? What is[2J your name?";

#[test]
fn without_a_terminal_answers_come_from_the_command_line() {
    let sandbox = capsule();
    let called = sandbox.run(&[CALL, &["--answer", "Ada"]].concat()).code(0);
    assert_eq!((called.out.as_str(), called.err.as_str()), ("Ada\n", ""));
    let ran = sandbox.run(&[RUN, &["--answer", "Ada"]].concat()).code(0);
    assert_eq!(ran.answer(), "Ada");
}

#[test]
fn a_question_that_nobody_answers_fails_the_call_and_says_how_to_answer() {
    let sandbox = capsule();
    let hint = "! nobody is there to answer; `--answer TEXT` answers: What is[2J your name?";
    let called = sandbox.run(CALL).code(1).says(&[hint]);
    assert!(called.out.contains("nobody to answer"), "{called:#?}");
    sandbox.run(RUN).says(&[hint]);
    let json = sandbox.run(&[RUN, &["--json"]].concat()).says(&[hint]);
    let ended = lines(&json.out)
        .into_iter()
        .find(|record| record["kind"] == "call_end")
        .unwrap();
    assert_eq!(ended["status"], "failed");
}

#[test]
fn the_questions_of_every_tape_are_answered_from_the_first_answer_on() {
    let sandbox = capsule();
    let asked =
        json!({"stop_reason": "tool_call", "content": [{"type": "tool_call", "id": "a", "name": "ask", "input": {}}]});
    let done = json!({"stop_reason": "end_turn", "content": [{"type": "text", "text": "Hello, Ada!"}]});
    let tape = json!({"version": 1, "entries": [
        {"request": {"roles": ["user"], "last": ["Ask"]}, "response": asked},
        {"request": {"roles": ["user", "assistant", "tool"], "last": ["Ada"]}, "response": done},
    ]});
    for name in ["one", "two"] {
        sandbox.write(&format!("c/tapes/{name}.json"), tape.to_string());
    }
    let passed = sandbox.run(&["test", "c", "--answer", "Ada"]).code(0);
    let said = |name| format!("ok    tapes/{name}.json · 2 requests, 1 tool call\n");
    assert_eq!(passed.out, said("one") + &said("two"));
    let drifted = sandbox.run(&["test", "c", "--answer", "Bo"]).code(1);
    let differ = ["\n    -Ada\n", "\n    +Bo\n"].map(|line| drifted.out.matches(line).count());
    assert_eq!(differ, [2, 2], "{drifted:?}");
    sandbox.run(&["test", "c"]).code(1).says(&["`--answer TEXT` answers"]);
}

/// A command on a terminal that has asked its question.
struct Asked {
    child: Child,
    terminal: File,
    seen: Vec<u8>,
}

impl Asked {
    fn by(sandbox: &Sandbox, args: &[&str]) -> Self {
        let Pty { child, terminal } = Pty::spawn(sandbox.command(args));
        let mut asked = Self {
            child,
            terminal,
            seen: Vec::new(),
        };
        asked.read_until("> ");
        assert!(screen(&asked.seen).contains(QUESTION), "{}", screen(&asked.seen));
        asked
    }

    fn read_until(&mut self, text: &str) {
        while !self.seen.windows(text.len()).any(|part| part == text.as_bytes()) {
            assert!(self.read(), "it ended before {text:?}: {}", screen(&self.seen));
        }
    }

    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let n = self.terminal.read(&mut buffer).unwrap_or(0);
        self.seen.extend_from_slice(&buffer[..n]);
        n > 0
    }

    /// The screen at the end, and the exit code.
    fn end(mut self) -> (String, i32) {
        while self.read() {}
        (screen(&self.seen), self.child.wait().unwrap().code().unwrap())
    }
}

#[test]
fn a_person_is_asked_on_the_terminal() {
    let sandbox = capsule();
    for args in [CALL, RUN] {
        let mut asked = Asked::by(&sandbox, args);
        asked.terminal.write_all(b"Ada\n").unwrap();
        let (seen, code) = asked.end();
        assert_eq!(code, 0, "{seen}");
        assert!(seen.contains(&format!("{QUESTION}\n> Ada\n")), "{seen}");
        assert_eq!(seen.matches("\nAda").count(), 1, "the answer of the tool: {seen}");
    }
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let sandbox = capsule();
    let pty = Pty::spawn_typed(sandbox.command(CALL), b"too early\n");
    let mut asked = Asked {
        child: pty.child,
        terminal: pty.terminal,
        seen: Vec::new(),
    };
    asked.read_until("> ");
    asked.terminal.write_all(b"Ada\n").unwrap();
    let (seen, code) = asked.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("> Ada\n"), "{seen}");
}

#[test]
fn ctrl_c_at_a_question_ends_the_run_at_once() {
    let sandbox = capsule();
    for args in [CALL, RUN] {
        let asked = Asked::by(&sandbox, args);
        kill_process(Pid::from_child(&asked.child), Signal::INT).unwrap();
        let (seen, code) = asked.end();
        assert_eq!(code, 130, "{seen}");
    }
}

#[test]
fn the_end_of_input_at_a_question_is_no_answer() {
    let sandbox = capsule();
    let mut asked = Asked::by(&sandbox, CALL);
    asked.terminal.write_all(&[4]).unwrap();
    let (seen, code) = asked.end();
    assert_eq!(code, 1, "{seen}");
    assert!(seen.contains("nobody to answer"), "{seen}");
}

#[test]
fn nobody_is_waited_for_longer_than_the_capsule_says() {
    let sandbox = capsule();
    let manifest = sandbox.work("c/capsule.yaml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("{text}lifecycle: {{input_timeout: 50ms}}\n")).unwrap();
    let (seen, code) = Asked::by(&sandbox, CALL).end();
    assert_eq!(code, 1, "{seen}");
    assert!(
        seen.contains("no answer came in time (`lifecycle.input_timeout`)"),
        "{seen}"
    );
}
