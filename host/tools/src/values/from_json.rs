//! From JSON to component values.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::{Map, Value};
use wasmtime::component::Val;

use super::shape::{Shape, Signature};

/// With or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A JSON value that is not one of the shape: where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {}: expected {expected}", if path.is_empty() { "/" } else { path })]
pub(crate) struct Misfit {
    path: String,
    expected: String,
}

impl Misfit {
    fn new(expected: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            expected: expected.into(),
        }
    }

    fn under(mut self, key: impl std::fmt::Display) -> Self {
        self.path = format!("/{key}{}", self.path);
        self
    }
}

/// The values of a function's parameters, in order.
pub(crate) fn arguments(signature: &Signature, arguments: &Value) -> Result<Vec<Val>, Misfit> {
    let fields = record(&signature.params, arguments)?;
    Ok(fields.into_iter().map(|(_, value)| value).collect())
}

/// A value of this shape.
pub(super) fn value(shape: &Shape, json: &Value) -> Result<Val, Misfit> {
    let misfit = Misfit::new;
    Ok(match shape {
        Shape::Bool => Val::Bool(json.as_bool().ok_or_else(|| misfit("true or false"))?),
        Shape::S8 => Val::S8(integer(json)?),
        Shape::U8 => Val::U8(integer(json)?),
        Shape::S16 => Val::S16(integer(json)?),
        Shape::U16 => Val::U16(integer(json)?),
        Shape::S32 => Val::S32(integer(json)?),
        Shape::U32 => Val::U32(integer(json)?),
        Shape::S64 => Val::S64(wide(json)?),
        Shape::U64 => Val::U64(wide(json)?),
        Shape::F32 => Val::Float32(float32(json)?),
        Shape::F64 => Val::Float64(float(json)?),
        Shape::Char => Val::Char(character(json).ok_or_else(|| misfit("a text of one character"))?),
        Shape::Text => Val::String(text(json)?.to_owned()),
        Shape::Bytes => {
            let bytes = BASE64.decode(text(json)?).map_err(|_| misfit("bytes in base64"))?;
            Val::List(bytes.into_iter().map(Val::U8).collect())
        }
        Shape::List(item) => Val::List(items(json, None, |_| Some(item))?),
        Shape::FixedList(item, length) => Val::FixedLengthList(items(json, Some(*length), |_| Some(item))?),
        Shape::Tuple(shapes) => Val::Tuple(items(json, Some(shapes.len()), |at| shapes.get(at))?),
        Shape::Record(fields) => Val::Record(record(fields, json)?),
        Shape::Variant(cases) => variant(cases, json)?,
        Shape::Enum(names) => Val::Enum(one_of(names, json)?),
        Shape::Flags(names) => Val::Flags(flags(names, json)?),
        Shape::Option(inner) => Val::Option(option(inner, json)?.map(Box::new)),
        Shape::Result(ok, err) => match single(json) {
            Some(("ok", inner)) => Val::Result(Ok(payload(ok.as_deref(), inner).map_err(|why| why.under("ok"))?)),
            Some(("err", inner)) => Val::Result(Err(payload(err.as_deref(), inner).map_err(|why| why.under("err"))?)),
            _ => return Err(misfit("{\"ok\": …} or {\"err\": …}")),
        },
    })
}

fn text(json: &Value) -> Result<&str, Misfit> {
    json.as_str().ok_or_else(|| Misfit::new("a text"))
}

fn character(json: &Value) -> Option<char> {
    let mut characters = json.as_str()?.chars();
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}

/// A whole number; `1.0` is one too, as JSON Schema has it.
fn whole(json: &Value) -> Option<i128> {
    let number = json.as_number()?;
    if let Some(number) = number.as_i128() {
        return Some(number);
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    // Beyond this, the cast would saturate.
    (float.abs() < 2f64.powi(64)).then_some(float as i128)
}

fn integer<T: TryFrom<i128> + Bounds>(json: &Value) -> Result<T, Misfit> {
    let number = whole(json).and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| Misfit::new(format!("a whole number from {} to {}", T::LEAST, T::MOST)))
}

fn wide<T: TryFrom<i128> + Bounds>(json: &Value) -> Result<T, Misfit> {
    match json.as_str() {
        Some(digits) => {
            let number = plain(digits, T::LEAST < 0).and_then(|number| T::try_from(number).ok());
            number.ok_or_else(|| Misfit::new(format!("the digits of a number from {} to {}", T::LEAST, T::MOST)))
        }
        None => integer(json),
    }
}

/// The number that these digits are, with a sign only where it may be below zero: what the pattern of the schema says.
fn plain(digits: &str, signed: bool) -> Option<i128> {
    let unsigned = digits.strip_prefix('-').filter(|_| signed).unwrap_or(digits);
    let longest = if signed { 19 } else { 20 };
    let written = (1..=longest).contains(&unsigned.len()) && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| written)
}

trait Bounds {
    const LEAST: i128;
    const MOST: i128;
}

