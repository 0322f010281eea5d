use proptest::{collection::vec, option, prelude::*, sample::subsequence};
use serde_json::{Value, json};
use wasmtime::component::Val;

use super::{
    from_json::{arguments, value},
    schema::{arguments_schema, schema},
    shape::{Shape, Signature},
    to_json::{Outcome, json as to_json, outcome},
};

fn boxed(shape: Shape) -> Box<Shape> {
    Box::new(shape)
}

fn names() -> impl Strategy<Value = Vec<String>> {
    let all: Vec<String> = ["a", "b-c", "ok", "some", "x1"].map(str::to_owned).to_vec();
    subsequence(all, 1..=5)
}

fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            Shape::Bool,
            Shape::S8,
            Shape::U8,
            Shape::S16,
            Shape::U16,
            Shape::S32,
            Shape::U32,
            Shape::S64,
            Shape::U64,
            Shape::F32,
            Shape::F64,
            Shape::Char,
            Shape::Text,
            Shape::Bytes,
        ]),
        names().prop_map(Shape::Enum),
        names().prop_map(Shape::Flags),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let some = option::of(inner.clone().prop_map(boxed));
        let field = (names(), vec(inner.clone(), 5));
        let case = (names(), vec(option::of(inner.clone()), 5));
        prop_oneof![
            // `list<u8>` is `Bytes`.
            inner
                .clone()
                .prop_filter("bytes", |shape| *shape != Shape::U8)
                .prop_map(|shape| Shape::List(boxed(shape))),
            (inner.clone(), 1usize..4).prop_map(|(shape, length)| Shape::FixedList(boxed(shape), length)),
            vec(inner.clone(), 1..4).prop_map(Shape::Tuple),
            field.prop_map(|(names, shapes)| Shape::Record(names.into_iter().zip(shapes).collect())),
            case.prop_map(|(names, shapes)| Shape::Variant(names.into_iter().zip(shapes).collect())),
            inner.prop_map(|shape| Shape::Option(boxed(shape))),
            (some.clone(), some).prop_map(|(ok, err)| Shape::Result(ok, err)),
        ]
    })
}

fn float64() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), Just(-0.0)]
}

fn vals(shape: &Shape) -> BoxedStrategy<Val> {
    let all = |shapes: &[Shape]| shapes.iter().map(vals).collect::<Vec<_>>();
    match shape.clone() {
        Shape::Bool => any::<bool>().prop_map(Val::Bool).boxed(),
        Shape::S8 => any::<i8>().prop_map(Val::S8).boxed(),
        Shape::U8 => any::<u8>().prop_map(Val::U8).boxed(),
        Shape::S16 => any::<i16>().prop_map(Val::S16).boxed(),
        Shape::U16 => any::<u16>().prop_map(Val::U16).boxed(),
        Shape::S32 => any::<i32>().prop_map(Val::S32).boxed(),
        Shape::U32 => any::<u32>().prop_map(Val::U32).boxed(),
        Shape::S64 => any::<i64>().prop_map(Val::S64).boxed(),
        Shape::U64 => any::<u64>().prop_map(Val::U64).boxed(),
        Shape::F32 => any::<u32>().prop_map(|bits| Val::Float32(f32::from_bits(bits))).boxed(),
        Shape::F64 => float64().prop_map(Val::Float64).boxed(),
        Shape::Char => any::<char>().prop_map(Val::Char).boxed(),
        Shape::Text => ".{0,8}".prop_map(Val::String).boxed(),
        Shape::Bytes => vec(any::<u8>().prop_map(Val::U8), 0..8).prop_map(Val::List).boxed(),
        Shape::List(item) => vec(vals(&item), 0..4).prop_map(Val::List).boxed(),
        Shape::FixedList(item, length) => vec(vals(&item), length).prop_map(Val::FixedLengthList).boxed(),
        Shape::Tuple(items) => all(&items).prop_map(Val::Tuple).boxed(),
        Shape::Record(fields) => {
            let (names, shapes): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
            let zipped = move |values: Vec<Val>| Val::Record(names.iter().cloned().zip(values).collect());
            all(&shapes).prop_map(zipped).boxed()
        }
        Shape::Variant(cases) => prop::sample::select(cases)
            .prop_flat_map(|(name, payload)| {
                some(payload.as_ref()).prop_map(move |value| Val::Variant(name.clone(), value))
            })
            .boxed(),
        Shape::Enum(names) => prop::sample::select(names).prop_map(Val::Enum).boxed(),
        Shape::Flags(names) => {
            let most = names.len();
            subsequence(names, 0..=most).prop_map(Val::Flags).boxed()
        }
        Shape::Option(inner) => option::of(vals(&inner).prop_map(Box::new))
            .prop_map(Val::Option)
            .boxed(),
        Shape::Result(ok, err) => prop_oneof![
            some(ok.as_deref()).prop_map(|value| Val::Result(Ok(value))),
            some(err.as_deref()).prop_map(|value| Val::Result(Err(value))),
        ]
        .boxed(),
    }
}

