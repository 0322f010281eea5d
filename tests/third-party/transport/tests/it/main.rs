//! The conformance kit over `parrot`.
#![cfg(test)]

use capsule_api::{Registry, Settings, SystemClock, TransportDescriptor};
use capsule_transport_kit::{Fixture, Script, Stage, assert_conforms, async_trait, services};
use my_transport as _;

struct Mine;

const NO_MODEL: &str = "`parrot` has no model behind it that could do this";

#[async_trait]
impl Fixture for Mine {
    fn descriptor(&self) -> &'static TransportDescriptor {
        let linked = Registry::<TransportDescriptor>::linked().unwrap();
        linked.get("parrot").unwrap()
    }

    // A real transport starts a peer here that answers request n with `script.replies[n]`, and makes settings that lead to it.
    async fn stage(&self, script: Script) -> Stage {
        let stage = Stage::new(Settings::empty(), services(SystemClock));
        match script.replies.first() {
            Some(reply) => stage.input(reply.text()),
            None => stage,
        }
    }

    fn skips(&self) -> &[(&'static str, &'static str)] {
        &[
            ("a_call_runs_once_and_its_result_goes_back", NO_MODEL),
            ("a_tool_that_fails_does_not_end_the_turn", NO_MODEL),
            ("an_unknown_tool_does_not_end_the_turn", NO_MODEL),
            ("a_cancel_stops_a_model_that_writes", NO_MODEL),
            ("a_cancel_stops_a_running_tool", NO_MODEL),
            ("a_cancel_works_while_the_reader_is_slow", NO_MODEL),
            ("a_cancelled_conversation_goes_on", NO_MODEL),
            ("a_dropped_turn_leaves_nothing_running", NO_MODEL),
            ("a_refused_credential_is_an_error", NO_MODEL),
            ("a_cut_stream_is_no_answer", NO_MODEL),
            ("a_dead_peer_is_no_answer", NO_MODEL),
            ("an_overloaded_provider_is_tried_again_or_reported", NO_MODEL),
            ("a_refusal_is_no_answer", NO_MODEL),
            ("a_truncated_reply_is_no_answer", NO_MODEL),
            ("a_second_turn_knows_the_first", NO_MODEL),
            ("two_conversations_do_not_mix", NO_MODEL),
        ]
    }
}

#[tokio::test]
async fn it_conforms() {
    assert_conforms(&Mine).await;
}
