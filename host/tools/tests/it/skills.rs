//! Skills: texts as tools.

use std::fs;

use capsule_api::{Annotations, ToolReply};
use capsule_tools::ToolSource;
use serde_json::json;

use crate::support::Capsule;

fn capsule(text: &str) -> Capsule {
    let mut capsule = Capsule::new();
    let path = capsule.path("house-style.md");
    fs::write(&path, text).unwrap();
    capsule.sources.push(ToolSource::skill("house-style", path));
    capsule
}

#[tokio::test]
async fn a_skill_is_a_tool_without_input_that_returns_its_text() {
    let turn = capsule("# House style\n\nShort sentences.\n").turn();
    let tool = &turn.toolbox.catalogue().tools[0];
    assert_eq!(tool.description, "Returns the text: House style");
    assert_eq!(tool.input_schema, json!({"type": "object"}));
    assert!(
        tool.annotations
            == Annotations {
                read_only: true,
                exclusive: false
            }
    );
    let reply = turn.call("house-style", json!(null)).await;
    assert_eq!(reply, ToolReply::text("# House style\n\nShort sentences.\n"));
}

#[test]
fn a_skill_that_cannot_be_read_is_a_load_error() {
    let mut capsule = capsule("");
    fs::write(&capsule.sources[0].component, [0xff]).unwrap();
    let folder = capsule.directory("folder");
    capsule.sources.push(ToolSource::skill("folder", folder));
    assert_eq!(
        capsule.refusals(),
        [
            "tool `house-style` (house-style.md): the text cannot be read: stream did not contain valid UTF-8",
            "tool `folder` (folder): the text is not a file",
        ]
        .map(|message| ("tool-file", message.to_owned()))
    );
}
