//! Chat Completions.

mod decode;
mod encode;

pub(crate) use decode::decoder;
pub(crate) use encode::{Chat, result_text};
