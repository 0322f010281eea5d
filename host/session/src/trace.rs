//! The trace: one JSON object per line, `{v, seq, ts, task, kind, …}`. `docs/trace.md` describes every kind.

mod record;
mod writer;

pub use record::{Capture, Record, records, redacted};
pub use writer::TraceWriter;
