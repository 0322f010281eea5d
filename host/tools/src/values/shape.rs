//! WIT types that have a JSON form, apart from any engine.

use wasmtime::component::types::{ComponentFunc, Type};

/// Types nested deeper are refused: the conversions walk them on the stack.
const DEEPEST: u32 = 32;

/// A WIT type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Bool,
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
    F32,
    F64,
    Char,
    Text,
    /// `list<u8>`.
    Bytes,
    List(Box<Shape>),
    FixedList(Box<Shape>, usize),
    Tuple(Vec<Shape>),
    Record(Vec<(String, Shape)>),
    Variant(Vec<(String, Option<Shape>)>),
    Enum(Vec<String>),
    Flags(Vec<String>),
    Option(Box<Shape>),
    Result(Option<Box<Shape>>, Option<Box<Shape>>),
}

impl Shape {
    /// The shape of a type; `Err` says what in it has no JSON form.
    pub(crate) fn of(kind: &Type) -> Result<Self, String> {
        Self::at(kind, 0)
    }

    fn at(kind: &Type, depth: u32) -> Result<Self, String> {
        if depth > DEEPEST {
            return Err(format!("types nested more than {DEEPEST} deep"));
        }
        let inner = |kind: &Type| Self::at(kind, depth + 1);
        let boxed = |kind: &Type| inner(kind).map(Box::new);
        Ok(match kind {
            Type::Bool => Self::Bool,
            Type::S8 => Self::S8,
            Type::U8 => Self::U8,
            Type::S16 => Self::S16,
            Type::U16 => Self::U16,
            Type::S32 => Self::S32,
            Type::U32 => Self::U32,
            Type::S64 => Self::S64,
            Type::U64 => Self::U64,
            Type::Float32 => Self::F32,
            Type::Float64 => Self::F64,
            Type::Char => Self::Char,
            Type::String => Self::Text,
            Type::List(list) if list.ty() == Type::U8 => Self::Bytes,
            Type::List(list) => Self::List(boxed(&list.ty())?),
            Type::FixedLengthList(list) => {
                let length = usize::try_from(list.len()).map_err(|error| error.to_string())?;
                Self::FixedList(boxed(&list.ty())?, length)
            }
            Type::Tuple(tuple) => Self::Tuple(tuple.types().map(|kind| inner(&kind)).collect::<Result<_, _>>()?),
            Type::Record(record) => {
                let field = |field: wasmtime::component::types::Field<'_>| {
                    Ok::<_, String>((field.name.to_owned(), inner(&field.ty)?))
                };
                Self::Record(record.fields().map(field).collect::<Result<_, _>>()?)
            }
            Type::Variant(variant) => {
                let case = |case: wasmtime::component::types::Case<'_>| {
                    let payload = case.ty.as_ref().map(inner).transpose()?;
                    Ok::<_, String>((case.name.to_owned(), payload))
                };
                Self::Variant(variant.cases().map(case).collect::<Result<_, _>>()?)
            }
            Type::Enum(names) => Self::Enum(names.names().map(str::to_owned).collect()),
            Type::Flags(names) => Self::Flags(names.names().map(str::to_owned).collect()),
            Type::Option(option) => Self::Option(boxed(&option.ty())?),
            Type::Result(result) => {
                let payload = |kind: Option<Type>| kind.as_ref().map(boxed).transpose();
                Self::Result(payload(result.ok())?, payload(result.err())?)
            }
            Type::Own(_) | Type::Borrow(_) => return Err("a resource, which ends with the call".into()),
            Type::Stream(_) => return Err("a stream".into()),
            Type::Future(_) => return Err("a future".into()),
            Type::ErrorContext => return Err("an error context".into()),
            Type::Map(_) => return Err("a map".into()),
        })
    }

    /// Whether a value of this shape can be `null` in JSON.
    pub(super) fn may_be_null(&self) -> bool {
        matches!(self, Self::Option(_))
    }
}

/// What a function takes and returns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Signature {
    pub(crate) params: Vec<(String, Shape)>,
    pub(crate) result: Option<Shape>,
}

impl Signature {
    /// The signature of an exported function; `Err` says why it cannot be a tool.
    pub(crate) fn of(function: &ComponentFunc) -> Result<Self, String> {
        if function.async_() {
            return Err("it is an async function".into());
        }
        let param = |(name, kind): (&str, Type)| {
            let shape = Shape::of(&kind).map_err(|what| format!("its parameter `{name}` holds {what}"))?;
            Ok::<_, String>((name.to_owned(), shape))
        };
        let params = function.params().map(param).collect::<Result<_, _>>()?;
        let result = function.results().next();
        let result = result.as_ref().map(Shape::of).transpose();
        Ok(Self {
            params,
            result: result.map_err(|what| format!("its result holds {what}"))?,
        })
    }
}
