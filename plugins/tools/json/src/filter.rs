//! Runs a filter and writes what it gives.

use std::fmt::Display;

use capsule_guest::Error;
use jaq_core::compile::Undefined;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Exn, Vars, data};
use jaq_json::Val;

/// How much is written, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) raw: bool,
    pub(crate) results: u64,
    pub(crate) bytes: usize,
}

/// What a filter gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Results {
    /// One result a line, each with its line end.
    pub(crate) text: String,
    pub(crate) count: u64,
    /// Whether there was more.
    pub(crate) cut: bool,
}

type Filter = jaq_core::Filter<data::JustLut<Val>>;

/// Runs the filter over each value in turn.
///
/// # Errors
///
/// A sentence for the model: what is wrong with the filter and where, or how it failed and after how many results.
pub(crate) fn run(code: &str, values: Vec<Val>, bounds: Bounds) -> Result<Results, Error> {
    let filter = compile(code)?;
    let ctx = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut found = Results {
        text: String::new(),
        count: 0,
        cut: false,
    };
    for value in values {
        for result in filter.id.run((ctx.clone(), value)) {
            let value = result.map_err(|stopped| failure(stopped, found.count))?;
            let line = written(&value, bounds.raw);
            if found.count == bounds.results || found.text.len() + line.len() >= bounds.bytes {
                found.cut = true;
                if found.count > 0 {
                    return Ok(found);
                }
                return Err(Error::new(format!(
                    "the first result alone has {} bytes; at most {} are shown: filter for less",
                    line.len(),
                    bounds.bytes
                )));
            }
            found.text.push_str(&line);
            found.text.push('\n');
            found.count += 1;
        }
    }
    Ok(found)
}

fn written(value: &Val, raw: bool) -> String {
    match value {
        Val::TStr(bytes) if raw => String::from_utf8_lossy(bytes).into_owned(),
        value => value.to_string(),
    }
}

fn failure(stopped: Exn<'_, Val>, results: u64) -> Error {
    let why = match stopped.get_err() {
        Ok(error) => error.to_string(),
        Err(_) => "it calls halt, which has nothing to end here".to_owned(),
    };
    let (short, _) = files_core::text::cut(&why, 1000);
    Error::new(match results {
        0 => format!("the filter failed: {short}"),
        results => format!("the filter failed after {results} results: {short}"),
    })
}

fn compile(code: &str) -> Result<Filter, Error> {
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    // The variables of the environment are nobody's input.
    let funs = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(|(name, ..)| *name != "env");
    let arena = Arena::default();
    let modules = Loader::new(defs)
        .load(&arena, File { code, path: () })
        .map_err(|errors| {
            let wrong = errors.into_iter().find_map(|(file, error)| loading(file.code, error));
            wrong.unwrap_or_else(|| Error::new("the filter cannot be read"))
        })?;
    Compiler::default().with_funs(funs).compile(modules).map_err(|errors| {
        let all = errors
            .into_iter()
            .flat_map(|(file, undefined)| undefined.into_iter().map(move |one| (file.code, one)));
        let mut told = all.map(|(whole, (name, what))| {
            let arity = match what {
                Undefined::Filter(arity) if arity > 0 => format!(" with {arity} arguments"),
                _ => String::new(),
            };
            wrong(whole, name, format!("there is no {} '{name}'{arity}", what.as_str()))
        });
        told.next()
            .unwrap_or_else(|| Error::new("the filter cannot be compiled"))
    })
}

/// The first thing wrong in the text of a filter.
fn loading(whole: &str, error: load::Error<&str>) -> Option<Error> {
    match error {
        load::Error::Io(modules) => {
            let (name, _) = modules.into_iter().next()?;
            Some(wrong(
                whole,
                name,
                format!("there is no module '{name}': filters of this tool stand alone"),
            ))
        }
        load::Error::Lex(errors) => {
            let (expected, at) = errors.into_iter().next()?;
            Some(wrong(whole, at, unexpected(expected.as_str(), at)))
        }
        load::Error::Parse(errors) => {
            let (expected, at) = errors.into_iter().next()?;
            Some(wrong(whole, at, unexpected(expected.as_str(), at)))
        }
    }
}

fn unexpected(expected: impl Display, at: &str) -> String {
    match at.split_whitespace().next() {
        None => format!("it ends where {expected} should be"),
        Some(found) => {
            let (found, _) = files_core::text::cut(found, 40);
            format!("'{found}' is where {expected} should be")
        }
    }
}

/// An error with its place: `part` is a piece of `whole`, or a copy of one.
fn wrong(whole: &str, part: &str, what: String) -> Error {
    let offset = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    let Some(before) = whole.get(..offset) else {
        return Error::new(format!("the filter is wrong: {what}"));
    };
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    Error::new(format!("the filter is wrong in line {line}, column {column}: {what}"))
}
