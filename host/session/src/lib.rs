//! A task from its input to its end: state, event log, cancel tree, kept contexts, trace.
//!
//! ```text
//! Agent::run(task, input, place)
//!   conversation = transport.open(spec)          resumed from the kept context, if there is one
//!   conversation.turn(input, io)                 io.events and io.tools both end in the task's log
//!   log --> readers                              terminal view, JSON lines, trace writer; each at its own pace
//!   report                                       outcome or error, usage, calls, residue
//! ```
#![warn(missing_docs)]

mod agent;
mod calls;
pub mod codes;
mod log;
mod places;
mod sink;
mod state;
mod store;
mod trace;

pub use agent::{Agent, CapsuleInfo, Prompting, Report, RunPlace, Task, Toolkit};
pub use calls::{CallTracker, Settled};
pub use log::{Entry, Read, Reader, RunStart, TaskLog, What};
pub use places::{Places, RunDir, RunState};
pub use state::{TaskState, Transition};
pub use store::KeptContext;
pub use trace::{Capture, Record, TraceWriter, records, redacted};
