//! Record, replay, test: a run as a tape, and what of it is still so.

mod compare;
mod drift;
mod file;
mod recorder;
mod replay;

pub(crate) use compare::{Rehearsed, compare};
pub(crate) use drift::Drift;
pub(crate) use file::{beside_what_is_there, check_place, read, write};
pub(crate) use recorder::TapeRecorder;
pub(crate) use replay::{OnDrift, check_recordable, is_tape, no_capsule, rehearsing, replaying};
