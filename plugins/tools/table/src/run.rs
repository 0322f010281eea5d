//! The steps of a query, in order: conditions, groups, order, columns.

use std::cmp::Ordering;

use capsule_guest::Error;
use csv::StringRecord;

use crate::group;
use crate::query::{Condition, Query, Relation};
use crate::source::Table;
use crate::value::{compare, equal, number};

/// Rows, not yet cut to what is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Answers a query.
///
/// # Errors
///
/// A sentence for the model: a column that is not there, or a cell that is no number where one is needed.
pub(crate) fn run(table: Table, query: &Query) -> Result<Answer, Error> {
    let conditions = query
        .conditions
        .iter()
        .map(|condition| Ok((at(&table.columns, &condition.column)?, condition, condition.text())));
    let conditions: Vec<(usize, &Condition, String)> = conditions.collect::<Result<_, Error>>()?;
    let holds = |row: &StringRecord| {
        conditions
            .iter()
            .all(|(at, condition, value)| holds(condition.is, &row[*at], value))
    };
    let rows = table.rows.into_iter().filter(holds);
    let grouped = !query.group_by.is_empty() || !query.aggregate.is_empty();
    let mut answer = match grouped {
        true => group::group(&table.columns, rows, &query.group_by, &query.aggregate)?,
        false => Answer {
            columns: table.columns,
            rows: rows.map(|row| row.iter().map(str::to_owned).collect()).collect(),
        },
    };
    sort(&mut answer, query)?;
    select(answer, &query.select)
}

/// Where a column is.
pub(crate) fn at(columns: &[String], name: &str) -> Result<usize, Error> {
    columns.iter().position(|column| column == name).ok_or_else(|| {
        let known = columns.join(", ");
        let (known, _) = files_core::text::cut(&known, 2000);
        Error::new(format!("there is no column '{name}'; there are: {known}"))
    })
}

fn holds(relation: Relation, cell: &str, value: &str) -> bool {
    // A number and a text are not compared by size: neither is less.
    let order = || match (number(cell), number(value)) {
        (Some(x), Some(y)) => x.partial_cmp(&y),
        (None, None) if !cell.is_empty() => Some(cell.cmp(value)),
        _ => None,
    };
    match relation {
        Relation::Equal => equal(cell, value),
        Relation::NotEqual => !equal(cell, value),
        Relation::Less => order() == Some(Ordering::Less),
        Relation::Greater => order() == Some(Ordering::Greater),
        Relation::AtMost => order().is_some_and(Ordering::is_le),
        Relation::AtLeast => order().is_some_and(Ordering::is_ge),
        Relation::Contains => cell.contains(value),
        Relation::StartsWith => cell.starts_with(value),
        Relation::EndsWith => cell.ends_with(value),
        Relation::Empty => cell.trim().is_empty(),
        Relation::NotEmpty => !cell.trim().is_empty(),
    }
}

fn sort(answer: &mut Answer, query: &Query) -> Result<(), Error> {
    let orders = query
        .sort
        .iter()
        .map(|order| Ok((at(&answer.columns, &order.column)?, order.descending)));
    let orders: Vec<(usize, bool)> = orders.collect::<Result<_, Error>>()?;
    answer.rows.sort_by(|a, b| {
        let each = orders.iter().map(|(at, descending)| {
            let order = compare(&a[*at], &b[*at]);
            // Empty cells are last either way.
            match *descending && !a[*at].is_empty() && !b[*at].is_empty() {
                true => order.reverse(),
                false => order,
            }
        });
        each.fold(Ordering::Equal, Ordering::then)
    });
    Ok(())
}

fn select(answer: Answer, names: &[String]) -> Result<Answer, Error> {
    if names.is_empty() {
        return Ok(answer);
    }
    let places: Vec<usize> = names
        .iter()
        .map(|name| at(&answer.columns, name))
        .collect::<Result<_, Error>>()?;
    let chosen = |row: Vec<String>| places.iter().map(|at| row[*at].clone()).collect();
    Ok(Answer {
        columns: names.to_vec(),
        rows: answer.rows.into_iter().map(chosen).collect(),
    })
}
