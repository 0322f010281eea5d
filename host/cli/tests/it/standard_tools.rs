//! The standard tools in the real sandbox, as a person tries them: `capsule tool call`.

mod fetch;
mod files;
mod json;
mod table;

use std::path::Path;

use serde_json::Value;

use crate::support::{ROOT, Ran, Sandbox, copy};

/// A folder with a copy of an example capsule.
fn with(capsule: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    copy(
        &Path::new(ROOT).join("plugins/capsules").join(capsule),
        &sandbox.work("c"),
    );
    sandbox
}

/// A call of a tool of the capsule `c`.
fn call(sandbox: &Sandbox, tool: &str, arguments: &Value) -> Ran {
    sandbox.run(&["tool", "call", tool, &arguments.to_string(), "--capsule", "c"])
}

/// What a call that succeeds says.
#[track_caller]
fn said(sandbox: &Sandbox, tool: &str, arguments: &Value) -> String {
    call(sandbox, tool, arguments).code(0).answer().to_owned()
}

/// What a call that fails says, and with which status.
#[track_caller]
fn refused(sandbox: &Sandbox, tool: &str, arguments: &Value) -> (String, String) {
    let ran = sandbox
        .run(&["tool", "call", tool, &arguments.to_string(), "--capsule", "c", "--json"])
        .code(1);
    let record = ran.json();
    let text = |key: &str| record[key].as_str().unwrap_or_else(|| panic!("{record}")).to_owned();
    (text("status"), text("text"))
}

#[test]
fn the_examples_play_to_their_end_and_do_what_was_recorded() {
    for capsule in ["files-demo", "json-demo", "fetch-demo", "table-demo"] {
        let sandbox = with(capsule);
        let ran = sandbox.run(&["run", "c"]).code(0);
        assert!(!ran.answer().is_empty(), "{ran:#?}");
        sandbox.run(&["test", "c"]).code(0);
    }
}
