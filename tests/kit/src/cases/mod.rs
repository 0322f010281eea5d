//! The cases. Each is a story: a script, a turn, and what must hold of it.

mod cancel;
mod conversation;
mod descriptor;
mod failures;
mod text;
mod tools;

use std::{fmt::Debug, future::Future, pin::Pin};

use capsule_api::Capabilities;

use crate::{Failure, Fixture};

pub(crate) type Ran<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// What an instance must declare for a case to apply: the reason why it otherwise does not, and the test.
pub(crate) type Need = (&'static str, fn(&Capabilities) -> bool);

/// A conformance case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) needs: Option<Need>,
    pub(crate) run: for<'a> fn(&'a dyn Fixture) -> Ran<'a>,
}

macro_rules! cases {
    ($($module:ident :: $name:ident $($which:ident $need:ident)?),* $(,)?) => {
        /// All cases, in the order in which they run.
        pub(crate) const CASES: &[Case] = &[$(Case {
            name: stringify!($name),
            needs: cases!(@need $($which $need)?),
            run: |fixture| Box::pin($module::$name(fixture)),
        }),*];
    };
    (@need) => { None };
    (@need needs $need:ident) => {
        Some((concat!("the instance does not declare `", stringify!($need), "`"), |capabilities| capabilities.$need))
    };
    (@need without $need:ident) => {
        Some((concat!("the instance declares `", stringify!($need), "`"), |capabilities| !capabilities.$need))
    };
}

cases! {
    descriptor::the_descriptor_is_sane,
    descriptor::the_probe_finds_the_staged_peer_usable,
    text::the_answer_is_what_the_model_said,
    text::declared_streaming_is_real needs streams,
    text::undeclared_streaming_is_absent without streams,
    text::every_block_is_whole_in_the_end,
    text::reasoning_is_reported_and_no_part_of_the_answer needs thinking,
    text::requests_are_counted_from_one needs host_owns_loop,
    text::usage_is_reported needs usage,
    tools::a_call_runs_once_and_its_result_goes_back,
    tools::calls_of_one_reply_overlap needs parallel_tools,
    tools::a_tool_that_fails_does_not_end_the_turn,
    tools::an_unknown_tool_does_not_end_the_turn,
    tools::the_request_limit_is_exact needs host_owns_loop,
    cancel::a_turn_that_is_cancelled_already_does_nothing,
    cancel::a_cancel_stops_a_model_that_writes,
    cancel::a_cancel_stops_a_running_tool,
    cancel::a_cancel_works_while_the_reader_is_slow,
    cancel::a_cancelled_conversation_goes_on needs interrupts,
    cancel::a_dropped_turn_leaves_nothing_running,
    failures::a_refused_credential_is_an_error,
    failures::a_cut_stream_is_no_answer,
    failures::a_dead_peer_is_no_answer,
    failures::an_overloaded_provider_is_tried_again_or_reported,
    failures::a_refusal_is_no_answer,
    failures::a_truncated_reply_is_no_answer,
    conversation::a_second_turn_knows_the_first,
    conversation::a_conversation_resumes_in_another_object needs resumes,
    conversation::two_conversations_do_not_mix,
    conversation::nothing_is_said_or_left_after_the_end,
}

/// Fails the case unless the condition holds.
pub(crate) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::new(otherwise())) }
}

/// Fails the case unless the two are equal.
pub(crate) fn same<T: PartialEq + Debug + ?Sized>(what: &str, found: &T, wanted: &T) -> Result<(), Failure> {
    ensure(found == wanted, || {
        format!("{what}: found {found:?}, wanted {wanted:?}")
    })
}
