use capsule_guest::{Error, Json, Output, StateEffect, Tool, json};
use proptest::prelude::*;

use crate::Table;

const SALES: &str = "city,part,pieces,price\nUlm,pump,2,412.50\nUlm,seal,100,0.35\nGraz,pump,1,412.50\nGraz,valve,,18.90\n\"Linz, Süd\",seal,40,0.3\n";

fn said(mut query: Json) -> Result<String, String> {
    if query.get("text").is_none() && query.get("path").is_none() {
        query["text"] = json!(SALES);
    }
    Table::call(query)
        .map(|output| output.data().to_owned())
        .map_err(|error| error.message().to_owned())
}

fn ok(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn failed(text: &str) -> Result<String, String> {
    Err(text.to_owned())
}

#[test]
fn rows_that_hold_are_shown_in_order_with_the_columns_asked_for() {
    let query = json!({
        "where": [{"column": "pieces", "is": ">=", "value": 2}, {"column": "part", "is": "!=", "value": "valve"}],
        "sort": [{"column": "pieces", "descending": true}],
        "select": ["part", "city", "pieces"],
    });
    let rows = "part,city,pieces\nseal,Ulm,100\nseal,\"Linz, Süd\",40\npump,Ulm,2";
    assert_eq!(said(query), ok(rows));
    let as_json = json!({"where": [{"column": "city", "is": "contains", "value": "Süd"}], "format": "json"});
    assert_eq!(
        said(as_json),
        ok(r#"{"city":"Linz, Süd","part":"seal","pieces":40,"price":0.3}"#)
    );
}

#[test]
fn a_call_says_how_much_there_is() {
    let call = Table::call(json!({"text": SALES, "limit": 2, "offset": 1, "select": ["part"]}));
    let expected = Output::text("part\nseal\npump\n[rows 2 to 3 of 5; go on with offset 3]")
        .summary("2 of 5 rows")
        .truncated(true)
        .state_effect(StateEffect::Read);
    assert_eq!(call, Ok(expected));
    assert_eq!(
        said(json!({"where": [{"column": "city", "is": "=", "value": "Wien"}]})),
        ok("city,part,pieces,price\n[no rows]")
    );
}

#[test]
fn groups_are_counted_and_summed() {
    let query = json!({
        "group_by": ["part"],
        "aggregate": [
            {"is": "count"},
            {"is": "sum", "column": "pieces", "as": "pieces"},
            {"is": "mean", "column": "price"},
            {"is": "distinct", "column": "city"},
        ],
        "sort": [{"column": "pieces", "descending": true}],
    });
    let rows = "part,count,pieces,mean_price,distinct_city\nseal,2,140,0.325,2\npump,2,3,412.5,2\nvalve,1,0,18.9,1";
    assert_eq!(said(query), ok(rows));
    let all = json!({"aggregate": [{"is": "min", "column": "price"}, {"is": "max", "column": "city"}, {"is": "count", "column": "pieces"}]});
    assert_eq!(said(all), ok("min_price,max_city,count_pieces\n0.3,Ulm,4"));
    let cents = json!({"text": "x\n0.1\n0.2\n", "aggregate": [{"is": "sum", "column": "x"}]});
    assert_eq!(said(cents), ok("sum_x\n0.3"));
    let none = json!({"text": "x\n", "aggregate": [{"is": "mean", "column": "x"}, {"is": "count"}]});
    assert_eq!(said(none), ok("mean_x,count\n,0"));
}

#[test]
fn what_does_not_fit_is_told_in_words() {
    assert_eq!(
        said(json!({"select": ["prize"]})),
        failed("there is no column 'prize'; there are: city, part, pieces, price")
    );
    let words = json!({"aggregate": [{"is": "sum", "column": "city"}]});
    assert_eq!(
        said(words),
        failed("the column 'city' has 'Ulm' in line 2, which is no number")
    );
    assert_eq!(
        said(json!({"aggregate": [{"is": "max"}]})),
        failed("'max' needs a column")
    );
    let no_value = json!({"where": [{"column": "city", "is": "="}]});
    assert_eq!(
        said(no_value),
        failed("the condition on 'city' needs a value, a text or a number")
    );
    assert_eq!(
        said(json!({"text": "a", "path": "/x"})),
        failed("give either path or text, not both")
    );
    let expected = Error::new("give the table: path or text").metadata("state_effect", "read");
    assert_eq!(Table::call(json!({})), Err(expected));
}

#[test]
fn empty_cells_are_last_and_neither_less_nor_more() {
    let order = |descending: bool| {
        said(json!({"sort": [{"column": "pieces", "descending": descending}], "select": ["pieces"]}))
    };
    assert_eq!(order(false), ok("pieces\n1\n2\n40\n100\n\"\""));
    assert_eq!(order(true), ok("pieces\n100\n40\n2\n1\n\"\""));
    let holds = |is: &str| said(json!({"where": [{"column": "pieces", "is": is, "value": 50}], "select": ["pieces"]}));
    assert_eq!(holds("<"), ok("pieces\n2\n1\n40"));
    assert_eq!(holds(">="), ok("pieces\n100"));
    let empty = json!({"where": [{"column": "pieces", "is": "empty"}], "select": ["part"]});
    assert_eq!(said(empty), ok("part\nvalve"));
}

#[test]
fn a_file_is_read_in_other_ways_of_writing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.tsv");
    std::fs::write(&path, "\u{feff}a\tb\r\n1\t2\r\n").unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(said(json!({"path": path, "select": ["a"]})), ok("a\n1"));
    assert_eq!(
        said(json!({"text": "1;2\n3;4\n", "header": false, "select": ["c2"]})),
        ok("c2\n2\n4")
    );
}

proptest! {
    #[test]
    fn groups_have_all_rows(cells in proptest::collection::vec("[ab]", 0..30)) {
        let text = format!("x\n{}", cells.iter().map(|cell| format!("{cell}\n")).collect::<String>());
        let said = said(json!({"text": text, "group_by": ["x"], "aggregate": [{"is": "count"}]})).unwrap();
        let counts = said.lines().skip(1).filter_map(|line| line.split(',').nth(1)?.parse::<usize>().ok());
        prop_assert_eq!(counts.sum::<usize>(), cells.len());
    }

    #[test]
    fn any_text_ends_in_rows_or_words(text in any::<String>()) {
        let _ = said(json!({"text": text, "sort": [{"column": "a"}]}));
        let _ = said(json!({"text": text, "header": false, "sort": [{"column": "c1"}], "group_by": ["c1"], "aggregate": [{"is": "max", "column": "c1"}]}));
    }
}