fn some(shape: Option<&Shape>) -> BoxedStrategy<Option<Box<Val>>> {
    match shape {
        Some(shape) => vals(shape).prop_map(|value| Some(Box::new(value))).boxed(),
        None => Just(None).boxed(),
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9+/=-]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("a|b-c|ok|err|some", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn shape_and_value() -> impl Strategy<Value = (Shape, Val)> {
    shapes().prop_flat_map(|shape| (Just(shape.clone()), vals(&shape)))
}

proptest! {
    #[test]
    fn every_value_comes_back_through_json_and_fits_its_schema((shape, val) in shape_and_value()) {
        let json = to_json(&shape, &val).unwrap();
        let text = json.to_string();
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&value(&shape, &read).unwrap(), &val, "{}", &text);
        let validator = jsonschema::validator_for(&schema(&shape)).unwrap();
        prop_assert!(validator.is_valid(&read), "{} is not valid for {}", text, schema(&shape));
    }

    #[test]
    fn what_converts_fits_the_schema_and_any_json_is_answered(shape in shapes(), json in any_json()) {
        if let Ok(val) = value(&shape, &json) {
            let validator = jsonschema::validator_for(&schema(&shape)).unwrap();
            prop_assert!(validator.is_valid(&json), "{} converts and is not valid for {}", json, schema(&shape));
            let again = to_json(&shape, &val).unwrap();
            prop_assert_eq!(value(&shape, &again).unwrap(), val);
        }
    }
}

#[test]
fn the_table_holds_row_by_row() {
    let text = |text: &str| text.to_owned();
    let rows = [
        (
            Shape::U64,
            json!(9_007_199_254_740_991u64),
            Val::U64(9_007_199_254_740_991),
        ),
        (Shape::U64, json!("9007199254740992"), Val::U64(9_007_199_254_740_992)),
        (Shape::S64, json!("-9223372036854775808"), Val::S64(i64::MIN)),
        (Shape::F32, json!(0.1), Val::Float32(0.1)),
        (Shape::F64, json!("-Infinity"), Val::Float64(f64::NEG_INFINITY)),
        (Shape::F64, json!("NaN"), Val::Float64(f64::NAN)),
        (Shape::Char, json!("é"), Val::Char('é')),
        (Shape::Bytes, json!("AP8="), Val::List(vec![Val::U8(0), Val::U8(255)])),
        (
            Shape::Flags(vec![text("r"), text("w")]),
            json!(["w"]),
            Val::Flags(vec![text("w")]),
        ),
        (Shape::Option(boxed(Shape::Bool)), json!(null), Val::Option(None)),
        (
            Shape::Option(boxed(Shape::Option(boxed(Shape::Bool)))),
            json!({"some": null}),
            Val::Option(Some(Box::new(Val::Option(None)))),
        ),
        (
            Shape::Result(None, Some(boxed(Shape::Text))),
            json!({"ok": null}),
            Val::Result(Ok(None)),
        ),
        (
            Shape::Variant(vec![(text("none"), None), (text("some"), Some(Shape::U8))]),
            json!({"some": 3}),
            Val::Variant(text("some"), Some(Box::new(Val::U8(3)))),
        ),
    ];
    for (shape, json, val) in rows {
        assert_eq!(value(&shape, &json).as_ref(), Ok(&val));
        assert_eq!(to_json(&shape, &val), Ok(json));
    }
}

#[test]
fn what_does_not_fit_says_where_and_what_was_expected() {
    let signature = Signature {
        params: vec![
            (
                "point".into(),
                Shape::Record(vec![("x".into(), Shape::U8), ("y".into(), Shape::U8)]),
            ),
            ("note".into(), Shape::Option(boxed(Shape::Text))),
        ],
        result: None,
    };
    let fits = arguments(&signature, &json!({"point": {"x": 1, "y": 2.0}})).unwrap();
    let point = Val::Record(vec![("x".into(), Val::U8(1)), ("y".into(), Val::U8(2))]);
    assert_eq!(fits, [point, Val::Option(None)]);
    for (given, why) in [
        (
            json!({"point": {"x": 1, "y": 256}}),
            "at /point/y: expected a whole number from 0 to 255",
        ),
        (
            json!({"point": {"x": 1}}),
            "at /point/y: expected a value; the key is missing",
        ),
        (
            json!({"point": {"x": 1, "y": 1}, "more": 1}),
            "at /more: expected no such key",
        ),
        (json!([]), "at /: expected an object"),
    ] {
        assert_eq!(arguments(&signature, &given).unwrap_err().to_string(), why);
    }
    assert_eq!(
        arguments_schema(&signature)["required"],
        json!(["point"]),
        "an option may be missing"
    );
}

#[test]
fn a_result_at_the_top_decides_whether_the_call_failed() {
    let shape = Shape::Result(Some(boxed(Shape::U8)), Some(boxed(Shape::Text)));
    let ok = Val::Result(Ok(Some(Box::new(Val::U8(1)))));
    let err = Val::Result(Err(Some(Box::new(Val::String("no".into())))));
    assert_eq!(outcome(Some(&shape), Some(&ok)), Ok(Outcome::Passed(Some(json!(1)))));
    assert_eq!(
        outcome(Some(&shape), Some(&err)),
        Ok(Outcome::Failed(Some(json!("no"))))
    );
    assert_eq!(outcome(None, None), Ok(Outcome::Passed(None)));
}
