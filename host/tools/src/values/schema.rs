//! The JSON Schema of a shape: it accepts exactly what converts.

use serde_json::{Map, Value, json};

use super::shape::{Shape, Signature};

/// The schema of a function's arguments.
pub(crate) fn arguments_schema(signature: &Signature) -> Value {
    object(&signature.params)
}

/// The schema of a value.
pub(super) fn schema(shape: &Shape) -> Value {
    match shape {
        Shape::Bool => json!({"type": "boolean"}),
        Shape::S8 => integer(i8::MIN.into(), i8::MAX.into()),
        Shape::U8 => integer(0, u8::MAX.into()),
        Shape::S16 => integer(i16::MIN.into(), i16::MAX.into()),
        Shape::U16 => integer(0, u16::MAX.into()),
        Shape::S32 => integer(i32::MIN.into(), i32::MAX.into()),
        Shape::U32 => integer(0, u32::MAX.into()),
        Shape::S64 => wide(json!(i64::MIN), json!(i64::MAX), "^-?[0-9]{1,19}$"),
        Shape::U64 => wide(json!(0), json!(u64::MAX), "^[0-9]{1,20}$"),
        Shape::F32 | Shape::F64 => json!({"anyOf": [
            {"type": "number"},
            {"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]},
        ]}),
        Shape::Char => json!({"type": "string", "minLength": 1, "maxLength": 1}),
        Shape::Text => json!({"type": "string"}),
        Shape::Bytes => json!({"type": "string", "contentEncoding": "base64", "description": "Bytes in base64."}),
        Shape::List(item) => json!({"type": "array", "items": schema(item)}),
        Shape::FixedList(item, length) => {
            json!({"type": "array", "items": schema(item), "minItems": length, "maxItems": length})
        }
        Shape::Tuple(items) => {
            let shapes: Vec<Value> = items.iter().map(schema).collect();
            // `items` is for what follows, which is nothing: some readers want it beside every array.
            json!({"type": "array", "prefixItems": shapes, "items": {}, "minItems": items.len(), "maxItems": items.len()})
        }
        Shape::Record(fields) => object(fields),
        Shape::Variant(cases) => variant(cases),
        Shape::Enum(names) => json!({"type": "string", "enum": names}),
        Shape::Flags(names) => {
            json!({"type": "array", "items": {"type": "string", "enum": names}, "uniqueItems": true})
        }
        Shape::Option(inner) if inner.may_be_null() => {
            any_of(vec![single("some", schema(inner)), json!({"type": "null"})])
        }
        Shape::Option(inner) => any_of(vec![schema(inner), json!({"type": "null"})]),
        Shape::Result(ok, err) => any_of(vec![single("ok", payload(ok)), single("err", payload(err))]),
    }
}

fn payload(shape: &Option<Box<Shape>>) -> Value {
    shape
        .as_ref()
        .map_or_else(|| json!({"type": "null"}), |shape| schema(shape))
}

fn integer(least: i64, most: i64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most})
}

fn wide(least: Value, most: Value, digits: &str) -> Value {
    any_of(vec![
        json!({"type": "integer", "minimum": least, "maximum": most}),
        json!({"type": "string", "pattern": digits}),
    ])
}

fn any_of(mut shapes: Vec<Value>) -> Value {
    match (shapes.pop(), shapes.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            shapes.extend(last);
            json!({"anyOf": shapes})
        }
    }
}

fn single(key: &str, value: Value) -> Value {
    json!({"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": false})
}

fn object(fields: &[(String, Shape)]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, shape)| (name.clone(), schema(shape)))
        .collect();
    let required: Vec<&str> = fields
        .iter()
        .filter(|(_, shape)| !shape.may_be_null())
        .map(|(name, _)| name.as_str())
        .collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn variant(cases: &[(String, Option<Shape>)]) -> Value {
    let plain: Vec<&str> = cases
        .iter()
        .filter(|(_, payload)| payload.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let mut shapes = Vec::new();
    if !plain.is_empty() {
        shapes.push(json!({"type": "string", "enum": plain}));
    }
    let loaded = cases
        .iter()
        .filter_map(|(name, payload)| Some((name, payload.as_ref()?)));
    shapes.extend(loaded.map(|(name, payload)| single(name, schema(payload))));
    any_of(shapes)
}
