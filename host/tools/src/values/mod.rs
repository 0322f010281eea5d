//! JSON and component values: one table, both ways.
//!
//! | WIT type | JSON | notes |
//! |---|---|---|
//! | `bool` | `true`, `false` | |
//! | `u8` … `u32`, `s8` … `s32` | a whole number in range | |
//! | `u64`, `s64` | a whole number, or its digits as text | results over 2^53 − 1 are text: many readers of JSON round them |
//! | `f32`, `f64` | a number, or `"NaN"`, `"Infinity"`, `"-Infinity"` | |
//! | `char` | a text of one character | |
//! | `string` | text | |
//! | `list<u8>` | text in base64 | |
//! | `list<T>`, `list<T, N>` | an array | of exactly N |
//! | `tuple<…>` | an array of exactly that many | |
//! | `record` | an object | a field that is an `option` may be missing; no other keys |
//! | `variant` | the case's name, or `{"case": payload}` | by whether the case has a payload |
//! | `enum` | the case's name | |
//! | `flags` | an array of names | |
//! | `option<T>` | `null` or the value | where the value may itself be `null`: `{"some": value}` |
//! | `result<T, E>` | `{"ok": value}` or `{"err": value}` | `null` where there is no payload |
//!
//! The parameters of a function are the properties of one object. A `result` at the top is not written out: `ok` is the tool's result,
//! `err` makes the call failed. Resources, streams, futures and maps have no JSON form; a function that takes or returns one is refused.

mod from_json;
mod round_trip;
mod schema;
mod shape;
mod to_json;

pub(crate) use from_json::{Misfit, arguments};
pub(crate) use round_trip::round_trip;
pub(crate) use schema::arguments_schema;
pub(crate) use shape::Signature;
pub(crate) use to_json::{Outcome, outcome};

#[cfg(test)]
mod tests;
