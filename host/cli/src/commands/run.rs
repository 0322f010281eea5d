//! `capsule run`: one task.

use std::{
    io::{self, IsTerminal as _, Read as _},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use capsule_api::{Caller, Error, Input, Outcome};
use capsule_manifest::Capture as Captured;
use capsule_session::{Capture, KeptContext, Report, RunPlace, Task, TraceWriter};
use tokio::sync::mpsc;

use super::on_runtime;
use crate::{
    Assembled, Choice, Failure, Surroundings,
    args::Run,
    asking::{self, Asked, Shown},
    assemble, assemble_recorded, exit, failure,
    rehearsal::{self, OnDrift, TapeRecorder},
    signals::{Signal, Signals},
    view,
};

/// A task longer than this is not a task.
const MAX_TASK: u64 = 16 << 20;

pub(crate) fn run(args: &Run) -> Result<ExitCode, Failure> {
    let mut choice = Choice::with(&args.path, &args.selection)?;
    if let Some(tape) = &args.replay {
        choice = rehearsal::replaying(&choice, tape, OnDrift::Fail)?;
    }
    let recording = Recording::begin(args, &choice)?;
    let assembled = match &recording {
        Some(recording) => assemble_recorded(&choice, Surroundings::process(), recording.tape.clone())?,
        None if args.dry_run => assemble::assemble_to_look(&choice)?,
        None => assemble(&choice)?,
    };
    if args.dry_run {
        let probe = on_runtime(assembled.agent.transport.probe(false));
        let shown = probe.and_then(|probe| view::plan(&assembled, &probe));
        assembled.shut_down();
        shown?;
        return Ok(ExitCode::SUCCESS);
    }
    let manifest = &assembled.loaded.manifest;
    let input = match (&manifest.script, &args.task) {
        // A script knows what it is to do.
        (Some(_), None) => Input::text(manifest.task.as_deref().unwrap_or_default()),
        _ => Input::text(task_text(args, manifest.task.as_deref())?),
    };
    let warnings = assembled.warnings.iter();
    view::warnings(warnings.map(|(code, message)| (*code, message.as_str())));
    let done = on_runtime(one_task(&assembled, args, input, recording));
    assembled.shut_down();
    done?
}

/// The task: `-t`, else the manifest's, else standard input where that is no terminal.
fn task_text(args: &Run, declared: Option<&str>) -> Result<String, Failure> {
    let text = match (args.task.as_deref(), declared) {
        (Some("-"), _) => read_stdin()?,
        (Some(text), _) | (None, Some(text)) => text.to_owned(),
        (None, None) if !io::stdin().is_terminal() => read_stdin()?,
        (None, None) => String::new(),
    };
    if text.trim().is_empty() {
        let message =
            "there is no task: give one with `-t TEXT`, on standard input (`-t -`), or as `task:` in the manifest";
        return Err(Failure::usage(
            message,
            "For example `capsule run DIR -t 'What is in your notes?'`.",
        ));
    }
    Ok(text)
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = io::stdin().lock().take(MAX_TASK + 1).read_to_string(&mut text);
    read.map_err(|error| {
        let message = format!("the task on standard input cannot be read: {error}");
        Failure::usage(message, "Give UTF-8 text, or the task itself with `-t TEXT`.")
    })?;
    if text.len() as u64 > MAX_TASK {
        let hint = "Put the text into a file that a tool may read, and name the file in the task.";
        return Err(Failure::usage("the task on standard input is longer than 16 MiB", hint));
    }
    Ok(text)
}

/// A run that is recorded.
struct Recording {
    tape: Arc<TapeRecorder>,
    file: PathBuf,
}

impl Recording {
    fn begin(args: &Run, choice: &Choice) -> Result<Option<Self>, Failure> {
        let Some(file) = args.record.clone() else {
            return Ok(None);
        };
        rehearsal::check_recordable(choice)?;
        rehearsal::check_place(&file)?;
        let tape = Arc::new(TapeRecorder::default());
        Ok(Some(Self { tape, file }))
    }

    /// Writes what there is, however the run ended; but the tape of a run that did not come to its end never replaces another. Returns where it
    /// is if it is elsewhere than was asked for.
    async fn end(self, capsule: String, whole: bool) -> Result<Option<PathBuf>, Error> {
        let write = move || {
            let elsewhere = (!whole).then(|| rehearsal::beside_what_is_there(&self.file)).flatten();
            let file = elsewhere.as_ref().unwrap_or(&self.file);
            rehearsal::write(file, &self.tape.take(&capsule)?)?;
            Ok(elsewhere)
        };
        let written = tokio::task::spawn_blocking(write).await;
        written.unwrap_or_else(|panic| Err(panicked(&panic)))
    }
}

async fn one_task(
    assembled: &Assembled,
    args: &Run,
    input: Input,
    recording: Option<Recording>,
) -> Result<ExitCode, Failure> {
    let agent = &assembled.agent;
    let (view, questions) = mpsc::channel(1);
    let mut task = Task::new(&agent.services);
    task.caller = caller(assembled, args, view);
    let mut lost = Vec::new();
    let place = place(assembled, args, &task)?;
    let trace = start_trace(assembled, args, &task).unwrap_or_else(|error| {
        lost.push(error);
        None
    });
    let trace_path = trace.as_ref().map(|(_, path)| path.clone());
    let signals = Signals::cancel(task.cancel.clone())?;

    let secrets = agent.services.secrets.clone();
    let shown = tokio::spawn(view::follow(
        task.log.reader(),
        task.log.task().to_owned(),
        args.json,
        secrets.clone(),
        questions,
    ));
    let traced = trace.map(|(writer, _)| {
        let (id, capture) = (task.log.task().to_owned(), capture(assembled));
        tokio::spawn(writer.follow(task.log.reader(), id, capture, secrets))
    });
    let report = agent.run(&task, input, place).await;

    if let Some(traced) = traced {
        lost.extend(traced.await.unwrap_or_else(|panic| Err(panicked(&panic))).err());
    }
    let mut partial = None;
    if let Some(recording) = recording {
        match recording.end(agent.capsule.name.clone(), is_whole(&report)).await {
            Ok(elsewhere) => partial = elsewhere,
            Err(error) => lost.push(error),
        }
    }
    lost.extend(report.not_kept.clone());
    lost.extend(shown.await.unwrap_or_else(|panic| Err(panicked(&panic))).err());
    finish(
        &report,
        Ending {
            lost,
            trace_path,
            partial,
            signal: signals.seen(),
        },
    )
}

/// Who answers questions of tools.
fn caller(assembled: &Assembled, args: &Run, view: mpsc::Sender<Asked>) -> Arc<dyn Caller> {
    let services = &assembled.agent.services;
    // JSON has standard output for itself, and its view shows nothing on standard error.
    let shown = if args.json { Shown::Directly } else { Shown::View(view) };
    let within = assembled.loaded.manifest.lifecycle.input_timeout.0;
    asking::caller(
        &args.answer,
        shown,
        services.secrets.clone(),
        (services.clock.clone(), within),
    )
}

struct Ending {
    /// What should have been kept or shown and is not.
    lost: Vec<Error>,
    trace_path: Option<PathBuf>,
    /// Where the tape is that did not replace another.
    partial: Option<PathBuf>,
    signal: Option<Signal>,
}

/// Whether a run came to an end of its own: its tape shows a course that a rehearsal can follow. One that failed or was cancelled has a part of
/// it, and where the run was played itself, less than the tape that it was played from.
fn is_whole(report: &Report) -> bool {
    !matches!(report.outcome, Err(_) | Ok(Outcome::Cancelled))
}

fn finish(report: &Report, ending: Ending) -> Result<ExitCode, Failure> {
    let trace_path = ending.trace_path.filter(|_| ending.lost.is_empty());
    view::summary(report, trace_path.as_deref());
    if let Some(partial) = &ending.partial {
        let message = format!(
            "the run did not come to its end, so the tape that was there stays; what was recorded is in {}",
            partial.display()
        );
        view::warnings([(failure::codes::TAPE_PARTIAL.id, message.as_str())].into_iter());
    }
    for error in &ending.lost {
        // The run is over; if standard error is gone too, the exit code still says it.
        let _ = failure::show_error(error, &mut anstream::stderr());
    }
    Ok(exit::of_run(&report.outcome, ending.signal, ending.lost.is_empty()))
}

fn place(assembled: &Assembled, args: &Run, task: &Task) -> Result<RunPlace, Failure> {
    let context = args
        .context
        .as_deref()
        .map(|name| KeptContext::open(&assembled.places, name))
        .transpose()?;
    let run_dir = assembled.places.make_run_dir(task.log.task())?;
    Ok(RunPlace { run_dir, context })
}

fn capture(assembled: &Assembled) -> Capture {
    match assembled.loaded.manifest.trace.capture {
        Captured::None => Capture::None,
        Captured::Summary => Capture::Summary,
        Captured::Content => Capture::Content,
    }
}

fn start_trace(assembled: &Assembled, args: &Run, task: &Task) -> Result<Option<(TraceWriter, PathBuf)>, Error> {
    if capture(assembled) == Capture::None {
        return Ok(None);
    }
    let writer = match &args.trace {
        Some(path) => TraceWriter::create(path)?,
        None => TraceWriter::beside(assembled.places.make_run_state(task.log.task())?)?,
    };
    let path = writer.path().to_owned();
    Ok(Some((writer, path)))
}

fn panicked(error: &tokio::task::JoinError) -> Error {
    failure::internal("finish a part of the host", &io::Error::other(error.to_string()))
}
