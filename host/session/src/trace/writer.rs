//! Writes the trace from a thread of its own, so that a slow disk blocks no runtime.

use std::{
    fs,
    io::{self, BufWriter, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use capsule_api::{Error, Secrets};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::{Capture, Read, Reader, RunState, codes, records, redacted};

/// Lines between the log and the disk. When it is full the reader waits, and with it, in the end, the transport.
const QUEUE: usize = 256;

/// A trace file being written.
#[derive(Debug)]
pub struct TraceWriter {
    path: PathBuf,
    lines: mpsc::Sender<String>,
    done: oneshot::Receiver<io::Result<()>>,
    /// The directory of the run, held until the last line is written.
    _state: Option<RunState>,
}

impl TraceWriter {
    /// Makes the file (0600), replacing one that is there.
    ///
    /// # Errors
    /// `session-trace` when it cannot be made.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let file = open(path).map_err(|error| failed(path, &error))?;
        let (lines, mut queue) = mpsc::channel::<String>(QUEUE);
        let (tell, done) = oneshot::channel();
        let write = move || {
            let mut out = BufWriter::new(file);
            let mut result = Ok(());
            while let Some(line) = queue.blocking_recv() {
                // After a failure the queue is still drained, so that nobody waits for a disk that is full.
                if result.is_ok() {
                    result = writeln!(out, "{line}");
                }
                if result.is_ok() && queue.is_empty() {
                    result = out.flush();
                }
            }
            let _ = tell.send(result.and_then(|()| out.flush()));
        };
        thread::Builder::new()
            .name("capsule-trace".into())
            .spawn(write)
            .map_err(|error| failed(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            lines,
            done,
            _state: None,
        })
    }

    /// Makes the file beside the run's state, and holds that until the trace is written.
    ///
    /// # Errors
    /// As for [`TraceWriter::create`].
    pub fn beside(state: RunState) -> Result<Self, Error> {
        let writer = Self::create(&state.path().join("trace.jsonl"))?;
        Ok(Self {
            _state: Some(state),
            ..writer
        })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the log to its end.
    ///
    /// # Errors
    /// `session-trace` when a line could not be written: the file then lacks it and all after it.
    pub async fn follow(
        self,
        mut reader: Reader,
        task: String,
        capture: Capture,
        secrets: Arc<dyn Secrets>,
    ) -> Result<(), Error> {
        while let Some(read) = reader.next().await {
            let record = match read {
                Read::Entry(entry) => records(&task, &entry, capture, false),
                Read::Missed(missed) => Some(json!({"v": 1, "task": task, "kind": "gap", "missed": missed})),
            };
            let Some(record) = record else { continue };
            let line = redacted(record, &*secrets).to_string();
            if self.lines.send(line).await.is_err() {
                break;
            }
        }
        drop(self.lines);
        let written = self
            .done
            .await
            .unwrap_or_else(|_| Err(io::Error::other("the writing thread ended early")));
        written.map_err(|error| failed(&self.path, &error))
    }
}

fn open(path: &Path) -> io::Result<fs::File> {
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    // The mode above is that of a new file; one that was there may be open to everybody. A device is nobody's to change.
    if file.metadata()?.is_file() {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::new(
        &codes::TRACE,
        format!("cannot write the trace {}: {error}", path.display()),
    )
}
