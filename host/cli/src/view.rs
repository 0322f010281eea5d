//! What people and programs see of a run.

mod json;
mod screen;
mod terminal;

use std::{
    io::{self, IsTerminal as _, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anstyle::{AnsiColor, Style};
use capsule_api::{Billing, Error, Limit, Outcome, Probe, Secrets};
use capsule_session::{Reader, Report};
use tokio::sync::mpsc;

use crate::{Assembled, Failure, asking::Asked, failure};

/// Shows the log to its end: as text for a person, with the questions that tools ask, or as JSON lines.
pub(crate) async fn follow(
    reader: Reader,
    task: String,
    as_json: bool,
    secrets: Arc<dyn Secrets>,
    questions: mpsc::Receiver<Asked>,
) -> Result<(), Error> {
    if as_json {
        return json::follow(reader, &task, &*secrets).await;
    }
    terminal::follow(reader, secrets, questions).await
}

/// Text from elsewhere without what a terminal would obey: control characters, which move the cursor, recolour or retitle it, and the
/// invisible characters that reorder a line.
pub(crate) fn plain(text: &str) -> String {
    let obeyed = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
    let invisible = |c: &char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    text.chars().filter(|c| !obeyed(c) && !invisible(c)).collect()
}

/// A size as people read it: `128 KiB`, to three digits or so.
pub(crate) fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1024 => return format!("{bytes} B"),
        1024..1_048_576 => (1024.0, "KiB"),
        _ => (1_048_576.0, "MiB"),
    };
    let value = bytes as f64 / unit;
    match value < 10.0 {
        true => format!("{value:.1} {name}"),
        false => format!("{value:.0} {name}"),
    }
}

/// What was survived before a run or a call began, on standard error.
pub(crate) fn warnings<'a>(warnings: impl Iterator<Item = (&'static str, &'a str)>) {
    let mut err = anstream::stderr().lock();
    for (code, message) in warnings {
        // If standard error is gone there is nobody to tell.
        let _ = writeln!(err, "warning: {} ({code})", plain(message));
    }
}

/// The last lines of a run, on standard error.
pub(crate) fn summary(report: &Report, trace: Option<&Path>) {
    // If standard error is gone there is nobody to tell; the exit code still says how it went.
    let _ = write_summary(&mut anstream::stderr().lock(), report, trace);
}

fn write_summary(out: &mut dyn Write, report: &Report, trace: Option<&Path>) -> io::Result<()> {
    for (pid, name) in &report.residue.processes {
        writeln!(out, "warning: the process {pid} ({}) is still running", plain(name))?;
    }
    for file in &report.residue.files {
        writeln!(out, "warning: {} could not be removed", file.display())?;
    }
    match &report.outcome {
        Ok(outcome) => write_outcome(out, outcome)?,
        Err(error) => failure::show_error(error, out)?,
    }
    let usage = report.usage;
    let denied = if report.denied > 0 {
        format!(" ({} denied)", report.denied)
    } else {
        String::new()
    };
    let dim = Style::new().dimmed();
    write!(
        out,
        "{dim}{} · {}{denied}",
        count(usage.requests, "request"),
        count(report.calls, "tool call")
    )?;
    if usage.input + usage.output + usage.cache_read + usage.cache_write > 0 {
        let input = usage.input + usage.cache_read + usage.cache_write;
        write!(out, " · {input} tokens in, {} out", usage.output)?;
    }
    if let Some(micros) = usage.cost_micros {
        write!(out, " · cost {:.4}", micros as f64 / 1e6)?;
    }
    if let Some(trace) = trace {
        write!(out, " · trace {}", trace.display())?;
    }
    writeln!(out, "{dim:#}")
}

fn write_outcome(out: &mut dyn Write, outcome: &Outcome) -> io::Result<()> {
    let yellow = Style::new().fg_color(Some(AnsiColor::Yellow.into()));
    match outcome {
        Outcome::Completed { .. } => Ok(()),
        Outcome::InputRequired { prompt } => {
            writeln!(out, "{yellow}the agent asks:{yellow:#} {}", plain(prompt))?;
            writeln!(
                out,
                "  hint: nobody can answer in this run; give the answer with `--answer TEXT`, or put it into the task"
            )
        }
        Outcome::Refused { text } => writeln!(out, "{yellow}the model refused:{yellow:#} {}", plain(text)),
        Outcome::Truncated { partial } => {
            writeln!(
                out,
                "{yellow}the model was cut by its output limit; this is not an answer:{yellow:#}"
            )?;
            writeln!(out, "{}", plain(partial))?;
            writeln!(out, "  hint: raise `inference.max_tokens`, or ask for less at once")
        }
        Outcome::LimitReached { which } => {
            writeln!(out, "{yellow}a limit ended the run:{yellow:#} {}", limit(*which))
        }
        Outcome::Cancelled => writeln!(out, "{yellow}cancelled{yellow:#}"),
        other => writeln!(out, "{yellow}{}{yellow:#}", other.as_str()),
    }
}

