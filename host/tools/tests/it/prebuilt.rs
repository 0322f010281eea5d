//! The product's own tools, as they are shipped.

use std::fs;

use capsule_api::{Annotations, ToolStatus};
use capsule_tools::{Mode, Preopen, ToolSource};
use serde_json::json;

use crate::support::{Capsule, prebuilt, said};

fn capsule() -> Capsule {
    let mut capsule = Capsule::new();
    for name in ["hello", "read-file"] {
        capsule
            .sources
            .push(ToolSource::new(name, prebuilt(&format!("{name}.wasm"))));
    }
    capsule
}

#[tokio::test]
async fn the_shipped_tools_describe_themselves() {
    let turn = capsule().turn();
    let hello = turn.toolbox.catalogue().by_name("hello").unwrap();
    assert_eq!(
        hello.description,
        "Greets a person by name, in the language asked for (English by default)."
    );
    assert_eq!(hello.input_schema["required"], json!(["name"]));
    assert_eq!(
        hello.annotations,
        Annotations {
            read_only: true,
            exclusive: false
        }
    );
    let reply = turn.call("hello", json!({"name": "Ada", "language": "fr"})).await;
    assert_eq!(
        (reply.status, reply.joined_text()),
        said(ToolStatus::Passed, "Bonjour, Ada !")
    );
    assert_eq!(reply.metadata, [("state_effect".to_owned(), "read".to_owned())]);
}

#[tokio::test]
async fn the_file_reader_reads_what_is_granted_and_says_what_is_not() {
    let mut capsule = capsule();
    let host = capsule.directory("notes");
    fs::write(host.join("a.txt"), "granted text").unwrap();
    capsule.grants.filesystem.push(Preopen {
        host,
        guest: "/notes".into(),
        mode: Mode::Ro,
    });
    let turn = capsule.turn();
    let read = turn.call("read-file", json!({"path": "/notes/a.txt"})).await;
    assert_eq!(
        (read.status, read.joined_text()),
        said(ToolStatus::Passed, "granted text")
    );
    let denied = turn.call("read-file", json!({"path": "/etc/passwd"})).await;
    assert_eq!(denied.status, ToolStatus::Denied);
    assert!(denied.joined_text().contains("no grant"), "{}", denied.joined_text());
}
