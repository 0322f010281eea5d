//! Scripted peers for tests: a model provider that speaks real HTTP/1.1 on loopback and does
//! exactly what its script says, and a raw TCP client that misbehaves on purpose.
//!
//! ```no_run
//! # async fn story() -> std::io::Result<()> {
//! use capsule_fakes::{Provider, Reply, Script};
//! use serde_json::json;
//!
//! let script = Script::new()
//!     .then(Reply::text("Calling.").call("call-1", "hello", json!({"name": "Ada"})))
//!     .then(Reply::text("It said hello."));
//! let provider = Provider::start(script).await?;
//! // Point the client under test at `provider.url()`, run it, then:
//! provider.wait_for_requests(2).await;
//! provider.assert_clean();
//! provider.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! The script and the server know nothing of a wire format; `wire/` has one module per format.

#![warn(missing_docs)]

mod delivery;
mod fault;
mod gate;
mod kit;
mod program;
mod provider;
mod record;
mod reply;
mod script;
mod service;
mod tcp;
mod wire;

pub use fault::{Answer, AnswerBody, ApiError, Close, Fault, Position};
pub use gate::Gate;
pub use program::{claude, codex, program, python};
pub use provider::{MAX_BODY_BYTES, MAX_CONNECTIONS, MAX_RECORDED_BYTES, MAX_REQUESTS, Provider};
pub use record::{Outcome, RecordedRequest};
pub use reply::{Block, Call, Chunking, Pieces, Quirk, RawEvent, Reply, Usage};
pub use script::{Exhausted, LoadError, Script, Step};
pub use tcp::{Ending, MisbehavingClient};
