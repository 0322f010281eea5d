//! The tool `table`: filters, groups and sorts the rows of CSV.

mod group;
mod query;
mod run;
mod source;
mod value;

use capsule_guest::{Error, Json, Output, StateEffect, Tool, export_tool};
use query::{Form, Query};
use run::Answer;

struct Table;

export_tool!(Table {
    name: "table",
    description: "Answers questions about CSV or TSV, a file of the granted directories or a text: which rows hold (where), grouped (group_by, \
        aggregate), in which order (sort), which columns (select). Steps are done in this order. Cells that are numbers compare as numbers.",
    input_schema: r#"{
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "The file, where no text is given"},
            "text": {"type": "string", "description": "The CSV itself, where no path is given"},
            "delimiter": {"type": "string", "enum": [",", ";", "\t", "|"], "description": "Seen from the first line where it is left out"},
            "header": {"type": "boolean", "default": true, "description": "The first line names the columns; else they are c1, c2, …"},
            "where": {
                "type": "array",
                "description": "Conditions that all hold",
                "items": {
                    "type": "object",
                    "properties": {
                        "column": {"type": "string"},
                        "is": {"type": "string", "enum": ["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with", "ends_with", "empty", "not_empty"]},
                        "value": {"type": ["string", "number"], "description": "Not for empty and not_empty"}
                    },
                    "required": ["column", "is"],
                    "additionalProperties": false
                }
            },
            "group_by": {"type": "array", "items": {"type": "string"}, "description": "Columns; rows that agree in them become one"},
            "aggregate": {
                "type": "array",
                "description": "What to compute for each group, or for all rows where there is no group_by",
                "items": {
                    "type": "object",
                    "properties": {
                        "is": {"type": "string", "enum": ["count", "sum", "mean", "min", "max", "distinct"]},
                        "column": {"type": "string", "description": "Not needed for count"},
                        "as": {"type": "string", "minLength": 1, "description": "Name of the result, such as total; else sum_price and the like"}
                    },
                    "required": ["is"],
                    "additionalProperties": false
                }
            },
            "sort": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"column": {"type": "string"}, "descending": {"type": "boolean", "default": false}},
                    "required": ["column"],
                    "additionalProperties": false
                }
            },
            "select": {"type": "array", "items": {"type": "string"}, "description": "Columns to show, in this order; all where it is left out"},
            "offset": {"type": "integer", "minimum": 0, "default": 0},
            "limit": {"type": "integer", "minimum": 1, "maximum": 5000, "default": 100, "description": "Rows to show"},
            "format": {"type": "string", "enum": ["csv", "json"], "default": "csv", "description": "json: one object a line"}
        },
        "additionalProperties": false
    }"#,
    annotations: r#"{"title": "Query a table", "read_only": true, "idempotent": true}"#,
});

/// Half of the output limit that a tool has by default.
const MOST_BYTES: usize = 512 << 10;

impl Tool for Table {
    fn call(input: Json) -> Result<Output, Error> {
        let query = Query::of(input).map_err(|why| why.metadata("state_effect", "read"))?;
        let path = query.path.clone();
        let answered = answer(&query).map(|output| output.state_effect(StateEffect::Read));
        match path {
            None => answered.map_err(|why| why.metadata("state_effect", "read")),
            Some(path) => answered
                .map(|output| output.resource_id(&path))
                .map_err(|why| why.metadata("state_effect", "read").metadata("resource_id", &path)),
        }
    }
}

fn answer(query: &Query) -> Result<Output, Error> {
    let table = source::read(query)?;
    let Answer { columns, rows } = run::run(table, query)?;
    let all = rows.len();
    let from = query.offset.min(all);
    let wanted = &rows[from..all.min(from.saturating_add(query.limit))];
    let (mut text, shown) = match query.format {
        Form::Csv => csv_text(&columns, wanted),
        Form::Json => json_text(&columns, wanted),
    };
    let to = from + shown;
    if shown == 0 {
        text.push_str("[no rows]\n");
    } else if to < all {
        text.push_str(&format!(
            "[rows {} to {to} of {all}; go on with offset {to}]\n",
            from + 1
        ));
    }
    text.pop();
    Ok(Output::text(text)
        .summary(format!("{shown} of {all} rows"))
        .truncated(to < all))
}

/// As many rows as fit, with the line of the names, and how many.
fn csv_text(columns: &[String], rows: &[Vec<String>]) -> (String, usize) {
    let mut text = source::line(columns);
    let mut shown = 0;
    for row in rows {
        let line = source::line(row);
        if text.len() + line.len() > MOST_BYTES {
            break;
        }
        text.push_str(&line);
        shown += 1;
    }
    (text, shown)
}

fn json_text(columns: &[String], rows: &[Vec<String>]) -> (String, usize) {
    let mut text = String::new();
    let mut shown = 0;
    for row in rows {
        let cells = columns.iter().zip(row);
        let members: Vec<String> = cells
            .map(|(column, cell)| format!("{}:{}", Json::from(column.as_str()), value::json(cell)))
            .collect();
        let line = format!("{{{}}}\n", members.join(","));
        if text.len() + line.len() > MOST_BYTES {
            break;
        }
        text.push_str(&line);
        shown += 1;
    }
    (text, shown)
}

#[cfg(test)]
mod tests;
