use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use capsule_api::{CallId, ErrorKind, Secret};
use serde_json::json;

use super::*;

/// Protects one value.
struct Key;

impl Secrets for Key {
    fn expand(&self, text: &str) -> Result<String, Error> {
        Ok(text.to_owned())
    }

    fn protect(&self, _: &Secret) {}

    fn redact<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        text.replace("sk-hunter2", "[redacted]").into()
    }
}

/// Two streams that end on one terminal, in the order of writing.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn show<O: Write, E: Write>(view: &mut View<O, E>, whats: Vec<What>) {
    for what in whats {
        view.entry(&Entry {
            seq: 1,
            at: SystemTime::UNIX_EPOCH,
            what,
        })
        .unwrap();
    }
}

/// What a person sees on a terminal of 60 columns.
fn screen_of(whats: Vec<What>) -> String {
    let both = Shared::default();
    show(
        &mut View::new(
            both.clone(),
            both.clone(),
            Some(Screen::new(60, 24)),
            true,
            Arc::new(Key),
        ),
        whats,
    );
    let mut terminal = vt100::Parser::new(24, 60, 0);
    let bytes = both.0.lock().unwrap().clone();
    terminal.process(String::from_utf8(bytes).unwrap().replace('\n', "\r\n").as_bytes());
    terminal.screen().contents()
}

/// What ends in the two files of a run whose streams are redirected.
fn files_of(whats: Vec<What>) -> (String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    show(&mut View::new(&mut out, &mut err, None, false, Arc::new(Key)), whats);
    (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn delta(block: u32, text: &str) -> What {
    What::Model(Event::Delta {
        block: BlockId(block),
        kind: BlockKind::Text,
        text: text.into(),
    })
}

fn block(block: u32, text: &str) -> What {
    What::Model(Event::Block {
        block: BlockId(block),
        kind: BlockKind::Text,
        text: text.into(),
    })
}

fn call(status: ToolStatus, text: &str) -> [What; 2] {
    let (call, name) = (CallId::new("c1"), "read-file".to_owned());
    let started = RunEvent::Started {
        call: call.clone(),
        name: name.clone(),
        arguments: json!({"path": "/notes/team.md"}),
    };
    let reply = ToolReply::new(status, text);
    [
        What::Run(started),
        What::Run(RunEvent::Ended {
            call,
            name,
            reply,
            duration: Duration::from_millis(3),
        }),
    ]
}

fn end(text: &str) -> What {
    What::RunEnd {
        outcome: Ok(Outcome::Completed { text: text.into() }),
        residue: Default::default(),
        late: 0,
    }
}

fn story() -> Vec<What> {
    let mut whats = vec![delta(0, "I will "), delta(0, "read it."), block(0, "I will read it.")];
    whats.extend(call(ToolStatus::Passed, "Ada\n"));
    whats.extend(call(ToolStatus::Denied, "no grant covers it\nsecond line"));
    whats.extend([
        delta(1, "Hello, "),
        delta(1, "Ada!"),
        block(1, "Hello, Ada!"),
        end("Hello, Ada!"),
    ]);
    whats
}

#[test]
fn a_terminal_shows_text_as_it_comes_and_calls_between() {
    let expected = "I will read it.\n\
        → read-file {\"path\":\"/notes/team.md\"}\n\
        ✓ read-file 3 ms 4 bytes\n\
        → read-file {\"path\":\"/notes/team.md\"}\n\
        ✗ read-file 3 ms denied: no grant covers it\n\
        Hello, Ada!";
    assert_eq!(screen_of(story()), expected);
}

#[test]
fn a_file_gets_the_answer_and_nothing_else() {
    let (out, err) = files_of(story());
    assert_eq!(out, "Hello, Ada!\n");
    let expected = "→ read-file {\"path\":\"/notes/team.md\"}\n\
        ✓ read-file 3 ms 4 bytes\n\
        → read-file {\"path\":\"/notes/team.md\"}\n\
        ✗ read-file 3 ms denied: no grant covers it\n";
    assert_eq!(err, expected);
}

#[test]
fn text_that_is_taken_back_leaves_the_screen() {
    let retrying = Event::Retrying {
        attempt: 1,
        after: Duration::from_secs(1),
        cause: ErrorKind::Overloaded,
    };
    let whats = vec![
        delta(0, "half an answer that is long enough to wrap over the edge of it"),
        What::Model(Event::Retracted { block: BlockId(0) }),
        What::Model(retrying),
        delta(1, "whole"),
        end("whole"),
    ];
    assert_eq!(screen_of(whats), "↻ overloaded; try 2 in 1.0 s\nwhole");
}

#[test]
fn text_that_can_no_longer_be_taken_back_is_said_to_be() {
    let mut whats = vec![delta(0, "half")];
    whats.extend(call(ToolStatus::Passed, ""));
    whats.extend([
        What::Model(Event::Retracted { block: BlockId(0) }),
        delta(1, "whole"),
        end("whole"),
    ]);
    let seen = screen_of(whats);
    assert!(seen.ends_with("↺ the text above was taken back\nwhole"), "{seen}");
}

#[test]
fn a_block_that_differs_from_its_deltas_replaces_them() {
    assert_eq!(
        screen_of(vec![delta(0, "helo"), block(0, "hello"), end("hello")]),
        "hello"
    );
}

#[test]
fn an_answer_that_was_never_streamed_is_shown_once() {
    assert_eq!(screen_of(vec![block(0, "hello"), end("hello")]), "hello");
    assert_eq!(screen_of(vec![end("hello")]), "hello");
}

#[test]
fn no_text_of_a_model_or_a_tool_moves_the_cursor_or_shows_a_secret() {
    let (call, name) = (CallId::new("c\u{1b}[2J"), "t\u{1b}]52;c;AAAA\u{7}".to_owned());
    let started = RunEvent::Started {
        call: call.clone(),
        name: name.clone(),
        arguments: json!({"key": "sk-hunter2"}),
    };
    let reply = ToolReply::new(ToolStatus::Unknown, "no tool\u{1b}[31m sk-hunter2");
    let whats = vec![
        What::Run(started),
        What::Run(RunEvent::Ended {
            call: call.clone(),
            name,
            reply,
            duration: Duration::ZERO,
        }),
        What::Model(Event::CallAbandoned { call }),
        delta(0, "the key is \u{202e}sk-hunter2"),
        block(0, "the key is \u{202e}sk-hunter2"),
        end("the key is \u{202e}sk-hunter2"),
    ];
    let seen = screen_of(whats.clone());
    let expected = "→ t]52;c;AAAA {\"key\":\"[redacted]\"}\n\
        ✗ t]52;c;AAAA 0 ms unknown: no tool[31m [redacted]\n\
        ✗ a call was begun and not made (c[2J)\n\
        the key is [redacted]";
    assert_eq!(seen, expected);
    let (out, err) = files_of(whats);
    assert!(
        !out.contains("hunter2") && !err.contains("hunter2") && !err.contains('\u{1b}'),
        "{out}{err}"
    );
}
