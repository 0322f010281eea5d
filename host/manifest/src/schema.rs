//! The JSON Schema of the manifest: one base, into which the schemas of transports are grafted.
//!
//! Optional keys are plain types: an `anyOf` with null would accept nothing more and say less when it fails.

use capsule_api::{HumanDuration, Registry, TransportDescriptor};
use serde_json::{Map, Value, json};

use crate::capabilities_schema::{capabilities, config, tool_capabilities};

/// The keys of `inference` that belong to no transport, apart from `transport` and `transports`.
pub const COMMON_KEYS: &[&str] = &[
    "model",
    "system_prompt",
    "system_prompt_file",
    "max_turns",
    "max_tokens",
];

/// Where the schemas of transports come from.
pub trait TransportSchemas {
    /// The schema of this transport's own settings; given these, the schema for exactly these settings. `None`: there is no such transport.
    fn schema(&self, name: &str, settings: Option<&Value>) -> Option<Value>;

    /// The names of all transports, sorted.
    fn names(&self) -> Vec<String>;

    /// The transports that this name stands for, sorted; none where it is a transport itself.
    fn members(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }
}

impl TransportSchemas for Registry<TransportDescriptor> {
    fn schema(&self, name: &str, settings: Option<&Value>) -> Option<Value> {
        let transport = self.iter().find(|transport| transport.name == name)?;
        Some((transport.settings_schema)(settings))
    }

    fn names(&self) -> Vec<String> {
        Registry::names(self).map(str::to_owned).collect()
    }
}

/// The whole schema (draft 2020-12), for editors: each transport's keys in `inference.transports.<name>`, and beside the common ones
/// where `inference.transport` names it. `default_transport` is the one that runs where the manifest names none.
pub fn schema(schemas: &dyn TransportSchemas, default_transport: &str) -> Value {
    let mut root = base(&schemas.names(), default_transport);
    let mut blocks = Map::new();
    let mut branches = Vec::new();
    for name in schemas.names() {
        let Some(own) = schemas.schema(&name, None) else {
            continue;
        };
        let own = graft(&mut root, &format!("transport.{name}"), own);
        blocks.insert(name.clone(), block(&name, &own));
        // Without `required`, a manifest that names no transport takes the branch of the default one.
        let mut condition = json!({"properties": {"transport": {"const": name}}});
        if name != default_transport {
            condition["required"] = json!(["transport"]);
        }
        branches.push(json!({"if": condition, "then": {"properties": own_properties(&own)}}));
    }
    let inference = &mut root["properties"]["inference"];
    inference["properties"]["transports"]["properties"] = Value::Object(blocks);
    inference["allOf"] = Value::Array(branches);
    remove(inference, "additionalProperties");
    inference["unevaluatedProperties"] = json!(false);
    root
}

/// The schema that one file is validated against. `flat` is the schema for the keys beside the common ones, `None` where the file names
/// an unknown transport (its keys are then nobody's to judge); `blocks` are those of the transports that have a block of their own.
pub(crate) fn for_file(
    schemas: &dyn TransportSchemas,
    default_transport: &str,
    flat: Option<(&str, Value)>,
    blocks: Vec<(&str, Value)>,
) -> Value {
    let mut root = base(&schemas.names(), default_transport);
    for (name, own) in blocks {
        let own = graft(&mut root, &format!("transport.{name}"), own);
        root["properties"]["inference"]["properties"]["transports"]["properties"][name] = block(name, &own);
    }
    match flat {
        Some((name, own)) => {
            // Under a name of its own: the schema for the flat keys need not be that for the block.
            let own = graft(&mut root, &format!("flat.{name}"), own);
            let inference = &mut root["properties"]["inference"];
            merge_open(inference, &own);
            if let Some(properties) = inference["properties"].as_object_mut() {
                for (key, property) in own_properties(&own) {
                    properties.entry(key).or_insert(property);
                }
            }
        }
        None => remove(&mut root["properties"]["inference"], "additionalProperties"),
    }
    root
}

/// A transport's schema on its own, with references that hold inside `root`, where it gets the name `label`.
fn graft(root: &mut Value, label: &str, mut schema: Value) -> Value {
    if let Some(parts) = schema.as_object_mut() {
        for key in ["$schema", "$id"] {
            parts.shift_remove(key);
        }
    }
    if rebase(&mut schema, &format!("#/$defs/{label}")) {
        root["$defs"][label] = schema.clone();
    }
    schema
}

