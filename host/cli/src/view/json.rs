//! `--json`: every entry of the log as a line on standard output, in the form of the trace with content and live events.

use std::io::{self, Write as _};

use capsule_api::{Error, Secrets};
use capsule_session::{Capture, Read, Reader, records, redacted};
use serde_json::json;

use crate::failure;

pub(super) async fn follow(mut reader: Reader, task: &str, secrets: &dyn Secrets) -> Result<(), Error> {
    let mut lost = None;
    while let Some(read) = reader.next().await {
        let record = match read {
            Read::Entry(entry) => records(task, &entry, Capture::Content, true),
            Read::Missed(missed) => Some(json!({"v": 1, "task": task, "kind": "gap", "missed": missed})),
        };
        // After a failure the log is still read, so that nobody waits for a reader that is gone.
        let (Some(record), None) = (record, &lost) else {
            continue;
        };
        lost = write(&redacted(record, secrets).to_string()).err();
    }
    lost.map_or(Ok(()), |error| Err(failure::output(&error)))
}

/// One line at a time, whole: a program at the other end sees each as it happens.
fn write(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
