//! Conformance cases for any transport of Capsule; [`drivers`] has those for any driver.
//!
//! A transport's author supplies a [`Fixture`]: it turns a [`Script`] (what the model says, request by request) into settings and a
//! scripted peer. [`check`] then runs every case that the instance's declared capabilities call for; [`assert_conforms`] does the same
//! in a test. The cases use the kit's own in-memory tools ([`TestTools`]), so nothing but the contract is compiled.
//!
//! The parts are public because a transport's other tests need them too: [`Recorder`] is a turn's log, [`ManualClock`] a clock that the
//! test owns, [`NoSecrets`] and [`NoHttp`] stand for services that must not be used.
#![warn(missing_docs)]

mod cases;
pub mod drivers;
mod fixture;
mod recorder;
mod report;
mod script;
mod services;
mod stand;
mod tools;

pub use fixture::{Fixture, Seen, Stage};
pub use recorder::{Entry, Recorder};
pub use report::{Failure, Line, Report, Verdict, assert_conforms, check, check_at_once, check_case, names};
pub use script::{Fault, Item, Reply, Script, Stop};
pub use services::{ManualClock, NoHttp, NoSecrets, services};
pub use stand::{Stand, TestTurn};
pub use tools::{Meeting, TestTools};

pub use async_trait::async_trait;
