//! `table`.

use serde_json::json;

use super::{refused, said, with};

#[test]
fn rows_are_chosen_grouped_and_sorted() {
    let sandbox = with("table-demo");
    let cities = json!({
        "path": "/data/sales.csv",
        "where": [{"column": "total", "is": ">", "value": 20}],
        "group_by": ["city"],
        "aggregate": [{"is": "count"}, {"is": "sum", "column": "total"}],
        "sort": [{"column": "sum_total", "descending": true}],
    });
    assert_eq!(
        said(&sandbox, "table", &cities),
        "city,count,sum_total\nUlm,3,947\nGraz,2,582.6"
    );
    let south = json!({"path": "/data/sales.csv", "where": [{"column": "city", "is": "ends_with", "value": "Süd"}], "format": "json"});
    let row = r#"{"date":"2026-02-03","city":"Linz, Süd","part":"seal","pieces":40,"total":14.00}"#;
    assert_eq!(said(&sandbox, "table", &south), row);
}

#[test]
fn what_no_grant_covers_is_denied_and_what_does_not_fit_is_told() {
    let sandbox = with("table-demo");
    let what = "tool 'table' failed: not readable here: no grant covers '/etc/passwd'; the granted directory is /data";
    let other = json!({"path": "/etc/passwd", "delimiter": "|"});
    assert_eq!(
        refused(&sandbox, "table", &other),
        ("denied".to_owned(), what.to_owned())
    );
    let what = "tool 'table' failed: there is no column 'town'; there are: date, city, part, pieces, total";
    let unknown = json!({"path": "/data/sales.csv", "select": ["town"]});
    assert_eq!(
        refused(&sandbox, "table", &unknown),
        ("failed".to_owned(), what.to_owned())
    );
    let (status, _) = refused(&sandbox, "table", &json!({"text": "a", "sort": [{"by": "a"}]}));
    assert_eq!(status, "invalid");
}