/// Local references start at the transport's schema, which is now part of a larger one. Returns whether there are any.
fn rebase(schema: &mut Value, at: &str) -> bool {
    let mut any = false;
    match schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(target) if key == "$ref" && target.starts_with('#') => {
                        *target = format!("{at}{}", &target[1..]);
                        any = true;
                    }
                    other => any |= rebase(other, at),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| any |= rebase(item, at)),
        _ => {}
    }
    any
}

fn own_properties(own: &Value) -> Map<String, Value> {
    own["properties"].as_object().cloned().unwrap_or_default()
}

/// The block of one transport: the keys that override the common ones, and its own.
fn block(name: &str, own: &Value) -> Value {
    let mut properties = common();
    properties.extend(own_properties(own));
    let mut block = json!({
        "type": "object",
        "description": format!("Settings for the transport `{name}`; they override the common ones."),
        "properties": properties,
        "additionalProperties": false,
    });
    exclude_prompts(&mut block);
    merge_open(&mut block, own);
    block
}

/// What a transport says about keys that it does not list.
fn merge_open(target: &mut Value, own: &Value) {
    for key in ["additionalProperties", "patternProperties"] {
        match own.get(key) {
            Some(open) if open != false => target[key] = open.clone(),
            _ => {}
        }
    }
}

fn remove(schema: &mut Value, key: &str) {
    if let Some(parts) = schema.as_object_mut() {
        parts.shift_remove(key);
    }
}

fn exclude_prompts(schema: &mut Value) {
    schema["not"] = json!({"required": ["system_prompt", "system_prompt_file"]});
}

fn common() -> Map<String, Value> {
    let properties = json!({
        "model": {"type": "string", "minLength": 1, "description": "The model to ask for. Without it the transport decides."},
        "system_prompt": {"type": "string", "description": "What the model is told before the task. Not together with `system_prompt_file`."},
        "system_prompt_file": {"type": "string", "minLength": 1, "description": "A text file with the system prompt, below the manifest's directory. Its text is taken as it is: `${NAME}` is not expanded in it."},
        "max_turns": {"type": "integer", "minimum": 1, "maximum": u32::MAX, "default": 50, "description": "Model requests for one task at most."},
        "max_tokens": {"type": "integer", "minimum": 1, "maximum": u32::MAX, "default": 8192, "description": "Output tokens of one model request at most."},
    });
    match properties {
        Value::Object(properties) => properties,
        _ => unreachable!("the literal above is an object"),
    }
}

/// The schema without any transport's keys.
pub(crate) fn base(transports: &[String], default_transport: &str) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "capsule.yaml",
        "description": "The manifest of a capsule: its tools, what they may do, and which model works with them.",
        "type": "object",
        "required": ["name", "version"],
        "additionalProperties": false,
        "properties": {
            "name": {
                "type": "string",
                "pattern": "^[a-z0-9-]{1,100}$",
                "patternErrorMessage": "expected 1 to 100 small letters, digits and `-`",
                "description": "The capsule's name.",
            },
            "version": {
                "type": "string",
                "pattern": r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$",
                "patternErrorMessage": "expected a semantic version such as `1.4.0`",
                "examples": ["0.1.0"],
                "description": "The capsule's version (semver.org).",
            },
            "description": {"type": "string", "description": "What the capsule is for, in a sentence."},
            "script": {"type": "string", "minLength": 1, "description": "A component that exports `murmur:capsule/run`: it calls the tools and runs in place of a model. A path from the manifest's directory."},
            "tools": {"type": "array", "default": [], "items": tool(), "description": "The tools that the model may call."},
            "capabilities": capabilities(),
            "inference": inference(transports, default_transport),
            "context": context(),
            "lifecycle": lifecycle(),
            "task": {"type": "string", "minLength": 1, "description": "What `capsule run` does when it is given no task."},
            "trace": {
                "type": "object",
                "additionalProperties": false,
                "default": {},
                "description": "The record of each run.",
                "properties": {
                    "capture": {
                        "type": "string",
                        "enum": ["none", "summary", "content"],
                        "default": "summary",
                        "description": "`none` writes no record, `summary` sizes and hashes in place of texts, `content` everything but secrets.",
                    },
                },
            },
        },
        "$defs": {},
    })
}

