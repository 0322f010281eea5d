//! The Responses API.

mod decode;
mod encode;

pub(crate) use decode::decoder;
pub(crate) use encode::Responses;
