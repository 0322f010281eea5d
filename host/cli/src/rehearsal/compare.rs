//! What was recorded against what happened when it was played.

use capsule_api::{Error, Fold, FoldedCall, Outcome, RequestShape, TapeEntry};
use serde_json::Value;

use super::Drift;

/// A tape that was played.
pub(crate) struct Rehearsed<'a> {
    /// What is on the tape.
    pub(crate) recorded: &'a [TapeEntry],
    /// The same answers with the requests of this run.
    pub(crate) now: &'a [TapeEntry],
    /// What the run did.
    pub(crate) fold: &'a Fold,
    /// How it ended.
    pub(crate) outcome: &'a Result<Outcome, Error>,
    /// What the codes of the player begin with: its errors are drift, any other error is the recorded one again.
    pub(crate) player: &'a str,
}

/// All differences, in the order of the run; none where it went as recorded.
pub(crate) fn compare(run: &Rehearsed<'_>) -> Vec<Drift> {
    let mut found = Vec::new();
    let calls = run.fold.calls();
    let (mut first, mut answered) = (0, 0);
    let mut before: Option<&RequestShape> = None;
    for (n, (recorded, now)) in run.recorded.iter().zip(run.now).enumerate() {
        let (recorded, now) = (recorded.shape(), now.shape());
        // A request that was made again has the results of the same calls.
        let again = before.replace(now) == Some(now);
        if !again {
            first = answered;
        }
        answered = first;
        for (at, text) in results(now) {
            let call = calls.get(answered).copied();
            answered += 1;
            match recorded.last.get(at) {
                Some(told) if told != text && !again => found.push(result(n + 1, call, told, text)),
                _ => {}
            }
        }
        if !found.is_empty() && recorded.tools != now.tools && !found.iter().any(is_tools) {
            found.push(Drift::Tools {
                recorded: recorded.tools.clone(),
                now: now.tools.clone(),
            });
        }
    }
    found.extend(course(run));
    found
}

/// The tool results that are new in a request, with their position among what is new.
fn results(shape: &RequestShape) -> impl Iterator<Item = (usize, &String)> {
    let new = shape.roles.len().saturating_sub(shape.last.len());
    let told = shape.roles[new..].iter().zip(&shape.last).enumerate();
    told.filter_map(|(at, (role, text))| (role == "tool").then_some((at, text)))
}

fn is_tools(drift: &Drift) -> bool {
    matches!(drift, Drift::Tools { .. })
}

fn result(request: usize, call: Option<&FoldedCall>, recorded: &str, now: &str) -> Drift {
    Drift::Result {
        request,
        tool: call.map_or_else(|| "a tool".to_owned(), |call| call.name.clone()),
        arguments: call.map_or(Value::Null, |call| call.arguments.clone()),
        recorded: recorded.to_owned(),
        now: now.to_owned(),
    }
}

/// Whether the run took the recorded requests, all of them and no more.
fn course(run: &Rehearsed<'_>) -> Option<Drift> {
    let (played, recorded) = (run.now.len(), run.recorded.len());
    let why = match run.outcome {
        Err(error) if error.code.starts_with(run.player) => error.message.clone(),
        _ if played == recorded => return None,
        Err(error) => error.message.clone(),
        Ok(outcome) => format!("it ended before: {}", outcome.as_str().replace('_', " ")),
    };
    Some(Drift::Course { played, recorded, why })
}

#[cfg(test)]
mod tests {
    use capsule_api::{CallId, Code, ErrorKind, Event, TapedStream};
    use serde_json::json;

    use super::*;

    const DRIFT: Code = Code {
        id: "player-drift",
        kind: ErrorKind::Protocol,
        meaning: "",
        remedy: "",
    };

    fn entry(roles: &[&str], tools: &[&str], last: &[&str]) -> TapeEntry {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        TapeEntry::Stream(TapedStream {
            request: RequestShape {
                roles: words(roles),
                tools: words(tools),
                last: words(last),
            },
            wire: "w".to_owned(),
            status: 200,
            chunks: Vec::new(),
        })
    }

    /// Two requests, the second with the results of two calls.
    fn run(results: [&str; 2], tools: &[&str]) -> Vec<TapeEntry> {
        vec![
            entry(&["user"], tools, &["go"]),
            // The same again, as after a failure.
            entry(&["user"], tools, &["go"]),
            entry(&["user", "assistant", "tool", "tool"], tools, &results),
        ]
    }

    fn fold() -> Fold {
        let mut fold = Fold::default();
        for name in ["first", "second"] {
            fold.event(&Event::Call {
                call: CallId::new(name),
                name: name.to_owned(),
                arguments: json!({"n": 1}),
            });
        }
        fold
    }

    fn compared(recorded: &[TapeEntry], now: &[TapeEntry], outcome: &Result<Outcome, Error>) -> Vec<Drift> {
        compare(&Rehearsed {
            recorded,
            now,
            fold: &fold(),
            outcome,
            player: "player",
        })
    }

    fn completed() -> Result<Outcome, Error> {
        Ok(Outcome::Completed { text: String::new() })
    }

    #[test]
    fn the_same_results_are_no_drift_whatever_tools_there_are() {
        let (recorded, now) = (run(["A", "B"], &["t"]), run(["A", "B"], &["t", "u"]));
        assert_eq!(compared(&recorded, &now, &completed()), []);
    }

    #[test]
    fn another_result_names_its_call_and_the_tools_are_told_beside_it() {
        let (recorded, now) = (run(["A", "B"], &["t"]), run(["A", "C"], &["u"]));
        let expected = [
            Drift::Result {
                request: 3,
                tool: "second".to_owned(),
                arguments: json!({"n": 1}),
                recorded: "B".to_owned(),
                now: "C".to_owned(),
            },
            Drift::Tools {
                recorded: vec!["t".to_owned()],
                now: vec!["u".to_owned()],
            },
        ];
        assert_eq!(compared(&recorded, &now, &completed()), expected);
    }

    #[test]
    fn a_run_that_ends_before_the_tape_or_wants_more_than_it_has_is_drift() {
        let recorded = run(["A", "B"], &[]);
        let course = |played, why: &str| Drift::Course {
            played,
            recorded: 3,
            why: why.to_owned(),
        };
        let early = compared(
            &recorded,
            &recorded[..1],
            &Ok(Outcome::LimitReached {
                which: capsule_api::Limit::Requests,
            }),
        );
        assert_eq!(early, [course(1, "it ended before: limit reached")]);
        let more = compared(&recorded, &recorded, &Err(Error::new(&DRIFT, "no more")));
        assert_eq!(more, [course(3, "no more")]);
    }

    #[test]
    fn a_failure_that_was_recorded_is_no_drift() {
        let recorded = run(["A", "B"], &[]);
        let outcome = Err(Error::new(&crate::failure::codes::OUTPUT, "as recorded"));
        assert_eq!(compared(&recorded, &recorded, &outcome), []);
    }
}
