//! Cells: texts that may be numbers.

use std::cmp::Ordering;

/// The number that a cell is. `1e400` and `NaN` are texts.
pub(crate) fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    let plain = !cell.is_empty()
        && cell
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    plain
        .then(|| cell.parse().ok())
        .flatten()
        .filter(|number: &f64| number.is_finite())
}

/// The order of two cells: numbers by size, before texts by their characters; empty ones are last.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let rank = |cell: &str| match number(cell) {
        Some(_) => 0,
        None if cell.is_empty() => 2,
        None => 1,
    };
    match (number(a), number(b)) {
        // They are finite: one is less, or they are equal, in whatever way they are written.
        (Some(x), Some(y)) => x.partial_cmp(&y).unwrap_or(Ordering::Equal),
        _ => rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)),
    }
}

/// Whether two cells are the same: as numbers where both are, else as texts.
pub(crate) fn equal(a: &str, b: &str) -> bool {
    match (number(a), number(b)) {
        (Some(x), Some(y)) => x == y,
        _ => a == b,
    }
}

/// Digits after the point, as a cell is written.
pub(crate) fn decimals(cell: &str) -> usize {
    let cell = cell.trim();
    if cell.contains(['e', 'E']) {
        return 12;
    }
    cell.split_once('.').map_or(0, |(_, fraction)| fraction.len().min(12))
}

/// A number with at most this many digits after the point, without zeros at its end.
pub(crate) fn written(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A cell as JSON: a number as it is written, where JSON writes numbers so.
pub(crate) fn json(cell: &str) -> String {
    let is_number =
        cell.trim() == cell && number(cell).is_some() && serde_json::from_str::<serde_json::Number>(cell).is_ok();
    match is_number {
        true => cell.to_owned(),
        false => serde_json::Value::from(cell).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_a_number() {
        for (cell, expected) in [
            ("1", Some(1.0)),
            (" -2.5 ", Some(-2.5)),
            ("1e3", Some(1000.0)),
            ("007", Some(7.0)),
        ] {
            assert_eq!(number(cell), expected, "{cell}");
        }
        for cell in ["", "-", "1,5", "NaN", "inf", "1e999", "0x10", "1 2", "12:30"] {
            assert_eq!(number(cell), None, "{cell}");
        }
    }

    #[test]
    fn cells_are_written_as_people_would() {
        assert_eq!(written(0.1 + 0.2, 1), "0.3");
        assert_eq!(written(100.0, 0), "100");
        assert_eq!(written(2.0 / 3.0, 6), "0.666667");
        assert_eq!(written(-0.0, 2), "0");
        assert_eq!(
            (json("1.50"), json("007"), json("a\"b"), json(" 1")),
            (
                "1.50".to_owned(),
                "\"007\"".to_owned(),
                "\"a\\\"b\"".to_owned(),
                "\" 1\"".to_owned()
            )
        );
    }

    proptest! {
        #[test]
        fn the_order_is_one(mut cells in proptest::collection::vec("-?[0-9]{0,2}(\\.[0-9])?|[ab]{0,2}", 0..12)) {
            cells.sort_by(|a, b| compare(a, b));
            for pair in cells.windows(2) {
                prop_assert_ne!(compare(&pair[0], &pair[1]), Ordering::Greater);
            }
        }
    }
}
