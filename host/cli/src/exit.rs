//! Exit codes, as `capsule run --help` lists them.

use std::process::ExitCode;

use capsule_api::{Error, ErrorKind, Outcome};

use crate::signals::Signal;

pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const NO_TRANSPORT: u8 = 3;
pub(crate) const CANCELLED: u8 = 4;
pub(crate) const LIMIT: u8 = 5;
pub(crate) const REFUSED: u8 = 6;

/// The code of a run. `signal` is what ended it, if one did; `kept` is whether everything that was to be kept is.
pub(crate) fn of_run(outcome: &Result<Outcome, Error>, signal: Option<Signal>, kept: bool) -> ExitCode {
    ExitCode::from(match outcome {
        Ok(Outcome::Completed { .. }) if kept => 0,
        Ok(Outcome::Completed { .. } | Outcome::InputRequired { .. }) => FAILED,
        Ok(Outcome::Refused { .. } | Outcome::Truncated { .. }) => REFUSED,
        Ok(Outcome::LimitReached { .. }) => LIMIT,
        Ok(Outcome::Cancelled) => signal.map_or(CANCELLED, Signal::exit_code),
        Ok(_) => FAILED,
        Err(error) => of_error(error),
    })
}

/// The code of an error that came before or in place of an outcome.
pub(crate) fn of_error(error: &Error) -> u8 {
    match error.kind {
        ErrorKind::Settings => USAGE,
        ErrorKind::TransportUnavailable => NO_TRANSPORT,
        _ => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use capsule_api::Limit;

    use super::*;

    #[test]
    fn every_outcome_has_its_code() {
        let text = || "text".to_owned();
        let done = || Ok(Outcome::Completed { text: text() });
        let failed = |code| Err(Error::new(code, "it failed"));
        let stopped = || Ok(Outcome::Cancelled);
        let which = Limit::Wall;
        let cases = [
            (done(), None, true, 0),
            // A signal that came too late changes nothing.
            (done(), Some(Signal::Interrupt), true, 0),
            (done(), None, false, FAILED),
            (Ok(Outcome::InputRequired { prompt: text() }), None, true, FAILED),
            (failed(&crate::failure::codes::OUTPUT), None, true, FAILED),
            (failed(&crate::failure::codes::USAGE), None, true, USAGE),
            (stopped(), None, true, CANCELLED),
            (stopped(), Some(Signal::Interrupt), true, 130),
            (stopped(), Some(Signal::Terminate), true, 143),
            (Ok(Outcome::LimitReached { which }), None, true, LIMIT),
            (Ok(Outcome::Refused { text: text() }), None, true, REFUSED),
            (Ok(Outcome::Truncated { partial: text() }), None, true, REFUSED),
        ];
        for (outcome, signal, kept, code) in cases {
            let shown = format!("{outcome:?} {signal:?} {kept}");
            assert_eq!(of_run(&outcome, signal, kept), ExitCode::from(code), "{shown}");
        }
    }
}
