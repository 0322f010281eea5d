//! Rules about the source that no compiler checks. Each is a pure function over a description of the repository, which answers the
//! violations; `tests/it` applies them to this repository and shows of each that it can fail.
//!
//! The rules themselves are data: [`edges::RULES`], [`names::GENERIC`], [`files::TOP_LEVEL`].
#![warn(missing_docs)]

pub mod cases;
pub mod edges;
pub mod files;
pub mod names;
pub mod repository;