fn limit(which: Limit) -> &'static str {
    match which {
        Limit::Requests => "as many model requests as `inference.max_turns` allows",
        Limit::Wall => "the longest a run may take",
        Limit::Idle => "no sign of life from the model for too long",
        Limit::Tokens => "as many tokens as the session may use",
        Limit::Cost => "as much money as the run may cost",
        Limit::SameFailure => "the same tool call failed again and again",
        _ => "a limit of the capsule",
    }
}

/// Who pays for a run; `None` where nobody does.
fn payer(billing: Billing) -> Option<&'static str> {
    match billing {
        Billing::Free => None,
        Billing::ApiKey => Some("billed to the API key"),
        Billing::Subscription => Some("billed to the subscription"),
        Billing::Token => Some("billed to the subscription of the token"),
        _ => Some("who is billed is not known"),
    }
}

pub(crate) fn count(n: impl Into<u64>, what: &str) -> String {
    let n = n.into();
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// What `--dry-run` prints.
pub(crate) fn plan(assembled: &Assembled, probe: &Probe) -> Result<(), Failure> {
    let mut text = Vec::new();
    let written = write_plan(&mut text, assembled, probe).and_then(|()| {
        let text = plain(&String::from_utf8_lossy(&text));
        io::stdout().lock().write_all(text.as_bytes())
    });
    written.map_err(|error| failure::output(&error))?;
    match &probe.usable {
        Ok(()) => Ok(()),
        Err(error) => Err(error.clone().into()),
    }
}

fn write_plan(out: &mut dyn Write, assembled: &Assembled, probe: &Probe) -> io::Result<()> {
    let agent = &assembled.agent;
    writeln!(out, "capsule    {} {}", agent.capsule.name, agent.capsule.version)?;
    writeln!(out, "transport  {}", agent.descriptor.name)?;
    if let Some(how) = &agent.chosen_by {
        writeln!(out, "           {how}")?;
    }
    for (name, value) in &probe.facts {
        writeln!(out, "           {name}: {}", plain(value))?;
    }
    writeln!(
        out,
        "model      {}",
        agent.prompting.model.as_deref().unwrap_or("the transport's default")
    )?;
    writeln!(out, "requests   at most {}", agent.prompting.limits.requests)?;
    for tool in &agent.toolkit.catalogue().tools {
        writeln!(out, "tool       {}", tool.name)?;
    }
    write_grants(out, assembled)
}

fn write_grants(out: &mut dyn Write, assembled: &Assembled) -> io::Result<()> {
    let capabilities = &assembled.loaded.manifest.capabilities;
    for grant in &capabilities.filesystem {
        let may = match grant.mode {
            capsule_manifest::Mode::ReadOnly => "may read",
            capsule_manifest::Mode::ReadWrite => "may read and write",
        };
        writeln!(
            out,
            "grant      every tool {may} {} as {}",
            assembled
                .loaded
                .path(&grant.path)
                .components()
                .collect::<PathBuf>()
                .display(),
            grant.at
        )?;
    }
    for host in &capabilities.network.allow {
        writeln!(out, "grant      every tool may send HTTP requests to {host}")?;
    }
    for name in capabilities.secrets.keys() {
        writeln!(
            out,
            "grant      requests of every tool may carry the secret {name}, which none sees"
        )?;
    }
    for name in &capabilities.env.allow {
        writeln!(out, "grant      every tool sees the variable {name}")?;
    }
    let tools = &assembled.loaded.manifest.tools;
    for tool in tools.iter().filter(|tool| tool.capabilities.is_some()) {
        writeln!(
            out,
            "grant      {} has a part of that alone; `capsule doctor` shows it",
            tool.name
        )?;
    }
    let limits = capabilities.limits;
    let (memory, deadline, output) = (limits.memory, limits.deadline, limits.output);
    writeln!(
        out,
        "limits     {memory} memory, {deadline} a call, {output} of output, {} calls at once",
        limits.concurrent_calls
    )
}

/// Whether standard output and standard error are terminals.
fn terminals() -> (bool, bool) {
    (io::stdout().is_terminal(), io::stderr().is_terminal())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_at_a_glance() {
        let shown = [0, 1023, 1024, 131_233, 1_048_575, 5_400_000].map(size);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "128 KiB", "1024 KiB", "5.1 MiB"]);
    }

    #[test]
    fn control_sequences_of_a_model_do_not_reach_the_terminal() {
        let text = "ok\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\r\nnext\tcolumn";
        assert_eq!(plain(text), "ok[2J]0;title31m\nnext\tcolumn");
    }
}
