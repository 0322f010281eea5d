//! `json`.

use serde_json::json;

use super::{refused, said, with};

#[test]
fn a_filter_runs_over_a_file_and_over_what_is_given() {
    let sandbox = with("json-demo");
    let order =
        json!({"path": "/data/stock.json", "filter": ".parts[] | select(.stock < .least) | .name", "raw": true});
    assert_eq!(said(&sandbox, "json", &order), "valve\nseal");
    let errors =
        json!({"path": "/data/log.jsonl", "slurp": true, "filter": "map(select(.level == \"error\")) | length"});
    assert_eq!(said(&sandbox, "json", &errors), "3");
    let given = json!({"input": [3, 1, 2], "filter": "sort | map(. * 2)"});
    assert_eq!(said(&sandbox, "json", &given), "[2,4,6]");
    let time = json!({"input": "2026-03-02T08:00:12Z", "filter": "fromdate, test(\"^2026\")"});
    assert_eq!(said(&sandbox, "json", &time), "1772438412\ntrue");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let sandbox = with("json-demo");
    let failed = |what: &str| ("failed".to_owned(), format!("tool 'json' failed: {what}"));
    let wrong = json!({"input": 1, "filter": ".a |\n  nope"});
    let what = "the filter is wrong in line 2, column 3: there is no filter 'nope'";
    assert_eq!(refused(&sandbox, "json", &wrong), failed(what));
    sandbox.write("c/data/broken.json", "{\"a\": }");
    let broken = json!({"path": "/data/broken.json", "filter": "."});
    let (status, text) = refused(&sandbox, "json", &broken);
    assert_eq!(status, "failed");
    assert!(
        text.starts_with("tool 'json' failed: '/data/broken.json' is not JSON: byte offset 6"),
        "{text}"
    );
}

#[test]
fn what_no_grant_covers_is_denied() {
    let sandbox = with("json-demo");
    let what = "tool 'json' failed: not readable here: no grant covers '/etc/passwd'; the granted directory is /data";
    let other = json!({"path": "/etc/passwd", "filter": "."});
    assert_eq!(
        refused(&sandbox, "json", &other),
        ("denied".to_owned(), what.to_owned())
    );
    // The environment is nobody's input.
    let (status, _) = refused(&sandbox, "json", &json!({"input": 1, "filter": "env"}));
    assert_eq!(status, "failed");
}

#[test]
fn a_filter_without_end_is_ended_and_the_next_call_is_clean() {
    let sandbox = with("json-demo");
    let manifest = std::fs::read_to_string(sandbox.work("c/capsule.yaml")).unwrap();
    sandbox.write("c/capsule.yaml", manifest.replace("deadline: 10s", "deadline: 500ms"));
    let spins = json!({"input": 1, "filter": "last(repeat(1))"});
    let (status, text) = refused(&sandbox, "json", &spins);
    assert_eq!(
        (status.as_str(), text.as_str()),
        ("timed_out", "tool 'json' timed out after 500ms (`limits.deadline`)")
    );
    let grows = json!({"input": 1, "filter": "[repeat(\"a long text\")]"});
    let (status, _) = refused(&sandbox, "json", &grows);
    assert!(["trapped", "timed_out"].contains(&status.as_str()), "{status}");
    let (status, _) = refused(&sandbox, "json", &json!({"input": 1, "filter": "def f: [f]; f"}));
    assert!(["trapped", "timed_out"].contains(&status.as_str()), "{status}");
    assert_eq!(said(&sandbox, "json", &json!({"input": 1, "filter": "."})), "1");
}
