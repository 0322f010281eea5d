//! Groups of rows, and what is computed for each.

use std::collections::{BTreeMap, BTreeSet};

use capsule_guest::Error;
use csv::StringRecord;

use crate::query::{Aggregate, Operation};
use crate::run::{Answer, at};
use crate::value::{compare, decimals, number, written};

/// Further digits of a mean.
const MEAN_DIGITS: usize = 6;

/// What was seen of one column in one group.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Rows, or cells that are not empty where there is a column.
    count: u64,
    sum: f64,
    /// Digits after the point, at most.
    decimals: usize,
    least: Option<String>,
    most: Option<String>,
    distinct: BTreeSet<String>,
}

/// One row for each combination of the cells in `by`, in the order in which these first came; with no `by`, one row for all.
///
/// # Errors
///
/// A sentence for the model: a column that is not there, or a cell that is no number in one that is summed.
pub(crate) fn group(
    columns: &[String],
    rows: impl Iterator<Item = StringRecord>,
    by: &[String],
    aggregates: &[Aggregate],
) -> Result<Answer, Error> {
    let keys: Vec<usize> = by.iter().map(|name| at(columns, name)).collect::<Result<_, Error>>()?;
    let places: Vec<Option<usize>> = aggregates
        .iter()
        .map(|aggregate| place(columns, aggregate))
        .collect::<Result<_, Error>>()?;
    let mut order: Vec<Vec<String>> = Vec::new();
    let mut groups: BTreeMap<Vec<String>, Vec<Seen>> = BTreeMap::new();
    if by.is_empty() {
        order.push(Vec::new());
        groups.insert(Vec::new(), vec![Seen::default(); aggregates.len()]);
    }
    for row in rows {
        let key: Vec<String> = keys.iter().map(|at| row[*at].to_owned()).collect();
        let group = groups.entry(key.clone()).or_insert_with(|| {
            order.push(key);
            vec![Seen::default(); aggregates.len()]
        });
        for ((seen, aggregate), place) in group.iter_mut().zip(aggregates).zip(&places) {
            match place {
                None => seen.count += 1,
                Some(at) => seen
                    .take(aggregate, &row[*at])
                    .map_err(|cell| no_number(&columns[*at], &cell, &row))?,
            }
        }
    }
    let titles = aggregates.iter().map(Aggregate::title);
    let row = |key: Vec<String>| {
        let seen = groups.get(&key).map(Vec::as_slice).unwrap_or_default();
        let results = seen
            .iter()
            .zip(aggregates)
            .map(|(seen, aggregate)| seen.result(aggregate.is));
        key.iter().cloned().chain(results).collect()
    };
    Ok(Answer {
        columns: by.iter().cloned().chain(titles).collect(),
        rows: order.into_iter().map(row).collect(),
    })
}

fn place(columns: &[String], aggregate: &Aggregate) -> Result<Option<usize>, Error> {
    match &aggregate.column {
        Some(name) => at(columns, name).map(Some),
        None if aggregate.is == Operation::Count => Ok(None),
        None => Err(Error::new(format!("'{}' needs a column", aggregate.title()))),
    }
}

fn no_number(column: &str, cell: &str, row: &StringRecord) -> Error {
    let line = row.position().map_or(0, csv::Position::line);
    let (cell, _) = files_core::text::cut(cell, 100);
    Error::new(format!(
        "the column '{column}' has '{cell}' in line {line}, which is no number"
    ))
}

impl Seen {
    /// Takes a cell; gives it back where it is no number and must be one.
    fn take(&mut self, aggregate: &Aggregate, cell: &str) -> Result<(), String> {
        if cell.trim().is_empty() {
            return Ok(());
        }
        self.count += 1;
        match aggregate.is {
            Operation::Count => {}
            Operation::Sum | Operation::Mean => {
                self.sum += number(cell).ok_or_else(|| cell.to_owned())?;
                self.decimals = self.decimals.max(decimals(cell));
            }
            Operation::Min => {
                if self.least.as_ref().is_none_or(|least| compare(cell, least).is_lt()) {
                    self.least = Some(cell.to_owned());
                }
            }
            Operation::Max => {
                if self.most.as_ref().is_none_or(|most| compare(cell, most).is_gt()) {
                    self.most = Some(cell.to_owned());
                }
            }
            Operation::Distinct => {
                self.distinct.insert(cell.to_owned());
            }
        }
        Ok(())
    }

    /// The result; an empty cell where there was nothing to compute it from.
    fn result(&self, operation: Operation) -> String {
        match operation {
            Operation::Count => self.count.to_string(),
            Operation::Sum => written(self.sum, self.decimals),
            Operation::Mean if self.count == 0 => String::new(),
            Operation::Mean => written(self.sum / self.count as f64, self.decimals + MEAN_DIGITS),
            Operation::Min => self.least.clone().unwrap_or_default(),
            Operation::Max => self.most.clone().unwrap_or_default(),
            Operation::Distinct => self.distinct.len().to_string(),
        }
    }
}
