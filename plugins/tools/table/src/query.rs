//! What is asked.

use capsule_guest::{Error, Json};
use serde::Deserialize;

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    pub(crate) path: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) delimiter: Option<String>,
    #[serde(default = "yes")]
    pub(crate) header: bool,
    #[serde(default, rename = "where")]
    pub(crate) conditions: Vec<Condition>,
    #[serde(default)]
    pub(crate) group_by: Vec<String>,
    #[serde(default)]
    pub(crate) aggregate: Vec<Aggregate>,
    #[serde(default)]
    pub(crate) sort: Vec<Order>,
    #[serde(default)]
    pub(crate) select: Vec<String>,
    #[serde(default)]
    pub(crate) offset: usize,
    #[serde(default = "hundred")]
    pub(crate) limit: usize,
    #[serde(default)]
    pub(crate) format: Form,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    #[default]
    Csv,
    Json,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    pub(crate) column: String,
    pub(crate) is: Relation,
    #[serde(default)]
    pub(crate) value: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Relation {
    #[serde(rename = "=")]
    Equal,
    #[serde(rename = "!=")]
    NotEqual,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "<=")]
    AtMost,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = ">=")]
    AtLeast,
    Contains,
    StartsWith,
    EndsWith,
    Empty,
    NotEmpty,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Aggregate {
    pub(crate) is: Operation,
    pub(crate) column: Option<String>,
    #[serde(rename = "as")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    Count,
    Sum,
    Mean,
    Min,
    Max,
    Distinct,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    pub(crate) column: String,
    #[serde(default)]
    pub(crate) descending: bool,
}

fn yes() -> bool {
    true
}

fn hundred() -> usize {
    100
}

impl Query {
    /// Reads the arguments.
    ///
    /// # Errors
    ///
    /// A sentence that says what does not fit.
    pub(crate) fn of(arguments: Json) -> Result<Self, Error> {
        let query: Self = serde_json::from_value(arguments)
            .map_err(|error| Error::new(format!("the arguments do not fit: {error}")))?;
        for condition in &query.conditions {
            let needs_none = matches!(condition.is, Relation::Empty | Relation::NotEmpty);
            if !needs_none && !matches!(condition.value, Json::String(_) | Json::Number(_)) {
                let column = &condition.column;
                return Err(Error::new(format!(
                    "the condition on '{column}' needs a value, a text or a number"
                )));
            }
        }
        Ok(query)
    }
}

impl Condition {
    /// Its value as a cell would have it.
    pub(crate) fn text(&self) -> String {
        match &self.value {
            Json::String(text) => text.clone(),
            Json::Null => String::new(),
            other => other.to_string(),
        }
    }
}

impl Aggregate {
    /// The name of its column.
    pub(crate) fn title(&self) -> String {
        let word = match self.is {
            Operation::Count => "count",
            Operation::Sum => "sum",
            Operation::Mean => "mean",
            Operation::Min => "min",
            Operation::Max => "max",
            Operation::Distinct => "distinct",
        };
        match (&self.name, &self.column) {
            (Some(name), _) => name.clone(),
            (None, Some(column)) => format!("{word}_{column}"),
            (None, None) => word.to_owned(),
        }
    }
}
