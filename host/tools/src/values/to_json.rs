//! From component values to JSON.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};
use wasmtime::component::Val;

use super::shape::Shape;

/// The largest whole number that every reader of JSON keeps exactly.
const EXACT: u64 = (1 << 53) - 1;

/// What a function returned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// A value or an `ok`; `None` where it has no payload.
    Passed(Option<Value>),
    /// An `err`.
    Failed(Option<Value>),
}

/// The outcome of a call that returned this value. `Err` says what has no JSON form.
pub(crate) fn outcome(shape: Option<&Shape>, returned: Option<&Val>) -> Result<Outcome, String> {
    let payload = |shape: &Option<Box<Shape>>, value: &Option<Box<Val>>| match (shape, value) {
        (Some(shape), Some(value)) => json(shape, value).map(Some),
        _ => Ok(None),
    };
    Ok(match (shape, returned) {
        (Some(Shape::Result(ok, _)), Some(Val::Result(Ok(value)))) => Outcome::Passed(payload(ok, value)?),
        (Some(Shape::Result(_, err)), Some(Val::Result(Err(value)))) => Outcome::Failed(payload(err, value)?),
        (Some(shape), Some(value)) => Outcome::Passed(Some(json(shape, value)?)),
        _ => Outcome::Passed(None),
    })
}

/// The JSON of a value. `Err` says that it is not one of the shape, which the engine rules out.
pub(super) fn json(shape: &Shape, value: &Val) -> Result<Value, String> {
    Ok(match (shape, value) {
        (Shape::Bool, Val::Bool(value)) => json!(value),
        (Shape::S8, Val::S8(value)) => json!(value),
        (Shape::U8, Val::U8(value)) => json!(value),
        (Shape::S16, Val::S16(value)) => json!(value),
        (Shape::U16, Val::U16(value)) => json!(value),
        (Shape::S32, Val::S32(value)) => json!(value),
        (Shape::U32, Val::U32(value)) => json!(value),
        (Shape::S64, Val::S64(value)) if value.unsigned_abs() > EXACT => json!(value.to_string()),
        (Shape::S64, Val::S64(value)) => json!(value),
        (Shape::U64, Val::U64(value)) if *value > EXACT => json!(value.to_string()),
        (Shape::U64, Val::U64(value)) => json!(value),
        (Shape::F32, Val::Float32(value)) => float(widened(*value)),
        (Shape::F64, Val::Float64(value)) => float(*value),
        (Shape::Char, Val::Char(value)) => json!(value.to_string()),
        (Shape::Text, Val::String(value)) => json!(value),
        (Shape::Bytes, Val::List(items)) => json!(BASE64_STANDARD.encode(bytes(items)?)),
        (Shape::List(item), Val::List(items)) | (Shape::FixedList(item, _), Val::FixedLengthList(items)) => {
            array(items.iter().map(|value| json(item, value)))?
        }
        (Shape::Tuple(shapes), Val::Tuple(items)) if shapes.len() == items.len() => {
            array(shapes.iter().zip(items).map(|(shape, value)| json(shape, value)))?
        }
        (Shape::Record(shapes), Val::Record(fields)) if shapes.len() == fields.len() => {
            let field = |((name, shape), (_, value)): (&(String, Shape), &(String, Val))| {
                Ok::<_, String>((name.clone(), json(shape, value)?))
            };
            Value::Object(shapes.iter().zip(fields).map(field).collect::<Result<_, _>>()?)
        }
        (Shape::Variant(cases), Val::Variant(name, payload)) => variant(cases, name, payload.as_deref())?,
        (Shape::Enum(_), Val::Enum(name)) => json!(name),
        (Shape::Flags(_), Val::Flags(names)) => json!(names),
        (Shape::Option(_), Val::Option(None)) => Value::Null,
        (Shape::Option(inner), Val::Option(Some(value))) if inner.may_be_null() => single("some", json(inner, value)?),
        (Shape::Option(inner), Val::Option(Some(value))) => json(inner, value)?,
        (Shape::Result(ok, _), Val::Result(Ok(value))) => single("ok", payload(ok.as_deref(), value.as_deref())?),
        (Shape::Result(_, err), Val::Result(Err(value))) => single("err", payload(err.as_deref(), value.as_deref())?),
        (shape, value) => return Err(format!("a value is not of its type: {value:?} for {shape:?}")),
    })
}

/// The number with the same shortest digits, so that 0.1 stays 0.1.
fn widened(value: f32) -> f64 {
    let digits = value.to_string().parse::<f64>().unwrap_or(f64::NAN);
    // Rounding twice could miss, in theory.
    if digits as f32 == value {
        digits
    } else {
        f64::from(value)
    }
}

fn float(value: f64) -> Value {
    match value {
        value if value.is_nan() => json!("NaN"),
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        value => json!(value),
    }
}

fn bytes(items: &[Val]) -> Result<Vec<u8>, String> {
    let byte = |item: &Val| match item {
        Val::U8(byte) => Ok(*byte),
        other => Err(format!("a value is not a byte: {other:?}")),
    };
    items.iter().map(byte).collect()
}

fn array(items: impl Iterator<Item = Result<Value, String>>) -> Result<Value, String> {
    items.collect::<Result<_, _>>().map(Value::Array)
}

fn variant(cases: &[(String, Option<Shape>)], name: &str, payload: Option<&Val>) -> Result<Value, String> {
    let shape = cases
        .iter()
        .find(|(known, _)| known == name)
        .and_then(|(_, shape)| shape.as_ref());
    match (shape, payload) {
        (Some(shape), Some(value)) => Ok(single(name, json(shape, value)?)),
        (None, None) => Ok(json!(name)),
        _ => Err(format!("the case `{name}` is not of its type")),
    }
}

fn payload(shape: Option<&Shape>, value: Option<&Val>) -> Result<Value, String> {
    match (shape, value) {
        (Some(shape), Some(value)) => json(shape, value),
        (None, None) => Ok(Value::Null),
        _ => Err("a payload is not of its type".into()),
    }
}

fn single(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}
