//! Chat Completions.

mod decode;
mod details;
mod encode;

pub(crate) use decode::decoder;
pub(crate) use encode::{Chat, result_text};
