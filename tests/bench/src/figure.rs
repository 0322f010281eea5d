//! Two sides in turn, and what the comparison gives.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::Result;

/// The value of each round, of both sides.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Rounds {
    pub(crate) first: Vec<f64>,
    pub(crate) second: Vec<f64>,
}

/// Measures both sides in turn (A B A B …), so that whatever slows the machine slows both. One round before these is not counted: it
/// pays for what only the first use of a thing costs.
pub(crate) fn in_turn(
    rounds: usize,
    mut first: impl FnMut() -> Result<f64>,
    mut second: impl FnMut() -> Result<f64>,
) -> Result<Rounds> {
    let mut measured = Rounds::default();
    for round in 0..=rounds {
        let (one, other) = (first()?, second()?);
        if round > 0 {
            measured.first.push(one);
            measured.second.push(other);
        }
    }
    Ok(measured)
}

impl Rounds {
    /// How many times the second the first is, round by round.
    pub(crate) fn ratios(&self) -> Vec<f64> {
        self.pairs(|first, second| first / second)
    }

    /// By how much the first is over the second, round by round.
    pub(crate) fn differences(&self) -> Vec<f64> {
        self.pairs(|first, second| first - second)
    }

    fn pairs(&self, compare: fn(f64, f64) -> f64) -> Vec<f64> {
        let pairs = self.first.iter().zip(&self.second);
        pairs.map(|(first, second)| compare(*first, *second)).collect()
    }
}

/// The least, the middle and the greatest of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Summary {
    /// Of no values, it is not a number.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let median = match sorted.len() % 2 {
            0 if middle > 0 => (at(middle - 1) + at(middle)) / 2.0,
            _ => at(middle),
        };
        Self {
            min: at(0),
            median,
            max: at(sorted.len().saturating_sub(1)),
        }
    }
}

/// Which value of a figure is held against its goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Judged {
    Median,
    Max,
}

/// One side of a comparison, for the reader: the figure is the comparison.
#[derive(Debug, PartialEq)]
pub(crate) struct Side {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) values: Vec<f64>,
}

/// A comparison.
#[derive(Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    /// `x` for a ratio, `ms` for a difference.
    pub(crate) unit: &'static str,
    /// One for each round.
    pub(crate) values: Vec<f64>,
    /// At most this.
    pub(crate) goal: f64,
    pub(crate) judged: Judged,
    pub(crate) sides: Vec<Side>,
}

impl Figure {
    pub(crate) fn summary(&self) -> Summary {
        Summary::of(&self.values)
    }

    pub(crate) fn met(&self) -> bool {
        let summary = self.summary();
        let judged = match self.judged {
            Judged::Median => summary.median,
            Judged::Max => summary.max,
        };
        judged <= self.goal
    }

    pub(crate) fn json(&self) -> Value {
        let summary = self.summary();
        let side = |side: &Side| {
            let of = Summary::of(&side.values);
            json!({
                "name": side.name, "unit": side.unit,
                "min": rounded(of.min), "median": rounded(of.median), "max": rounded(of.max),
            })
        };
        json!({
            "id": self.id,
            "what": self.what,
            "unit": self.unit,
            "rounds": self.values.len(),
            "ratio_min": rounded(summary.min),
            "ratio_median": rounded(summary.median),
            "ratio_max": rounded(summary.max),
            "spread": rounded(summary.max - summary.min),
            "goal": self.goal,
            "judged_by": match self.judged { Judged::Median => "ratio_median", Judged::Max => "ratio_max" },
            "met": self.met(),
            "sides": self.sides.iter().map(side).collect::<Vec<_>>(),
        })
    }
}

