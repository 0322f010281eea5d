//! How a run differs from the one on a tape.

use std::{
    io::{self, Write},
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use similar::{Algorithm, TextDiff};

use crate::view;

/// Finding the shortest difference of two long texts may take long; after this it takes a longer one.
const PATIENCE: Duration = Duration::from_secs(2);
/// Unchanged lines around a change.
const AROUND: usize = 3;
/// The most of a call's arguments that its title shows, in characters.
const MAX_ARGUMENTS: usize = 120;

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drift {
    /// A tool answered something else.
    Result {
        /// The model request that has the result, counted from 1.
        request: usize,
        /// The tool's name.
        tool: String,
        /// What it was called with.
        arguments: Value,
        /// What it answered when the tape was recorded.
        recorded: String,
        /// What it answers now.
        now: String,
    },
    /// Other tools are on offer. Told beside another difference.
    Tools {
        /// The names then.
        recorded: Vec<String>,
        /// The names now.
        now: Vec<String>,
    },
    /// The run did not take the recorded requests, or ended in another way.
    Course {
        /// How many requests were played.
        played: usize,
        /// How many are on the tape.
        recorded: usize,
        /// What happened instead.
        why: String,
    },
}

impl Drift {
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Result {
                request,
                tool,
                arguments,
                recorded,
                now,
            } => json!({
                "is": "result", "request": request, "tool": tool, "arguments": arguments,
                "recorded": recorded, "now": now,
            }),
            Self::Tools { recorded, now } => json!({"is": "tools", "recorded": recorded, "now": now}),
            Self::Course { played, recorded, why } => {
                json!({"is": "course", "played": played, "recorded": recorded, "why": why})
            }
        }
    }

    /// Shows it to people, indented.
    pub(crate) fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Result {
                request,
                tool,
                arguments,
                recorded,
                now,
            } => {
                let shown = shortened(&arguments.to_string());
                writeln!(out, "  {tool} {shown} answers something else (request {request})")?;
                show_diff(out, recorded, now)
            }
            Self::Tools { recorded, now } => {
                writeln!(out, "  other tools are on offer")?;
                let lines = |names: &[String]| names.iter().map(|name| format!("{name}\n")).collect::<String>();
                show_diff(out, &lines(recorded), &lines(now))
            }
            Self::Course { played, recorded, why } => {
                writeln!(out, "  the run took {played} of the {recorded} recorded requests")?;
                why.lines()
                    .try_for_each(|line| writeln!(out, "    {}", view::plain(line)))
            }
        }
    }
}

fn shortened(text: &str) -> String {
    let text = view::plain(text);
    if text.chars().count() <= MAX_ARGUMENTS {
        return text;
    }
    text.chars().take(MAX_ARGUMENTS).chain(['…']).collect()
}

/// A unified diff.
fn show_diff(out: &mut dyn Write, recorded: &str, now: &str) -> io::Result<()> {
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(PATIENCE)
        .diff_lines(recorded, now);
    let text = diff
        .unified_diff()
        .context_radius(AROUND)
        .header("recorded", "now")
        .to_string();
    let (red, green, dim) = (
        Style::new().fg_color(Some(AnsiColor::Red.into())),
        Style::new().fg_color(Some(AnsiColor::Green.into())),
        Style::new().dimmed(),
    );
    for line in text.lines() {
        let style = match line.as_bytes().first() {
            Some(b'-') => red,
            Some(b'+') => green,
            Some(b'@' | b'\\') => dim,
            _ => Style::new(),
        };
        writeln!(out, "    {style}{}{style:#}", view::plain(line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(drift: &Drift) -> String {
        let mut out = anstream::StripStream::new(Vec::new());
        drift.show(&mut out).unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    #[test]
    fn another_result_is_a_unified_diff_without_control_sequences() {
        let drift = Drift::Result {
            request: 2,
            tool: "read".to_owned(),
            arguments: json!({"path": "/a"}),
            recorded: "one\ntwo\nthree\n".to_owned(),
            now: "one\n2\u{1b}[2J\nthree\n".to_owned(),
        };
        let expected = "  read {\"path\":\"/a\"} answers something else (request 2)\n    \
            --- recorded\n    +++ now\n    @@ -1,3 +1,3 @@\n     one\n    -two\n    +2[2J\n     three\n";
        assert_eq!(shown(&drift), expected);
    }

    #[test]
    fn another_course_says_how_far_it_came_and_why_it_went_no_further() {
        let drift = Drift::Course {
            played: 1,
            recorded: 3,
            why: "it was refused\nat once".to_owned(),
        };
        let expected = "  the run took 1 of the 3 recorded requests\n    it was refused\n    at once\n";
        assert_eq!(shown(&drift), expected);
    }
}
