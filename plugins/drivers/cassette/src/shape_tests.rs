use capsule_api::{
    ContentBlock, Message, Request, ToolDefinition,
    serde_json::{Map, json},
};

use super::*;

fn request(messages: Vec<Message>) -> Request {
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: None,
        parameters: json!({"type": "object"}),
    };
    Request {
        model: "m".to_owned(),
        max_tokens: 1,
        system: Some("/a/path/that/no/tape/holds".to_owned()),
        messages,
        tools: vec![tool("write"), tool("read")],
        params: Map::new(),
        continuation_id: None,
    }
}

fn run(task: &str, results: &[&str]) -> RequestShape {
    let mut messages = vec![
        Message::User {
            content: vec![ContentBlock::text(task)],
        },
        Message::Assistant { content: Vec::new() },
    ];
    messages.extend(results.iter().map(|result| Message::Tool {
        tool_call_id: "a".to_owned(),
        is_error: false,
        content: vec![ContentBlock::text(*result)],
    }));
    RequestShape::of(&request(messages))
}

#[test]
fn another_task_is_no_drift_and_another_result_is() {
    assert_eq!(
        differences(&run("one", &["A"]), &run("two", &["A"])),
        Vec::<String>::new()
    );
    assert_eq!(
        differences(&run("go", &["A", "total: 7\nok"]), &run("go", &["A", "total: 8\nok"])),
        ["the result of tool call 2 differs\n  recorded: total: 7\\nok\n  now:      total: 8\\nok"]
    );
}

#[test]
fn a_long_difference_is_shown_from_where_it_begins() {
    let long = |end: &str| format!("{}{end}", "x".repeat(500));
    let found = differences(&run("go", &[&long("A")]), &run("go", &[&long("B")]));
    let expected = format!(
        "the result of tool call 1 differs\n  recorded: …{0}A\n  now:      …{0}B",
        "x".repeat(20)
    );
    assert_eq!(found, [expected]);
}

#[test]
fn another_sequence_of_roles_is_drift() {
    let found = differences(&run("go", &["A"]), &run("go", &["A", "B"]));
    assert_eq!(
        found,
        [
            "the conversation has another shape\n  recorded: user, assistant, tool\n  now:      user, assistant, tool, tool"
        ]
    );
}

#[test]
fn tools_on_offer_alone_are_no_drift_but_are_told_beside_one() {
    let recorded = RequestShape {
        tools: vec!["read".to_owned()],
        ..run("go", &["A"])
    };
    assert_eq!(differences(&recorded, &run("go", &["A"])).len(), 0);
    assert_eq!(differences(&recorded, &run("go", &["B"])).len(), 2);
}
