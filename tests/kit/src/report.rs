//! Running the cases and telling what came of them.

use std::fmt;

use capsule_api::{SystemClock, timeout};
use futures_util::{StreamExt as _, stream};

use crate::{
    Fixture, Script, Stand,
    cases::{CASES, Case},
};

/// Why a case failed, for the transport's author to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure with this explanation.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The transport does what the case asks.
    Passed,
    /// It does not.
    Failed(Failure),
    /// The case does not apply, for this reason.
    Skipped(String),
}

/// One case and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The case.
    pub case: &'static str,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of all cases; displays as one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The transport.
    pub transport: &'static str,
    /// The cases, in the kit's order.
    pub lines: Vec<Line>,
}

impl Report {
    /// Whether no case failed and at least one passed.
    pub fn conforms(&self) -> bool {
        let failed = |line: &Line| matches!(line.verdict, Verdict::Failed(_));
        !self.lines.iter().any(failed) && self.lines.iter().any(|line| line.verdict == Verdict::Passed)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "transport `{}`", self.transport)?;
        for Line { case, verdict } in &self.lines {
            match verdict {
                Verdict::Passed => writeln!(f, "  passed   {case}")?,
                Verdict::Failed(why) => writeln!(f, "  FAILED   {case}: {why}")?,
                Verdict::Skipped(why) => writeln!(f, "  skipped  {case}: {why}")?,
            }
        }
        Ok(())
    }
}

/// The names of all cases, in the order in which they run.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// Runs every case, one after the other.
pub async fn check(fixture: &dyn Fixture) -> Report {
    check_at_once(fixture, 1).await
}

/// Runs every case, up to `cases` of them at the same time, for a fixture whose stages have nothing in common.
pub async fn check_at_once(fixture: &dyn Fixture, cases: usize) -> Report {
    let judged = stream::iter(CASES).map(async |case| Line {
        case: case.name,
        verdict: judge(fixture, case).await,
    });
    let mut lines: Vec<_> = judged.buffered(cases.max(1)).collect().await;
    for (name, _) in fixture.skips() {
        if names().all(|known| known != *name) {
            let failure = Failure::new("the fixture skips a case that the kit does not have");
            lines.push(Line {
                case: name,
                verdict: Verdict::Failed(failure),
            });
        }
    }
    Report {
        transport: fixture.descriptor().name,
        lines,
    }
}

/// Runs one case.
///
/// # Panics
/// There is no case of this name.
pub async fn check_case(fixture: &dyn Fixture, name: &str) -> Verdict {
    let case = CASES.iter().find(|case| case.name == name);
    judge(fixture, case.expect("the name of a case, as `names` lists them")).await
}

/// Runs every case and panics with the report if one failed.
///
/// # Panics
/// A case failed.
pub async fn assert_conforms(fixture: &dyn Fixture) {
    let report = check(fixture).await;
    assert!(report.conforms(), "{report}");
}

async fn judge(fixture: &dyn Fixture, case: &Case) -> Verdict {
    if let Some((_, why)) = fixture.skips().iter().find(|(name, _)| *name == case.name) {
        return Verdict::Skipped((*why).to_owned());
    }
    // What an instance can do is known only once it is built.
    let capabilities = match Stand::new(fixture, Script::default()).await {
        Ok(stand) => stand.capabilities(),
        Err(failure) => return Verdict::Failed(failure),
    };
    if let Some((why_not, applies)) = case.needs
        && !applies(&capabilities)
    {
        return Verdict::Skipped(why_not.to_owned());
    }
    // More than any single step of a case waits for.
    let limit = 3 * fixture.patience();
    match timeout(&SystemClock, limit, (case.run)(fixture)).await {
        Ok(Ok(())) => Verdict::Passed,
        Ok(Err(failure)) => Verdict::Failed(failure),
        Err(_) => Verdict::Failed(Failure::new(format!("the case did not end within {limit:?}"))),
    }
}
