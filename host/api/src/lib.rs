//! The contract of Capsule: what a transport, a driver and the host promise each other.
//!
//! One task flows through it like this:
//!
//! ```text
//! registry          TransportDescriptor::build(Settings, Services) -> Transport      once per process
//! Transport         probe() says whether it could run here; open(ConversationSpec)   once per conversation
//! Conversation      turn(Input, TurnIo) -> Outcome                                   once per input, never two at a time
//!   TurnIo.events   the transport says what the *model* did                          any time in the turn, never blocks
//!   TurnIo.tools    ToolDispatch::call(ToolCall) -> ToolReply                        any number at once; the host alone says what *ran*
//!   TurnIo.caller   a question to whoever sent the task                              may wait for minutes; limits stop meanwhile
//!   TurnIo.cancel   fires once, with a reason                                        `turn` then ends within `stops_within`
//! Conversation      health() after each turn, resume_state(), close(grace) -> Residue
//! ```
//!
//! **What may block.** Nothing may block a thread of the runtime. [`Events::emit`] never waits; a transport that reads from a
//! fast peer awaits [`Events::ready`] before it reads more.
//!
//! **What holds after a cancel.** Once [`TurnIo::cancel`] has fired, `turn` returns within
//! [`TransportDescriptor::stops_within`]; otherwise the host drops the future. A dropped turn must leave nothing running, and
//! [`Conversation::health`] must then say [`Health::Reopen`] or [`Health::Lost`]. Tool calls in flight are cancelled and recorded by the
//! dispatch, so a transport need not report them.
//!
//! **Who says what.** The transport reports the model ([`Event`]); the dispatch reports executions ([`RunEvent`]) under the same
//! [`CallId`]. So a call cannot appear twice, and a plugin cannot fake a result.
//!
//! A "turn" is one input to one end. What `max_turns` limits are model *requests*; events and documents call them so.
#![warn(missing_docs)]

mod caller;
mod cancel;
mod components;
mod driver;
mod error;
mod event;
mod fold;
mod outcome;
mod registry;
mod scratch;
mod services;
mod settings;
mod tape;
mod tool;
mod transport;
mod units;

pub use caller::{Caller, NoAnswer, NobodyThere, Question};
pub use cancel::{Cancel, CancelReason};
pub use components::{
    Component, ComponentCall, ComponentEnd, ComponentLimits, ComponentReply, ComponentSignal, ComponentSpec,
    Components, Credential,
};
pub use driver::{
    BlockDelta, BlockStart, BuiltDriver, ContentBlock, Decoder, Driver, DriverDescriptor, DriverOut, Frame, Framing,
    Message, Playback, Recorded, Request, Response, StopReason, StreamItem, ToolDefinition, Wire, WireFormat,
};
pub use error::{Code, Error, ErrorData, ErrorKind, Retry};
pub use event::{Billing, BlockId, BlockKind, CallId, Event, EventSink, Events, Usage};
pub use fold::{Fold, FoldedCall};
pub use outcome::{Limit, Outcome};
pub use registry::{Descriptor, Registry, codes as registry_codes, nearest};
pub use scratch::Scratch;
pub use services::{Clock, Elapsed, HttpBody, HttpClient, Secret, Secrets, Services, SystemClock, timeout};
pub use settings::{Places as SettingPlaces, Settings, codes as settings_codes};
pub use tape::{NotATape, Recorder, RequestShape, Tape, TapeEntry, TapedResponse, TapedStream};
pub use tool::{
    Annotations, Catalogue, Content, Progress, ProgressSink, RunEvent, RunSink, Tool, ToolCall, ToolContext,
    ToolDispatch, ToolReply, ToolSpec, ToolStatus,
};
pub use transport::{
    Capabilities, ContextWindow, Conversation, ConversationSpec, Health, Input, Limits, Part, Probe, Residue,
    ResumeState, Transport, TransportDescriptor, TurnIo,
};

pub use units::{ByteSize, HumanDuration, NotAQuantity};

pub use async_trait::async_trait;
pub use bytes::Bytes;
pub use http;
pub use serde_json;

#[doc(hidden)]
pub use inventory as __inventory;
