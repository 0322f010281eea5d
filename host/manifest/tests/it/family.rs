//! One name for a family of transports: whose its settings are, and what a member gets of them.

use std::time::Duration;

use capsule_api::{Capabilities, Error, ErrorKind, Registry, TransportDescriptor};
use capsule_manifest::{Loaded, Options, Transports};
use serde_json::{Value, json};

use crate::{HEAD, read_with};

const NEVER: capsule_api::Code = capsule_api::Code {
    id: "made-never",
    kind: ErrorKind::Bug,
    meaning: "Never built.",
    remedy: "None.",
};

const fn made(name: &'static str, family: &'static str, schema: fn(Option<&Value>) -> Value) -> TransportDescriptor {
    TransportDescriptor {
        name,
        crate_name: "made",
        family,
        summary: "made up",
        at_most: Capabilities {
            streams: false,
            thinking: false,
            usage: false,
            resumes: false,
            parallel_tools: false,
            interrupts: false,
            host_owns_loop: false,
        },
        stops_within: Duration::from_secs(1),
        settings_schema: schema,
        example: "",
        recognises: None,
        codes: &[&NEVER],
        build: |_, _| Err(Error::new(&NEVER, "never built")),
    }
}

static FOX: TransportDescriptor = made("fox", "wild", |_| {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["prey"],
        "properties": {
            "command": {"type": "string", "default": "fox", "description": "The fox."},
            "login": {"type": "string", "enum": ["den", "token"]},
            "key": {"type": "string", "writeOnly": true},
            "prey": {"type": "string"},
        },
    })
});
static WOLF: TransportDescriptor = made("wolf", "wild", |_| {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "command": {"type": "string", "default": "wolf", "description": "The wolf."},
            "login": {"type": "string", "enum": ["den", "pack"]},
            "key": {"type": "string", "writeOnly": true},
            "howl": {"type": "boolean"},
        },
    })
});
static CAT: TransportDescriptor = made(
    "cat",
    "tame",
    |_| json!({"type": "object", "additionalProperties": false, "properties": {"milk": {"type": "boolean"}}}),
);

fn transports() -> Transports {
    Transports::new(Registry::of([&FOX, &WOLF, &CAT]).unwrap(), "animal", "wild")
}

fn with(inference: &str) -> String {
    format!("{HEAD}inference:\n{inference}")
}

fn load(inference: &str, member: Option<&str>) -> Loaded {
    let transports = transports();
    let mut options = Options::new(&transports, "cat");
    options.member = member;
    read_with(&with(inference), &options).unwrap_or_else(|report| panic!("{report}"))
}

fn complaints(inference: &str, member: Option<&str>) -> String {
    let transports = transports();
    let mut options = Options::new(&transports, "cat");
    options.member = member;
    read_with(&with(inference), &options)
        .expect_err("the manifest is wrong")
        .render()
}

fn own(loaded: &Loaded, transport: &str) -> Value {
    let chosen = loaded.settings_for(transport, &transports()).unwrap();
    Value::Object(chosen.settings.raw().clone())
}

#[test]
fn the_settings_of_a_family_are_what_every_member_has_and_the_choice_of_one() {
    let schema = capsule_manifest::schema(&transports(), "cat");
    let block = &schema["properties"]["inference"]["properties"]["transports"]["properties"]["animal"];
    let own: Vec<_> = ["command", "login", "key", "dialect", "prey", "howl", "milk"]
        .into_iter()
        .filter(|key| block["properties"].get(*key).is_some())
        .collect();
    assert_eq!(own, ["command", "login", "key", "dialect"]);
    assert_eq!(block["properties"]["dialect"]["enum"], json!(["fox", "wolf"]));
    assert_eq!(block["properties"]["login"]["enum"], json!(["den", "token", "pack"]));
    assert_eq!(
        block["properties"]["command"],
        json!({"type": "string", "description": "As the transport that is chosen has it."}),
        "where members differ, it is the wider one"
    );
}

#[test]
fn a_member_gets_the_family_s_settings_under_its_own() {
    let text = "  transport: animal\n  command: reynard\n  dialect: fox\n  login: den\n  model: m\n  transports:\n    \
                animal: {login: token, model: n}\n    fox: {prey: hen}\n    wolf: {howl: true}\n";
    let loaded = load(text, None);
    assert_eq!((loaded.selected.as_str(), loaded.asked.as_str()), ("animal", "animal"));
    assert_eq!(
        own(&loaded, "animal"),
        json!({"command": "reynard", "dialect": "fox", "login": "token"})
    );
    let chosen = load(text, Some("fox"));
    assert_eq!((chosen.selected.as_str(), chosen.asked.as_str()), ("fox", "animal"));
    for loaded in [&loaded, &chosen] {
        assert_eq!(
            own(loaded, "fox"),
            json!({"command": "reynard", "login": "token", "prey": "hen"})
        );
        assert_eq!(
            own(loaded, "wolf"),
            json!({"command": "reynard", "login": "token", "howl": true})
        );
        assert_eq!(own(loaded, "cat"), json!({}));
    }
}

#[test]
fn a_family_s_settings_are_not_for_a_member_that_is_asked_for_by_its_own_name() {
    let transports = transports();
    let mut options = Options::new(&transports, "cat");
    options.transport = Some("wolf");
    let text = "  transport: animal\n  command: reynard\n  transports: {wolf: {howl: true}}\n";
    let loaded = read_with(&with(text), &options).unwrap();
    assert_eq!(own(&loaded, "wolf"), json!({"howl": true}));
}

#[test]
fn a_member_s_flat_settings_hold_when_the_family_is_asked_for() {
    let transports = transports();
    let mut options = Options::new(&transports, "cat");
    options.transport = Some("animal");
    let text = "  transport: wolf\n  howl: true\n  transports: {animal: {login: pack}}\n";
    let loaded = read_with(&with(text), &options).unwrap();
    assert_eq!(own(&loaded, "animal"), json!({"login": "pack"}));
    assert_eq!(own(&loaded, "wolf"), json!({"howl": true, "login": "pack"}));
}

#[test]
fn a_key_that_one_member_alone_has_is_sent_to_its_block() {
    let told = complaints("  transport: animal\n  howl: true\n  dialect: dog\n", None);
    assert!(told.contains("capsule.yaml:5:3"), "{told}");
    assert!(told.contains("write it as `inference.transports.wolf.howl`"), "{told}");
    assert!(told.contains("one of `fox`, `wolf`, found \"dog\""), "{told}");
}

#[test]
fn a_key_of_the_provider_needs_a_program_that_it_is_for() {
    let told = complaints("  transport: animal\n  key: k-12345\n", None);
    let way_out = "name the program too (`command` or `dialect`), or write it as `inference.transports.fox.key`";
    assert!(told.contains(way_out), "{told}");
    assert!(!told.contains("k-12345"), "{told}");
    for named in ["command: reynard", "dialect: wolf"] {
        load(&format!("  transport: animal\n  key: k-12345\n  {named}\n"), None);
    }
}

#[test]
fn what_the_chosen_member_does_not_take_is_told_where_it_stands() {
    let text = "  transport: animal\n  login: pack\n  transports: {animal: {command: x}}\n";
    load(text, None);
    let told = complaints(text, Some("fox"));
    assert!(told.contains("capsule.yaml:5:10"), "{told}");
    assert!(told.contains("one of `den`, `token`, found \"pack\""), "{told}");
    assert!(told.contains("prey"), "what the member needs is told too: {told}");
}
