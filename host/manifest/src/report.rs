//! All problems of one manifest: for people with the place of each, for programs as data.

use std::{fmt, path::PathBuf};

use capsule_api::{Code, Error};
use serde::Serialize;

use crate::{codes, tree::Position};

/// Where a problem was caused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// The file as a whole.
    File,
    /// A place in the file.
    Line(Position),
    /// A flag of the command line, such as `--set inference.max_turns`; without its value.
    Flag(String),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// The stable code.
    pub code: &'static str,
    /// Where it was caused.
    pub origin: Origin,
    /// The key, such as `inference.max_turns`; empty where the file as a whole is meant.
    pub key: String,
    /// What was expected and what was found. Never a value that its schema marks as secret.
    pub message: String,
    /// A way out that is closer than the code's remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The line of the file, where it can be shown: it holds no secret and no value of an unknown key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    #[serde(skip)]
    pub(crate) of: &'static Code,
}

impl Problem {
    pub(crate) fn new(code: &'static Code, origin: Origin, message: impl Into<String>) -> Self {
        Self {
            code: code.id,
            origin,
            key: String::new(),
            message: message.into(),
            hint: None,
            excerpt: None,
            of: code,
        }
    }
}

/// All problems of one file, in the order of their places. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The file.
    pub file: PathBuf,
    /// The problems; at least one.
    pub problems: Vec<Problem>,
    /// Whether there are more than a report holds (200).
    pub truncated: bool,
}

/// Problems that one report holds; a file with more is not repaired from the list.
const MOST: usize = 200;
const MORE: &str = "and more\n";

impl Report {
    pub(crate) fn new(file: impl Into<PathBuf>, mut problems: Vec<Problem>) -> Self {
        debug_assert!(!problems.is_empty(), "a report tells at least one problem");
        problems.sort_by_key(|problem| match problem.origin {
            Origin::Flag(_) => (0, None),
            Origin::File => (1, None),
            Origin::Line(at) => (2, Some(at)),
        });
        let mut told: Vec<Problem> = Vec::new();
        let mut truncated = false;
        for problem in problems {
            if told.len() == MOST {
                truncated = true;
                break;
            }
            let known = |one: &Problem| {
                (&one.origin, &one.key, &one.message) == (&problem.origin, &problem.key, &problem.message)
            };
            if !told.iter().any(known) {
                told.push(problem);
            }
        }
        Self {
            file: file.into(),
            problems: told,
            truncated,
        }
    }

    pub(crate) fn one(file: impl Into<PathBuf>, code: &'static Code, message: impl Into<String>) -> Self {
        Self::new(file, vec![Problem::new(code, Origin::File, message)])
    }

    /// The report as text, each problem with its line of the file and a caret below the place, where it can be shown.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for problem in &self.problems {
            text.push_str(&self.line(problem));
            text.push('\n');
            if let (Origin::Line(at), Some(excerpt)) = (&problem.origin, &problem.excerpt) {
                let number = at.line.to_string();
                let margin = " ".repeat(number.len());
                let column = usize::try_from(at.column).unwrap_or(1).saturating_sub(1);
                let below: String = excerpt.chars().take(column).map(blank).collect();
                text.push_str(&format!("  {number} | {excerpt}\n  {margin} | {below}^\n"));
            }
            if let Some(hint) = &problem.hint {
                text.push_str(&format!("  hint: {hint}\n"));
            }
        }
        if self.truncated {
            text.push_str(MORE);
        }
        text
    }

    /// The codes of the problems, each once, in their order.
    pub fn codes(&self) -> Vec<&'static Code> {
        let mut codes: Vec<&'static Code> = Vec::new();
        for problem in &self.problems {
            if !codes.contains(&problem.of) {
                codes.push(problem.of);
            }
        }
        codes
    }

    fn line(&self, problem: &Problem) -> String {
        let place = match &problem.origin {
            Origin::File => self.file.display().to_string(),
            Origin::Line(at) => format!("{}:{}:{}", self.file.display(), at.line, at.column),
            Origin::Flag(flag) => return format!("{flag}: {}", problem.message),
        };
        match problem.key.as_str() {
            "" => format!("{place}: {}", problem.message),
            key => format!("{place}: {key}: {}", problem.message),
        }
    }
}

/// A tab stays a tab, so that the caret stands below its character.
fn blank(c: char) -> char {
    if c == '\t' { '\t' } else { ' ' }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&self.line(problem))?;
        }
        if self.truncated {
            write!(
                f,
                "
{}",
                MORE.trim_end()
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

impl From<Report> for Error {
    fn from(report: Report) -> Self {
        let first = report.problems.first();
        let code = first.map_or(&codes::INVALID, |problem| problem.of);
        let error = Self::new(code, report.to_string()).with("file", report.file.display().to_string());
        match report.problems.as_slice() {
            [Problem { hint: Some(hint), .. }] => error.hint(hint.clone()),
            _ => error,
        }
    }
}
