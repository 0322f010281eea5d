use std::borrow::Cow;

use capsule_api::{
    ContentBlock, Error, Message, Request, Secret, ToolDefinition,
    serde_json::{Map, json},
};

use super::*;

/// Hides one word.
struct Hiding;

impl Secrets for Hiding {
    fn expand(&self, text: &str) -> Result<String, Error> {
        Ok(text.to_owned())
    }

    fn protect(&self, _: &Secret) {}

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Owned(text.replace("hidden", "[redacted]"))
    }
}

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
        differences(&run("one", &["A"]), &run("two", &["A"]), &[]),
        Vec::<String>::new()
    );
    assert_eq!(
        differences(
            &run("go", &["A", "total: 7\nok"]),
            &run("go", &["A", "total: 8\nok"]),
            &["add {}".to_owned(), "sum {\"of\":7}".to_owned()]
        ),
        ["sum {\"of\":7} answers something else\n  recorded: total: 7\\nok\n  now:      total: 8\\nok"]
    );
}

#[test]
fn a_long_difference_is_shown_from_where_it_begins() {
    let long = |end: &str| format!("{}{end}", "x".repeat(500));
    let found = differences(&run("go", &[&long("A")]), &run("go", &[&long("B")]), &[]);
    let expected = format!(
        "a tool call answers something else\n  recorded: …{0}A\n  now:      …{0}B",
        "x".repeat(20)
    );
    assert_eq!(found, [expected]);
}

#[test]
fn another_sequence_of_roles_is_drift() {
    let found = differences(&run("go", &["A"]), &run("go", &["A", "B"]), &[]);
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
    assert_eq!(differences(&recorded, &run("go", &["A"]), &[]).len(), 0);
    assert_eq!(differences(&recorded, &run("go", &["B"]), &[]).len(), 2);
}

#[test]
fn a_difference_names_the_call_with_its_arguments_and_leaves_quotation_marks_alone() {
    let call = |id: &str, name: &str, input| ContentBlock::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        input,
    };
    let result = |id: &str, text: &str| Message::Tool {
        tool_call_id: id.to_owned(),
        is_error: false,
        content: vec![ContentBlock::text(text)],
    };
    let asked = |answer: &str| {
        request(vec![
            Message::User {
                content: vec![ContentBlock::text("go")],
            },
            Message::Assistant {
                content: vec![
                    call("a", "read-file", json!({"path": "/notes/hidden.md"})),
                    call("b", "write", json!({"text": "x".repeat(200)})),
                ],
            },
            result("b", "written"),
            result("a", answer),
        ])
    };
    let now = asked("denied: 'read-file' may not");
    let named = calls(&now, &Hiding);
    assert_eq!(named[0].chars().count(), SHOWN_ARGUMENTS + 1);
    assert_eq!(named[1], "read-file {\"path\":\"/notes/[redacted].md\"}");
    let found = differences(&RequestShape::of(&asked("the team")), &RequestShape::of(&now), &named);
    let expected = "read-file {\"path\":\"/notes/[redacted].md\"} answers something else\n  \
                    recorded: the team\n  now:      denied: 'read-file' may not";
    assert_eq!(found, [expected]);
}
