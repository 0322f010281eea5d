//! The part of the manifest's schema about what tools may do.

use capsule_api::{ByteSize, HumanDuration};
use serde_json::{Value, json};

fn with(mut schema: Value, more: Value) -> Value {
    if let (Some(schema), Value::Object(more)) = (schema.as_object_mut(), more) {
        schema.extend(more);
    }
    schema
}

/// `capabilities` of the capsule.
pub(crate) fn capabilities() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "default": {},
        "description": "What the tools may do. What is not granted here is denied.",
        "properties": {
            "filesystem": {"type": "array", "default": [], "items": directory(), "description": "Directories that the tools may use."},
            "network": network(),
            "env": env(),
            "secrets": {
                "type": "object",
                "default": {},
                "additionalProperties": secret(),
                "propertyNames": {
                    "pattern": VARIABLE,
                    "patternErrorMessage": "expected the name of a variable such as `API_TOKEN`: letters, digits and `_`, no digit first",
                },
                "description": "Credentials that the host puts into requests of the tools, by the variable that holds each. No tool sees a value.",
            },
            "limits": {
                "type": "object",
                "additionalProperties": false,
                "default": {},
                "description": "Limits of every tool call.",
                "properties": limits(true),
            },
            "clock": {
                "type": "string",
                "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$",
                "patternErrorMessage": "expected a time such as `2026-01-01T00:00:00Z`",
                "examples": ["2026-01-01T00:00:00Z"],
                "description": "For tests: the time that tools are always shown. Without it, the machine's.",
            },
            "random": {
                "type": "object",
                "additionalProperties": false,
                "default": {},
                "description": "Random numbers of the tools.",
                "properties": {
                    "seed": {
                        "type": "integer", "minimum": 0, "maximum": u32::MAX,
                        "description": "For tests: the same numbers in each call, made from this. Nothing that comes of them is secret.",
                    },
                },
            },
        },
    })
}

/// `capabilities` of one tool.
pub(crate) fn tool_capabilities() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "description": "All that this tool gets, each entry within what the capsule is granted. Without it the tool gets all of that.",
        "properties": {
            "filesystem": {"type": "array", "default": [], "items": directory(), "description": "Directories, each inside one of the capsule's and with at most its mode."},
            "network": network(),
            "env": env(),
            "secrets": {"type": "array", "default": [], "items": {"type": "string"}, "description": "Names of the capsule's secrets."},
            "limits": {
                "type": "object",
                "additionalProperties": false,
                "default": {},
                "description": "Limits of its calls, each at most the capsule's.",
                "properties": limits(false),
            },
        },
    })
}

/// `config` of one tool.
pub(crate) fn config() -> Value {
    json!({
        "type": "object",
        "default": {},
        "additionalProperties": {"type": ["string", "number", "boolean", "array", "object"]},
        "description": "What this tool alone can read by `wasi:config/store`. Values that are no text are given as JSON.",
    })
}

const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

fn network() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "default": {},
        "description": "Where HTTP requests may go.",
        "properties": {
            "allow": {
                "type": "array",
                "default": [],
                "description": "Hosts: `https://host`, `http://host:port`, `host` or `*.host`; without a scheme it is `https`.",
                "items": {"type": "string", "minLength": 1},
                "examples": [["https://api.example.com", "*.example.org"]],
            },
        },
    })
}

fn env() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "default": {},
        "description": "Environment variables that the tools may see.",
        "properties": {
            "allow": {
                "type": "array",
                "default": [],
                "description": "Their names, each spelled out.",
                "items": {
                    "type": "string",
                    "pattern": VARIABLE,
                    "patternErrorMessage": "expected the name of a variable such as `TZ`: letters, digits and `_`, no digit first",
                },
            },
        },
    })
}

fn secret() -> Value {
    json!({
        "type": "object",
        "required": ["from", "hosts", "header"],
        "additionalProperties": false,
        "properties": {
            "from": {"type": "string", "enum": ["env"], "description": "Where the value is: the variable of this name, of the environment or of the file `.env`."},
            "hosts": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string", "minLength": 1},
                "description": "The hosts whose requests carry it: spelled out, over `https` or on this machine, and covered by `network.allow`.",
            },
            "header": {
                "type": "string",
                "pattern": r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+:[^{}]*\{\}[^{}]*$",
                "patternErrorMessage": "expected a header with `{}` for the value, such as `Authorization: Bearer {}`",
                "examples": ["Authorization: Bearer {}"],
                "description": "The header, with `{}` where the value goes.",
            },
        },
    })
}

fn directory() -> Value {
    json!({
        "type": "object",
        "required": ["path", "at", "mode"],
        "additionalProperties": false,
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "A directory of this machine, from the manifest's directory."},
            "at": {
                "type": "string",
                "pattern": "^/",
                "patternErrorMessage": "expected an absolute path such as `/data`",
                "description": "Where the tools see it.",
            },
            "mode": {"type": "string", "enum": ["ro", "rw"], "description": "`ro` to read, `rw` to read and write."},
        },
    })
}

/// The limits: those of the capsule, with defaults, or those that a tool may lower.
fn limits(whole: bool) -> Value {
    let described = |schema: Value, default: Value, text: &str| {
        let schema = with(schema, json!({"description": text}));
        match whole {
            true => with(schema, json!({ "default": default })),
            false => schema,
        }
    };
    let size = |default: &str, text: &str| described(ByteSize::schema(), default.into(), text);
    let count = |least: u32, most: u32, default: u32, text: &str| {
        let schema = json!({"type": "integer", "minimum": least, "maximum": most});
        described(schema, default.into(), text)
    };
    let mut limits = json!({
        "memory": size("256MiB", "Memory of one call."),
        "table_elements": count(1, 200_000, 20_000, "Elements of all tables of one call."),
        "instances": count(1, 10_000, 1000, "Core instances of one call."),
        "deadline": described(HumanDuration::schema(), "60s".into(), "The longest a call may take, without the time it waits for an answer from its caller."),
        "output": size("1MiB", "The largest result of one call."),
        "http_body": size("10MiB", "The largest body of an HTTP request, and of a response."),
    });
    if whole {
        limits["concurrent_calls"] = count(1, 1000, 16, "Calls that may run at once.");
        limits["registry_depth"] = count(
            1,
            8,
            4,
            "Calls of tools that may be inside one another, the model's included.",
        );
    }
    limits
}
