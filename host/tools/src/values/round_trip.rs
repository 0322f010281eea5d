//! There and back: what holds for every type and every JSON.

use serde_json::Value;

use super::{from_json::value, schema::schema, shape::Shape, to_json};

/// Types nested deeper than the bytes can say are not made.
const DEEPEST: u32 = 6;
const NAMES: [&str; 4] = ["a", "b-c", "ok", "some"];

/// What a schema cannot say: how base64 ends, the range of a number written as text, the largest `f32`.
const BEYOND_A_SCHEMA: [&str; 3] = [
    "bytes in base64",
    "the digits of a number from",
    "a number within 32 bits",
];

/// As [`crate::fuzzing::round_trip`].
pub(crate) fn round_trip(bytes: &[u8], json: &Value) {
    let shape = read(&mut bytes.iter().copied(), 0);
    let schema = schema(&shape);
    let accepts = jsonschema::validator_for(&schema).expect("a schema that is made here is one");
    let there = match value(&shape, json) {
        Ok(there) => there,
        Err(why) => {
            let why = why.to_string();
            let said = BEYOND_A_SCHEMA.iter().any(|beyond| why.contains(beyond));
            assert!(
                said || !accepts.is_valid(json),
                "{schema} accepts {json}, which does not convert: {why}"
            );
            return;
        }
    };
    assert!(accepts.is_valid(json), "{schema} refuses {json}, which converts");
    let back = to_json::json(&shape, &there).expect("a value of the shape has a JSON form");
    assert!(accepts.is_valid(&back), "{schema} refuses {back}, made of {json}");
    let again = value(&shape, &back).expect("JSON that was made here converts");
    assert_eq!(there, again, "{schema}: {json} came back as {back}");
}

/// A type from bytes: each letter one, those that hold others read on.
fn read(bytes: &mut impl Iterator<Item = u8>, depth: u32) -> Shape {
    let letter = match bytes.next() {
        Some(letter) if depth < DEEPEST => letter,
        _ => b's',
    };
    let mut inner = || read(bytes, depth + 1);
    let named = |shapes: Vec<Shape>| NAMES.iter().map(|name| (*name).to_owned()).zip(shapes);
    match letter {
        b'b' => Shape::Bool,
        b'1' => Shape::S8,
        b'u' => Shape::U8,
        b'4' => Shape::S16,
        b'2' => Shape::U16,
        b'3' => Shape::S32,
        b'5' => Shape::U32,
        b'6' => Shape::S64,
        b'7' => Shape::U64,
        b'f' => Shape::F32,
        b'd' => Shape::F64,
        b'c' => Shape::Char,
        b'y' => Shape::Bytes,
        b'e' => Shape::Enum(NAMES.map(str::to_owned).to_vec()),
        b'g' => Shape::Flags(NAMES.map(str::to_owned).to_vec()),
        b'l' => match inner() {
            // A list of bytes is a type of its own.
            Shape::U8 => Shape::Bytes,
            item => Shape::List(Box::new(item)),
        },
        b'n' => Shape::FixedList(Box::new(inner()), 2),
        b't' => Shape::Tuple(vec![inner(), inner()]),
        b'r' => Shape::Record(named(vec![inner(), inner()]).collect()),
        b'v' => Shape::Variant(
            named(vec![inner(), inner()])
                .map(|(name, shape)| (name, Some(shape)))
                .collect(),
        ),
        b'o' => Shape::Option(Box::new(inner())),
        b'm' => Shape::Variant(
            named(vec![inner()])
                .map(|(name, shape)| (name, Some(shape)))
                .chain([("none".to_owned(), None)])
                .collect(),
        ),
        b'x' => Shape::Result(Some(Box::new(inner())), None),
        b'z' => Shape::Result(None, Some(Box::new(inner()))),
        _ => Shape::Text,
    }
}
