//! `capsule test`: the tapes of a capsule, played with its real tools.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anstyle::{AnsiColor, Style};
use capsule_api::{Error, Fold, Input, Outcome, Tape};
use capsule_manifest::Model;
use capsule_session::{Read, Reader, Report, RunPlace, Task, What};
use serde_json::json;

use super::on_runtime;
use crate::{
    Assembled, Choice, Failure, Surroundings,
    args::Test,
    asking::{self, Shown},
    assemble_recorded, exit, failure,
    rehearsal::{self, Drift, Rehearsed, TapeRecorder},
    signals::{Signal, Signals},
    view,
};

/// The folder of a capsule's tapes.
const TAPES: &str = "tapes";

pub(crate) fn test(args: &Test) -> Result<ExitCode, Failure> {
    let choice = Choice::of(&args.path);
    let base = choice.load_for(None, Model::Keys)?.base;
    let tapes = tapes(&base)?;
    let (mut drifted, mut anew) = (0, None);
    for path in &tapes {
        let name = path.strip_prefix(&base).unwrap_or(path).display().to_string();
        let played = play(&choice, path, &args.answer)?;
        if let Some(signal) = played.signal {
            return Ok(ExitCode::from(signal.exit_code()));
        }
        drifted += usize::from(!played.drift.is_empty());
        let results = played.drift.iter().any(|drift| matches!(drift, Drift::Result { .. }));
        anew = anew.or_else(|| results.then_some(path));
        let told = show(&name, &played, args.json);
        told.map_err(|error| failure::output(&error))?;
    }
    if !args.json && drifted > 0 {
        let told = writeln!(
            anstream::stderr().lock(),
            "{drifted} of {} drifted; where the change is meant, record again: {}",
            view::count(tapes.len() as u64, "tape"),
            recording(&args.path, anew.map(PathBuf::as_path))
        );
        told.map_err(|error| failure::output(&error))?;
    }
    Ok(ExitCode::from(if drifted > 0 { exit::FAILED } else { 0 }))
}

/// The command that records a tape again: with the results that the tools give now where only these differ, else with whoever answers the capsule.
fn recording(capsule: &Path, tape: Option<&Path>) -> String {
    let (capsule, (key, value)) = (capsule.display(), crate::links::player::DRIFT);
    match tape.map(Path::display) {
        Some(tape) => format!("capsule run {capsule} --replay {tape} --set inference.{key}={value} --record {tape}"),
        None => format!("capsule run {capsule} --record FILE, on a driver that asks a model"),
    }
}

/// The tapes of a capsule, by name.
fn tapes(base: &Path) -> Result<Vec<PathBuf>, Failure> {
    let dir = base.join(TAPES);
    let mut tapes = match listed(&dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let message = format!("{} cannot be read: {error}", dir.display());
            return Err(Failure::usage(message, "Make it a directory that you may read."));
        }
        listed => listed.unwrap_or_default(),
    };
    tapes.sort();
    if tapes.is_empty() {
        let hint = format!(
            "Record one: `capsule run {} --record {}`.",
            base.display(),
            dir.join("NAME.json").display()
        );
        return Err(Failure::usage(format!("there is no tape in {}", dir.display()), hint));
    }
    Ok(tapes)
}

/// The files in a folder whose names end as those of tapes do.
fn listed(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path()));
    let is_tape = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    paths
        .filter(|path| path.as_ref().is_ok_and(is_tape) || path.is_err())
        .collect()
}

/// What came of a tape.
struct Played {
    requests: usize,
    calls: u32,
    drift: Vec<Drift>,
    /// What ended the rehearsal from outside.
    signal: Option<Signal>,
}

fn play(choice: &Choice, path: &Path, answers: &[String]) -> Result<Played, Failure> {
    let tape = rehearsal::read(path)?;
    let choice = rehearsal::rehearsing(choice, path)?;
    let recorder = Arc::new(TapeRecorder::default());
    let assembled = assemble_recorded(&choice, Surroundings::process(), recorder.clone())?;
    let ran = on_runtime(run(&assembled, task_of(&tape), answers));
    assembled.shut_down();
    let Ran { report, fold, signal } = ran??;
    let now = recorder.take(&tape.capsule)?;
    let drift = rehearsal::compare(&Rehearsed {
        recorded: &tape.entries,
        now: &now.entries,
        fold: &fold,
        outcome: &report.outcome,
        player: crate::links::player::DRIVER,
    });
    Ok(Played {
        requests: now.entries.len(),
        calls: report.calls,
        drift,
        signal: signal.filter(|_| matches!(report.outcome, Ok(Outcome::Cancelled))),
    })
}

/// What the user said when the tape was recorded.
fn task_of(tape: &Tape) -> Input {
    let first = tape.entries.first().map(|entry| entry.shape().last.join("\n"));
    Input::text(first.unwrap_or_default())
}

struct Ran {
    report: Report,
    fold: Fold,
    signal: Option<Signal>,
}

async fn run(assembled: &Assembled, input: Input, answers: &[String]) -> Result<Ran, Failure> {
    let agent = &assembled.agent;
    let mut task = Task::new(&agent.services);
    let within = assembled.loaded.manifest.lifecycle.input_timeout.0;
    let (secrets, clock) = (agent.services.secrets.clone(), agent.services.clock.clone());
    task.caller = asking::caller(answers, Shown::Directly, secrets, (clock, within));
    let place = RunPlace {
        run_dir: assembled.places.make_run_dir(task.log.task())?,
        context: None,
    };
    let signals = Signals::cancel(task.cancel.clone())?;
    let (report, fold) = tokio::join!(agent.run(&task, input, place), folded(task.log.reader()));
    Ok(Ran {
        report,
        fold: fold?,
        signal: signals.seen(),
    })
}

async fn folded(mut reader: Reader) -> Result<Fold, Error> {
    let mut fold = Fold::default();
    while let Some(read) = reader.next().await {
        match read {
            Read::Entry(entry) => match &entry.what {
                What::Model(event) => fold.event(event),
                What::Run(event) => fold.run(event),
                _ => {}
            },
            Read::Missed(count) => {
                let lost = io::Error::other(format!("{count} events were lost"));
                return Err(failure::internal("follow the run", &lost));
            }
        }
    }
    Ok(fold)
}

fn show(name: &str, played: &Played, as_json: bool) -> io::Result<()> {
    let Played {
        requests, calls, drift, ..
    } = played;
    if as_json {
        let drift: Vec<_> = drift.iter().map(Drift::to_json).collect();
        let line =
            json!({"tape": name, "passed": drift.is_empty(), "requests": requests, "calls": calls, "drift": drift});
        return writeln!(io::stdout().lock(), "{line}");
    }
    let mut out = anstream::stdout().lock();
    let (verdict, colour) = match drift.is_empty() {
        true => ("ok", AnsiColor::Green),
        false => ("drift", AnsiColor::Red),
    };
    let style = Style::new().fg_color(Some(colour.into()));
    let calls = view::count(*calls, "tool call");
    writeln!(
        out,
        "{style}{verdict:<5}{style:#} {name} · {}, {calls}",
        view::count(*requests as u64, "request")
    )?;
    drift.iter().try_for_each(|drift| drift.show(&mut out))
}