macro_rules! bounds {
    ($($number:ty),*) => {$(
        impl Bounds for $number {
            const LEAST: i128 = <$number>::MIN as i128;
            const MOST: i128 = <$number>::MAX as i128;
        }
    )*};
}

bounds!(i8, u8, i16, u16, i32, u32, i64, u64);

fn float(json: &Value) -> Result<f64, Misfit> {
    let number = match json.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => json.as_f64(),
    };
    number.ok_or_else(|| Misfit::new("a number, \"NaN\", \"Infinity\" or \"-Infinity\""))
}

fn float32(json: &Value) -> Result<f32, Misfit> {
    let wide = float(json)?;
    let narrow = wide as f32;
    if narrow.is_infinite() && wide.is_finite() {
        return Err(Misfit::new("a number within 32 bits"));
    }
    Ok(narrow)
}

fn items<'a>(
    json: &Value,
    length: Option<usize>,
    shape: impl Fn(usize) -> Option<&'a Shape>,
) -> Result<Vec<Val>, Misfit> {
    let wanted = || match length {
        Some(length) => Misfit::new(format!("an array of {length}")),
        None => Misfit::new("an array"),
    };
    let items = json.as_array().ok_or_else(wanted)?;
    if length.is_some_and(|length| length != items.len()) {
        return Err(wanted());
    }
    let convert = |(at, item): (usize, &Value)| {
        let shape = shape(at).ok_or_else(wanted)?;
        value(shape, item).map_err(|why| why.under(at))
    };
    items.iter().enumerate().map(convert).collect()
}

fn record(fields: &[(String, Shape)], json: &Value) -> Result<Vec<(String, Val)>, Misfit> {
    let given = json.as_object().ok_or_else(|| Misfit::new("an object"))?;
    if let Some(unknown) = unknown(fields, given) {
        return Err(Misfit::new("no such key").under(unknown));
    }
    let convert = |(name, shape): &(String, Shape)| {
        let found = match given.get(name) {
            Some(found) => value(shape, found),
            None if shape.may_be_null() => Ok(Val::Option(None)),
            None => Err(Misfit::new("a value; the key is missing")),
        };
        Ok((name.clone(), found.map_err(|why| why.under(name))?))
    };
    fields.iter().map(convert).collect()
}

fn unknown<'a>(fields: &[(String, Shape)], given: &'a Map<String, Value>) -> Option<&'a String> {
    given.keys().find(|key| fields.iter().all(|(name, _)| name != *key))
}

/// The only key of an object, and its value.
fn single(json: &Value) -> Option<(&str, &Value)> {
    let object = json.as_object().filter(|object| object.len() == 1)?;
    object.iter().next().map(|(key, value)| (key.as_str(), value))
}

fn variant(cases: &[(String, Option<Shape>)], json: &Value) -> Result<Val, Misfit> {
    let case = |name: &str| cases.iter().find(|(known, _)| known == name);
    if let Some((name, None)) = json.as_str().and_then(case) {
        return Ok(Val::Variant(name.clone(), None));
    }
    if let Some((key, inner)) = single(json)
        && let Some((name, Some(shape))) = case(key)
    {
        let payload = value(shape, inner).map_err(|why| why.under(name))?;
        return Ok(Val::Variant(name.clone(), Some(Box::new(payload))));
    }
    let spelled = cases.iter().map(|(name, payload)| match payload {
        None => format!("{name:?}"),
        Some(_) => format!("{{{name:?}: …}}"),
    });
    Err(Misfit::new(format!(
        "one of {}",
        spelled.collect::<Vec<_>>().join(", ")
    )))
}

fn one_of(names: &[String], json: &Value) -> Result<String, Misfit> {
    let found = json.as_str().and_then(|text| names.iter().find(|name| *name == text));
    found
        .cloned()
        .ok_or_else(|| Misfit::new(format!("one of {}", names.join(", "))))
}

fn flags(names: &[String], json: &Value) -> Result<Vec<String>, Misfit> {
    let items = json.as_array().ok_or_else(|| Misfit::new("an array of names"))?;
    let mut set = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let name = one_of(names, item).map_err(|why| why.under(at))?;
        if set.contains(&name) {
            return Err(Misfit::new("each name once").under(at));
        }
        set.push(name);
    }
    Ok(set)
}

fn option(inner: &Shape, json: &Value) -> Result<Option<Val>, Misfit> {
    if json.is_null() {
        return Ok(None);
    }
    if !inner.may_be_null() {
        return value(inner, json).map(Some);
    }
    match single(json) {
        Some(("some", some)) => value(inner, some).map(Some).map_err(|why| why.under("some")),
        _ => Err(Misfit::new("null or {\"some\": …}")),
    }
}

fn payload(shape: Option<&Shape>, json: &Value) -> Result<Option<Box<Val>>, Misfit> {
    match shape {
        Some(shape) => value(shape, json).map(|value| Some(Box::new(value))),
        None if json.is_null() => Ok(None),
        None => Err(Misfit::new("null")),
    }
}
