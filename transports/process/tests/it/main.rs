//! Supervision of real processes, and the slot of a turn.
#![cfg(test)]

mod bridge;
mod child;
mod login;
mod parent;
mod slot;
mod turn;
mod watchdog;

use std::{fs, path::Path};

use capsule_transport_process::{Child, Line, Program};

/// A shell script as the program, in `/`.
pub(crate) fn script(text: &str) -> Program {
    Program::new("/bin/sh", "/")
        .arg("-c")
        .arg(text)
        .env("PATH", "/usr/bin:/bin")
}

/// The next line, which must be text.
pub(crate) async fn line(child: &mut Child) -> String {
    match child.next_line(&capsule_api::SystemClock).await.unwrap() {
        Some(Line::Text { text, .. }) => text,
        other => panic!("a line of text, not {other:?}"),
    }
}

/// Whether a process of this id lives (a zombie does not).
pub(crate) fn lives(id: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
