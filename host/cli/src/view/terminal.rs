//! A run for a person: the answer on standard output, what happens on standard error.
//!
//! On a terminal the text appears as it comes and is taken back where it must be. Where standard output is no terminal, only the answer is
//! written, once it is certain. Where standard error is none, its lines are plain.

use std::{
    collections::HashMap,
    io::{self, Write},
    sync::Arc,
};

use anstyle::{AnsiColor, Style};
use capsule_api::{BlockId, BlockKind, Error, Event, Outcome, RunEvent, Secrets, ToolReply, ToolStatus};
use capsule_session::{Entry, Read, Reader, What};
use tokio::sync::mpsc;

use super::{plain, screen::Screen, terminals};
use crate::{asking::Asked, failure};

/// Longest line of arguments or of a failed result.
const MAX_LINE: usize = 100;

pub(super) async fn follow(
    mut reader: Reader,
    secrets: Arc<dyn Secrets>,
    mut questions: mpsc::Receiver<Asked>,
) -> Result<(), Error> {
    let (out_terminal, err_terminal) = terminals();
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let screen = size.map_or(Screen::new(80, 24), |size| {
        Screen::new(size.ws_col.into(), size.ws_row.into())
    });
    let mut view = View::new(
        anstream::stdout(),
        anstream::stderr(),
        out_terminal.then_some(screen),
        err_terminal,
        secrets,
    );
    let mut lost = None;
    loop {
        let shown = tokio::select! {
            // First what came before a question.
            biased;
            read = reader.next() => match read {
                Some(Read::Entry(entry)) => view.entry(&entry),
                Some(Read::Missed(n)) => view.line(&format!("({n} events were too many to show)")),
                None => break,
            },
            Some(asked) = questions.recv() => view.question(asked).await,
        };
        // After a failure the log is still read, so that nobody waits for a reader that is gone.
        if let (Err(error), None) = (shown, &lost) {
            lost = Some(error);
        }
    }
    lost.map_or(Ok(()), |error| Err(failure::output(&error)))
}

/// The view. Generic over its outputs so that tests see what a person would.
pub(super) struct View<O, E> {
    out: O,
    err: E,
    /// `None` where standard output is no terminal.
    screen: Option<Screen>,
    err_terminal: bool,
    /// Text on the screen, by block; only the last one can be taken back.
    shown: HashMap<BlockId, String>,
    last: Option<BlockId>,
    /// Whether a line of a call's own text is unfinished on standard error.
    open_chunk: bool,
    secrets: Arc<dyn Secrets>,
}

impl<O: Write, E: Write> View<O, E> {
    pub(super) fn new(out: O, err: E, screen: Option<Screen>, err_terminal: bool, secrets: Arc<dyn Secrets>) -> Self {
        Self {
            out,
            err,
            screen,
            err_terminal,
            shown: HashMap::new(),
            last: None,
            open_chunk: false,
            secrets,
        }
    }

