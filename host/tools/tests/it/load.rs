//! Loading: what cannot work is said at once, for every tool, with the way out.

use std::fs;

use capsule_api::{Annotations, Catalogue, ToolSpec};
use capsule_tools::ToolSource;
use serde_json::json;

use crate::{
    guests::{self, componentize},
    support::Capsule,
};

#[test]
fn the_catalogue_has_the_tools_in_order_as_the_manifest_describes_them() {
    let mut capsule = Capsule::new()
        .tool("zebra", guests::echo().build())
        .tool("ant", guests::trap().build());
    capsule.sources[1].description = Some("Ends.".into());
    capsule.sources[1].input_schema = Some(json!({"properties": {}}));
    capsule.sources[1].annotations = Some(Annotations {
        exclusive: true,
        ..Annotations::default()
    });
    let longest = capsule.grants.limits.deadline;
    let catalogue = Catalogue {
        tools: vec![
            ToolSpec {
                name: "zebra".into(),
                alias: "zebra".into(),
                description: String::new(),
                input_schema: json!({"type": "object"}),
                annotations: Annotations::default(),
                longest,
                largest: 1 << 20,
            },
            ToolSpec {
                name: "ant".into(),
                alias: "ant".into(),
                description: "Ends.".into(),
                input_schema: json!({"type": "object", "properties": {}}),
                annotations: Annotations {
                    exclusive: true,
                    read_only: false,
                },
                longest,
                largest: 1 << 20,
            },
        ],
    };
    assert_eq!(**capsule.load().unwrap().catalogue(), catalogue);
}

#[test]
fn every_tool_that_cannot_be_loaded_is_reported_in_one_go() {
    let whole = guests::echo().build();
    let module = wat::parse_str("(module)").unwrap();
    let mut capsule = Capsule::new()
        .tool("good", &whole)
        .tool("empty", "")
        .tool("text", "#!/bin/sh\n")
        .tool("module", module)
        .tool("cut", &whole[..whole.len() / 2])
        .tool("good", &whole)
        .tool(" odd", &whole);
    let missing = capsule.path("missing.wasm");
    capsule.sources.push(ToolSource::new("missing", missing));
    assert_eq!(
        capsule.refusals(),
        [
            (
                "tool-duplicate",
                "tool `good` (good.wasm): another tool has this name (good.wasm)"
            ),
            ("tool-name", "tool ` odd` ( odd.wasm): the name cannot be used"),
            ("tool-not-a-component", "tool `empty` (empty.wasm): the file is empty"),
            (
                "tool-not-a-component",
                "tool `text` (text.wasm): it is not WebAssembly (text or another format)"
            ),
            (
                "tool-not-a-component",
                "tool `module` (module.wasm): it is a core module, not a component"
            ),
            (
                "tool-not-a-component",
                "tool `cut` (cut.wasm): the file is cut off in the middle"
            ),
            (
                "tool-file",
                "tool `missing` (missing.wasm): the component cannot be read: No such file or directory (os error 2)"
            ),
        ]
        .map(|(code, message)| (code, message.to_owned()))
    );
}

#[test]
fn unmet_imports_are_listed_with_what_would_meet_them() {
    let component = wat::parse_str(
        r#"(component
            (import "acme:db/query@1.0.0" (instance))
            (import "murmur:task/task@0.2.0" (instance))
            (import "wasi:cli/environment@0.3.0" (instance)))"#,
    );
    let capsule = Capsule::with("db", component.unwrap());
    let message = "tool `db` (db.wasm): it imports what this host does not offer: \
        `acme:db/query@1.0.0` (nothing here would meet it); \
        `murmur:task/task@0.2.0` (`murmur:task/task@0.1.0` would meet it); \
        `wasi:cli/environment@0.3.0` (WASI 0.2 would meet it)";
    assert_eq!(capsule.refusals(), [("tool-imports-unmet", message.to_owned())]);
}

#[test]
fn an_import_of_another_shape_is_unmet_too() {
    let component = wat::parse_str(
        r#"(component
            (import "murmur:task/task@0.1.0" (instance (export "request-input" (func))))
            (instance $run)
            (export "murmur:tool/run@0.1.0" (instance $run)))"#,
    );
    let refusals = Capsule::with("odd", component.unwrap()).refusals();
    let (code, message) = &refusals[0];
    assert_eq!((refusals.len(), *code), (1, "tool-imports-unmet"));
    let start = "tool `odd` (odd.wasm): an import has another shape than this host offers: ";
    assert!(
        message.starts_with(start) && message.contains("murmur:task/task@0.1.0"),
        "{message}"
    );
}