/// To three decimals: what is beyond them is noise.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The figures as a table for a person, with the sides below each.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut text = format!(
        "{:<12} {:>9} {:>9} {:>9} {:>9}   {:<20} what\n",
        "id", "min", "median", "max", "spread", "goal"
    );
    for figure in figures {
        let Summary { min, median, max } = figure.summary();
        let judged = match figure.judged {
            Judged::Median => "median",
            Judged::Max => "max",
        };
        let met = if figure.met() { "met" } else { "MISSED" };
        let goal = format!("{judged} <= {} {}: {met}", figure.goal, figure.unit);
        let spread = max - min;
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "{:<12} {min:>9.2} {median:>9.2} {max:>9.2} {spread:>9.2}   {goal:<20} {}",
            figure.id, figure.what
        );
        for side in &figure.sides {
            let Summary { min, median, max } = Summary::of(&side.values);
            let _ = writeln!(
                text,
                "{:<12} {min:>9.2} {median:>9.2} {max:>9.2} {:>9.2}   {:<20} {}",
                "",
                max - min,
                side.unit,
                side.name
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(values: &[f64], judged: Judged) -> Figure {
        Figure {
            id: "b0",
            what: "this against that",
            unit: "x",
            values: values.to_vec(),
            goal: 2.0,
            judged,
            sides: vec![Side {
                name: "this",
                unit: "us",
                values: vec![4.0, 2.0],
            }],
        }
    }

    #[test]
    fn both_sides_are_measured_in_turn_and_the_first_round_is_not_counted() {
        let order = std::cell::RefCell::new(String::new());
        let mut counts = (0.0, 10.0);
        let measured = in_turn(
            2,
            || {
                order.borrow_mut().push('A');
                counts.0 += 1.0;
                Ok(counts.0)
            },
            || {
                order.borrow_mut().push('B');
                counts.1 += 1.0;
                Ok(counts.1)
            },
        )
        .unwrap();
        assert_eq!(order.into_inner(), "ABABAB");
        let expected = Rounds {
            first: vec![2.0, 3.0],
            second: vec![12.0, 13.0],
        };
        assert_eq!(measured, expected);
    }

    #[test]
    fn a_wrong_answer_of_a_side_ends_the_benchmark() {
        let failed = in_turn(2, || Ok(1.0), || Err("another answer".into()));
        assert_eq!(failed.unwrap_err().to_string(), "another answer");
    }

    #[test]
    fn rounds_are_compared_pair_by_pair() {
        let rounds = Rounds {
            first: vec![4.0, 9.0],
            second: vec![2.0, 3.0],
        };
        assert_eq!(rounds.ratios(), [2.0, 3.0]);
        assert_eq!(rounds.differences(), [2.0, 6.0]);
    }

    #[test]
    fn a_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        let summary = |min, median, max| Summary { min, median, max };
        assert_eq!(Summary::of(&[3.0, 1.0, 2.0]), summary(1.0, 2.0, 3.0));
        assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 3.0]), summary(1.0, 2.5, 4.0));
        assert_eq!(Summary::of(&[7.0]), summary(7.0, 7.0, 7.0));
        assert!(Summary::of(&[]).median.is_nan());
    }

    #[test]
    fn a_goal_is_met_by_the_value_that_it_is_about() {
        let values = [1.0, 2.0, 3.0];
        assert!(figure(&values, Judged::Median).met());
        assert!(!figure(&values, Judged::Max).met());
        assert!(!figure(&[], Judged::Median).met());
    }

    #[test]
    fn a_figure_is_written_whole() {
        let expected = json!({
            "id": "b0", "what": "this against that", "unit": "x", "rounds": 3,
            "ratio_min": 1.0, "ratio_median": 2.0, "ratio_max": 3.333, "spread": 2.333,
            "goal": 2.0, "judged_by": "ratio_median", "met": true,
            "sides": [{"name": "this", "unit": "us", "min": 2.0, "median": 3.0, "max": 4.0}],
        });
        let written = figure(&[1.0, 10.0 / 3.0, 2.0], Judged::Median);
        assert_eq!(written.json(), expected);
        let expected = "\
id                 min    median       max    spread   goal                 what
b0                1.00      2.00      3.33      2.33   median <= 2 x: met   this against that
                  2.00      3.00      4.00      2.00   us                   this
";
        assert_eq!(table(&[written]), expected);
    }
}
