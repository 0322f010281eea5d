//! The service over a pair of pipes: one message a line, both ways.

use std::{io, task::Poll, time::Duration};

use capsule_api::timeout;
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::mpsc,
    task::{JoinError, JoinSet},
};

use crate::{
    McpService,
    reply::Reply,
    service::Via,
    wire::{self, PARSE_ERROR, RpcError},
};

/// Bytes of the longest line that is read, as of the longest body over HTTP. A longer one is answered with an error and left out.
pub const LONGEST_LINE: usize = 4 << 20;
/// Requests under way at once; one more is refused. As many as the listener has connections.
const AT_ONCE: usize = 256;
/// Messages that wait to be written. When it is full, answers wait, and then reading does.
const UNWRITTEN: usize = 64;
/// Too much at once; a code of ours, from the range that JSON-RPC leaves to servers.
const BUSY: i64 = -32000;

/// Serves one client until `input` ends; requests under way then get `grace` to end. Dropping the future cancels everything.
///
/// # Errors
/// `input` cannot be read or `output` not written.
pub async fn serve_lines(
    service: McpService,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    grace: Duration,
) -> io::Result<()> {
    let (answers, unwritten) = mpsc::channel(UNWRITTEN);
    // The first error ends both.
    tokio::try_join!(read(service, input, answers, grace), write(output, unwritten))?;
    Ok(())
}

async fn write(mut output: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Value>) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        output.write_all(format!("{message}\n").as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}

async fn read(
    service: McpService,
    input: impl AsyncRead + Unpin,
    answers: mpsc::Sender<Value>,
    grace: Duration,
) -> io::Result<()> {
    let mut lines = Lines::new(input);
    let mut work = JoinSet::new();
    loop {
        let line = tokio::select! {
            biased;
            Some(ended) = work.join_next() => {
                report(ended);
                continue;
            }
            line = lines.next() => line?,
        };
        match line {
            Line::Message(text) if text.trim_ascii().is_empty() => {}
            Line::Message(text) => take(&service, text, &mut work, &answers).await,
            Line::TooLong => {
                let error = RpcError::new(PARSE_ERROR, format!("a line has more than {LONGEST_LINE} bytes"));
                send(&answers, wire::answer(&Value::Null, Err(error))).await;
            }
            Line::End => break,
        }
    }
    drop(answers);
    let ended = async {
        while let Some(ended) = work.join_next().await {
            report(ended);
        }
    };
    // What does not end in time is cancelled with the set.
    let _ = timeout(&*service.0.clock, grace, ended).await;
    Ok(())
}

/// Begins to answer a line. It is polled once here: whatever line comes next, a cancel of this request among them, finds it under way.
async fn take(service: &McpService, text: Vec<u8>, work: &mut JoinSet<()>, answers: &mpsc::Sender<Value>) {
    if work.len() >= AT_ONCE
        && let Ok(wire::Message::Request(request)) = wire::read(&text)
    {
        let error = RpcError::new(BUSY, format!("{AT_ONCE} requests are under way"));
        return send(answers, wire::answer(&request.id, Err(error))).await;
    }
    let service = service.clone();
    let mut answer = Box::pin(async move { service.answer(Via::Line, &text).await });
    let answers = answers.clone();
    match futures_util::poll!(&mut answer) {
        Poll::Ready(Reply::Nothing) => {}
        Poll::Ready(reply) => drop(work.spawn(pass_on(reply, answers))),
        Poll::Pending => drop(work.spawn(async move { pass_on(answer.await, answers).await })),
    }
}

async fn pass_on(reply: Reply, answers: mpsc::Sender<Value>) {
    match reply {
        Reply::Nothing => {}
        Reply::One(_, message) => send(&answers, message).await,
        Reply::Many(mut messages) => {
            while let Some(message) = messages.next().await {
                // A pipe has no idle time-out that a sign without meaning would hold off.
                if let Some(message) = message {
                    send(&answers, message).await;
                }
            }
        }
    }
}

/// Nobody reads any more once the writer is gone, and everything ends with it.
async fn send(answers: &mpsc::Sender<Value>, message: Value) {
    let _ = answers.send(message).await;
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "answering a request panicked");
    }
}

/// What comes next of the input.
#[derive(Debug, PartialEq)]
enum Line {
    Message(Vec<u8>),
    TooLong,
    End,
}

/// Input line by line, with a bound on what it keeps. A last line without its end counts.
struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    too_long: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(64 << 10, input),
            line: Vec::new(),
            too_long: false,
        }
    }

    /// Cancel-safe: what has been read of a line is kept.
    async fn next(&mut self) -> io::Result<Line> {
        loop {
            let read = self.input.fill_buf().await?;
            if read.is_empty() {
                return Ok(match self.finish() {
                    Line::Message(text) if text.is_empty() => Line::End,
                    last => last,
                });
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let piece = &read[..end.unwrap_or(read.len())];
            self.too_long |= piece.len() > LONGEST_LINE - self.line.len();
            if self.too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(piece);
            }
            let taken = piece.len() + usize::from(end.is_some());
            self.input.consume(taken);
            if end.is_some() {
                return Ok(self.finish());
            }
        }
    }

    fn finish(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            Line::TooLong
        } else {
            Line::Message(line)
        }
    }
}