fn lifecycle() -> Value {
    let mut wait = HumanDuration::schema();
    wait["default"] = "10m".into();
    wait["description"] = "How long a question of a tool to whoever sent the task waits for its answer; limits on the call stop meanwhile.".into();
    json!({
        "type": "object",
        "additionalProperties": false,
        "default": {},
        "description": "How a task lives.",
        "properties": {"input_timeout": wait},
    })
}

fn context() -> Value {
    json!({
        "type": "object",
        "required": ["max_tokens"],
        "additionalProperties": false,
        "description": "The model's context window, for transports that own the loop. Without it older turns are summarised only when the provider refuses a conversation as too long.",
        "properties": {
            "max_tokens": {"type": "integer", "minimum": 1, "maximum": u32::MAX, "description": "Tokens that the model takes, input and output together.", "examples": [200_000]},
            "threshold": {"type": "number", "minimum": 0.01, "maximum": 1, "default": 0.85, "description": "The share of the window at which older turns are summarised."},
        },
    })
}

fn tool() -> Value {
    json!({
        "type": "object",
        "if": {"required": ["skill"]},
        "then": {"properties": {"component": false, "input": false, "input_schema": false, "config": false, "capabilities": false}},
        "else": {"required": ["name", "component"]},
        "additionalProperties": false,
        "properties": {
            "name": {
                "type": "string",
                "pattern": "^[^\\s\\x00-\\x1f\\x7f]([^\\x00-\\x1f\\x7f]{0,98}[^\\s\\x00-\\x1f\\x7f])?$",
                "patternErrorMessage": "expected 1 to 100 characters, no control characters, no white space around them",
                "description": "The tool's name; unique in the capsule. The model sees a safe alias where a peer would refuse it. A skill without a name is called as its file.",
            },
            "component": {
                "type": "string",
                "minLength": 1,
                "description": "The WebAssembly component, or the directory of its sources, which `capsule build` builds: a path from the manifest's directory.",
            },
            "skill": {
                "type": "string",
                "minLength": 1,
                "description": "In place of a component, a text: a tool without input that returns it. A path from the manifest's directory.",
            },
            "input": {
                "type": "string",
                "enum": ["stdin", "argv"],
                "default": "stdin",
                "description": "How a component that is a command gets its arguments: JSON on standard input, or options on its command line.",
            },
            "description": {"type": "string", "description": "What the tool does, for the model. Without it the component's own is taken."},
            "input_schema": {"type": "object", "description": "JSON Schema of the arguments. Without it the component's own is taken."},
            "config": config(),
            "capabilities": tool_capabilities(),
            "annotations": {
                "type": "object",
                "additionalProperties": false,
                "default": {},
                "description": "Hints for scheduling. They permit nothing.",
                "properties": {
                    "read_only": {"type": "boolean", "default": false, "description": "The tool changes nothing, so calls of it may overlap."},
                    "exclusive": {"type": "boolean", "default": false, "description": "No other call may run beside one of this tool."},
                },
            },
        },
    })
}

fn inference(transports: &[String], default_transport: &str) -> Value {
    let mut properties = Map::new();
    properties.insert(
        "transport".to_owned(),
        json!({
            "type": "string",
            "enum": transports,
            "default": default_transport,
            "description": "How the model is reached. Keys beside the common ones belong to this transport.",
        }),
    );
    properties.extend(common());
    properties.insert(
        "transports".to_owned(),
        json!({
            "type": "object",
            "additionalProperties": false,
            "default": {},
            "properties": {},
            "description": "Settings by transport, so that `--transport` can switch without an edit. They override the common ones.",
        }),
    );
    let mut inference = json!({
        "type": "object",
        "default": {},
        "description": "The model, and how it is reached. `${NAME}` and `${NAME:-default}` in text take a variable of the environment or of the file `.env`; `$${` stands for `${`.",
        "properties": properties,
        "additionalProperties": false,
    });
    exclude_prompts(&mut inference);
    inference
}