    pub(super) fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        match &entry.what {
            What::RunStart(start) => {
                let (name, version) = &start.capsule;
                let how = start.chosen_by.as_ref().map(|how| format!(" ({how})"));
                let how = how.unwrap_or_default();
                self.mark(
                    "●",
                    AnsiColor::Cyan,
                    &format!("{name} {version} on {}{how}", start.transport),
                )
            }
            What::Model(event) => self.model(event),
            What::Run(event) => self.ran(event),
            What::RunEnd { outcome, .. } => self.end(outcome),
            _ => Ok(()),
        }
    }

    /// Shows a question and nothing else until it is over: what happens meanwhile waits in the log.
    async fn question(&mut self, asked: Asked) -> io::Result<()> {
        // Withdrawn before it was seen.
        if asked.shown.is_closed() {
            return Ok(());
        }
        let lines = self.clean(&asked.text);
        self.end_of_line()?;
        self.last = None;
        write!(self.err, "{lines}")?;
        self.err.flush()?;
        // Nobody waits any more where the question was withdrawn in the meantime.
        let _ = asked.shown.send(());
        let _ = asked.over.await;
        Ok(())
    }

    fn model(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Started {
                model, peer, billing, ..
            } => {
                let parts = [model.as_deref(), peer.as_deref(), super::payer(*billing)];
                let parts: Vec<_> = parts.into_iter().flatten().map(plain).collect();
                if parts.is_empty() {
                    Ok(())
                } else {
                    self.mark(" ", AnsiColor::Cyan, &parts.join(" · "))
                }
            }
            Event::Delta {
                block,
                kind: BlockKind::Text,
                text,
            } => self.text(*block, text),
            Event::Block {
                block,
                kind: BlockKind::Text,
                text,
            } => self.whole(*block, text),
            Event::Retracted { block } => self.retract(*block),
            Event::Retrying { attempt, after, cause } => {
                let seconds = after.as_secs_f64();
                let cause = cause.as_str().replace('_', " ");
                self.mark(
                    "↻",
                    AnsiColor::Yellow,
                    &format!("{cause}; try {} in {seconds:.1} s", attempt + 1),
                )
            }
            Event::CallAbandoned { call } => self.mark(
                "✗",
                AnsiColor::Yellow,
                &format!("a call was begun and not made ({call})"),
            ),
            Event::Warning { code, message } => {
                self.mark("!", AnsiColor::Yellow, &format!("{} ({code})", plain(message)))
            }
            Event::Compacted { before, after } => self.mark(
                "●",
                AnsiColor::Cyan,
                &format!("older messages were summarised: {before} to {after} tokens"),
            ),
            _ => Ok(()),
        }
    }

    fn ran(&mut self, event: &RunEvent) -> io::Result<()> {
        match event {
            RunEvent::Started { name, arguments, .. } => {
                let arguments = short(&plain(&arguments.to_string()));
                self.mark("→", AnsiColor::Cyan, &format!("{name} {arguments}"))
            }
            RunEvent::Chunk {
                kind: BlockKind::Text,
                text,
                ..
            } => {
                self.end_of_line()?;
                let text = self.clean(text);
                self.open_chunk = !text.ends_with('\n');
                write!(self.err, "{text}")?;
                self.err.flush()
            }
            RunEvent::Ended {
                name, reply, duration, ..
            } => {
                let ms = duration.as_millis();
                let (mark, color) = match reply.status {
                    ToolStatus::Passed => ("✓", AnsiColor::Green),
                    _ => ("✗", AnsiColor::Red),
                };
                self.mark(mark, color, &format!("{name} {ms} ms {}", result(reply)))
            }
            RunEvent::Missed { call, why } => self.mark("!", AnsiColor::Yellow, &format!("{} ({call})", plain(why))),
            RunEvent::Warning { code, message } => {
                self.mark("!", AnsiColor::Yellow, &format!("{} ({code})", plain(message)))
            }
            _ => Ok(()),
        }
    }

    /// The answer, where it is not on the screen already.
    fn end(&mut self, outcome: &Result<Outcome, Error>) -> io::Result<()> {
        self.end_of_line()?;
        let Ok(Outcome::Completed { text }) = outcome else {
            return Ok(());
        };
        let on_screen = self
            .last
            .and_then(|block| self.shown.get(&block))
            .is_some_and(|shown| *shown == *text);
        if self.screen.is_some() {
            return if on_screen {
                Ok(())
            } else {
                self.write_out(&format!("{}\n", self.clean(text)))
            };
        }
        let text = self.secrets.redact(text).into_owned();
        write!(self.out, "{text}")?;
        if !text.ends_with('\n') {
            writeln!(self.out)?;
        }
        self.out.flush()
    }

    fn text(&mut self, block: BlockId, text: &str) -> io::Result<()> {
        if self.screen.is_none() {
            return Ok(());
        }
        if self.last != Some(block) {
            self.end_of_line()?;
            if let Some(screen) = &mut self.screen {
                screen.mark();
            }
            self.last = Some(block);
        }
        self.shown.entry(block).or_default().push_str(text);
        self.write_out(&self.clean(text))
    }

    fn whole(&mut self, block: BlockId, text: &str) -> io::Result<()> {
        let shown = self.shown.get(&block).cloned().unwrap_or_default();
        match text.strip_prefix(shown.as_str()) {
            Some("") => Ok(()),
            Some(rest) => self.text(block, rest),
            None => {
                self.retract(block)?;
                self.text(block, text)
            }
        }
    }

    fn retract(&mut self, block: BlockId) -> io::Result<()> {
        if self.shown.remove(&block).is_none_or(|shown| shown.is_empty()) {
            return Ok(());
        }
        let last = self.last.take_if(|last| *last == block).is_some();
        match self.screen.as_mut().filter(|_| last).and_then(Screen::erase) {
            Some(erase) => {
                write!(self.out, "{erase}")?;
                self.out.flush()
            }
            None => self.mark("↺", AnsiColor::Yellow, "the text above was taken back"),
        }
    }

    /// What a person may see: no protected value, and nothing that a terminal would obey.
    fn clean(&self, text: &str) -> String {
        plain(&self.secrets.redact(text))
    }

    /// A line about what happens. Whatever its text came from, it cannot do more than be read.
    fn mark(&mut self, mark: &str, color: AnsiColor, text: &str) -> io::Result<()> {
        let text = self.clean(text);
        if self.err_terminal {
            let style = Style::new().fg_color(Some(color.into()));
            self.line(&format!("{style}{mark}{style:#} {text}"))
        } else {
            self.line(&format!("{mark} {text}"))
        }
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.end_of_line()?;
        // On one terminal both streams share the cursor: what came before this line cannot be taken back any more.
        if self.err_terminal {
            self.last = None;
        }
        writeln!(self.err, "{line}")
    }

    /// Whatever is written next begins a line.
    fn end_of_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.open_chunk) {
            writeln!(self.err)?;
        }
        match &self.screen {
            Some(screen) if !screen.at_line_start() => self.write_out("\n"),
            _ => Ok(()),
        }
    }

    fn write_out(&mut self, text: &str) -> io::Result<()> {
        if let Some(screen) = &mut self.screen {
            screen.wrote(text);
        }
        write!(self.out, "{text}")?;
        self.out.flush()
    }
}

fn result(reply: &ToolReply) -> String {
    let text = reply.joined_text();
    match reply.status {
        ToolStatus::Passed => format!("{} bytes", text.len()),
        status => format!("{}: {}", status.as_str().replace('_', " "), short(&plain(&text))),
    }
}

/// The first line, cut.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_LINE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