#[test]
fn an_export_of_another_shape_is_missing() {
    let component = wat::parse_str(r#"(component (instance $run) (export "murmur:tool/run@0.1.0" (instance $run)))"#);
    let refusals = Capsule::with("odd", component.unwrap()).refusals();
    let (code, message) = &refusals[0];
    assert_eq!((refusals.len(), *code), (1, "tool-export-missing"));
    let start = "tool `odd` (odd.wasm): its export `murmur:tool/run@0.1.0` has another shape: ";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn bad_grants_and_bad_tools_are_reported_together() {
    let mut capsule = Capsule::with("empty", "");
    capsule.grants.env.push("A*".into());
    let codes: Vec<_> = capsule.refusals().into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["tool-grant-env", "tool-not-a-component"]);
}

#[test]
fn a_component_that_offers_nothing_to_call_says_what_it_exports() {
    let script = componentize(
        "export murmur:capsule/run@0.1.0;",
        r#"(module (func (export "murmur:capsule/run@0.1.0#run")))"#,
    );
    let types = r#"(component (instance $i) (export "acme:a/types@1.0.0" (instance $i)))"#;
    let capsule = Capsule::new()
        .tool("script", script)
        .tool("types", wat::parse_str(types).unwrap())
        .tool("nothing", wat::parse_str("(component)").unwrap());
    assert_eq!(
        capsule.refusals(),
        [
            "tool `script` (script.wasm): it is a script: it runs as a whole capsule, named by the manifest's `script`, and not as a tool",
            "tool `types` (types.wasm): it exports no function; it exports `acme:a/types@1.0.0`",
            "tool `nothing` (nothing.wasm): it exports nothing",
        ]
        .map(|message| ("tool-export-missing", message.to_owned()))
    );
}

#[test]
fn a_component_that_no_call_could_begin_with_is_refused() {
    // 32 MiB of memory to begin with.
    let wat = r#"(module (memory 512) (func (export "go")))"#;
    let mut capsule = Capsule::with("large", componentize("export go: func();", wat));
    capsule.grants.limits.memory = 16 << 20;
    let message =
        "tool `large` (large.wasm): it begins with 32MiB of memory; a call may have 16MiB (`limits.memory`)".to_owned();
    assert_eq!(capsule.refusals(), [("tool-too-large", message)]);
}

#[test]
fn t_01_names_of_any_characters_get_safe_aliases() {
    let capsule = Capsule::new();
    let path = capsule.path("echo.wasm");
    fs::write(&path, guests::echo().build()).unwrap();
    let capsule = ["fs.read/file", "fs_read_file", "a-b", "a_b"]
        .iter()
        .fold(capsule, |mut capsule, name| {
            capsule.sources.push(ToolSource::new(*name, &path));
            capsule
        });
    let toolbox = capsule.load().unwrap();
    let catalogue = toolbox.catalogue();
    let aliases: Vec<_> = catalogue.tools.iter().map(|tool| tool.alias.as_str()).collect();
    assert_eq!(
        aliases,
        ["fs_read_file_f21bae8b", "fs_read_file", "a-b_d44362d6", "a_b_648fa9b3"]
    );
    for tool in &catalogue.tools {
        assert_eq!(catalogue.name_of(&tool.alias), tool.name);
    }
    let mut unnamed = Capsule::new();
    unnamed.sources.push(ToolSource::new("", &path));
    assert_eq!(unnamed.refusals()[0].0, "tool-name");
}

#[test]
fn t_02_a_schema_is_cured_with_a_warning_that_names_the_tool() {
    let mut capsule = Capsule::with("bare", guests::echo().build()).tool("whole", guests::echo().build());
    capsule.sources[0].input_schema = Some(json!({"properties": {"list": {"type": "array"}}}));
    capsule.sources[1].input_schema = Some(json!({"type": "object"}));
    let toolbox = capsule.load().unwrap();
    let shown = json!({"type": "object", "properties": {"list": {"type": "array", "items": {}}}});
    assert_eq!(toolbox.catalogue().tools[0].input_schema, shown);
    let warnings: Vec<_> = toolbox
        .warnings()
        .iter()
        .map(|warning| (warning.code, warning.message.as_str()))
        .collect();
    assert_eq!(
        warnings,
        [
            (
                "tool-schema-cured",
                "tool `bare`: its input schema has no type; it is shown with the type object"
            ),
            (
                "tool-schema-cured",
                "tool `bare`: its input schema has an array without `items` at /properties/list; any are shown"
            ),
        ]
    );
}

#[test]
fn t_02_a_schema_that_cannot_be_cured_is_a_load_error_of_its_tool() {
    let mut capsule = Capsule::with("bad", guests::echo().build()).tool("good", guests::echo().build());
    capsule.sources[0].input_schema = Some(json!({"required": ["b"], "additionalProperties": false}));
    let message = "tool `bad` (bad.wasm): the input schema requires `b` at its top and permits no such property: \
        no arguments would fit";
    assert_eq!(capsule.refusals(), [("tool-schema", message.to_owned())]);
}

#[test]
fn a_long_description_is_cut_with_a_warning() {
    let mut capsule = Capsule::with("long", guests::echo().build());
    capsule.sources[0].description = Some("é".repeat(3000));
    let toolbox = capsule.load().unwrap();
    assert_eq!(toolbox.catalogue().tools[0].description, "é".repeat(2048));
    assert_eq!(toolbox.warnings()[0].code, "tool-description-cut");
}

#[test]
fn a_schema_that_cannot_be_used_is_refused() {
    let mut capsule = Capsule::with("echo", guests::echo().build());
    capsule.sources[0].input_schema = Some(json!({"type": "array"}));
    let message = "tool `echo` (echo.wasm): the input schema has the type \"array\"; arguments are always an object";
    assert_eq!(capsule.refusals(), [("tool-schema", message.to_owned())]);
}

#[test]
fn what_is_not_a_file_is_refused_before_it_is_opened() {
    let mut capsule = Capsule::new();
    let path = capsule.directory("folder.wasm");
    capsule.sources.push(ToolSource::new("folder", &path));
    capsule.sources.push(ToolSource::new("device", "/dev/zero"));
    assert_eq!(
        capsule.refusals(),
        [
            ("tool-file", "tool `folder` (folder.wasm): the component is not a file"),
            ("tool-file", "tool `device` (/dev/zero): the component is not a file"),
        ]
        .map(|(code, message)| (code, message.to_owned()))
    );
    fs::remove_dir(path).unwrap();
}

#[test]
fn a_capsule_without_tools_loads() {
    assert_eq!(**Capsule::new().load().unwrap().catalogue(), Catalogue::default());
}
