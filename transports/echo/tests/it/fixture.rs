//! What the conformance kit needs of this transport: its input *is* the script.

use capsule_api::{Registry, Settings, SystemClock, TransportDescriptor};
use capsule_transport_kit::{Fault, Fixture, Item, Reply, Script, Stage, Stop, async_trait, services};

pub(crate) struct Echo;

/// The input that makes `echo` do what the first reply of the script says.
fn input(reply: &Reply) -> String {
    let texts = reply.text();
    match reply.stop {
        Stop::Hang => format!("wait {texts}"),
        Stop::Refusal => "refuse".to_owned(),
        Stop::Fault(_) => "fail".to_owned(),
        Stop::Done | Stop::MaxTokens => {
            let calls = reply.items.iter().filter_map(|item| match item {
                Item::Call { alias, arguments } => Some(format!("call kit-{alias} {arguments}\n")),
                _ => None,
            });
            calls.collect::<String>() + &texts
        }
    }
}

const ONE_INPUT: &str = "`echo` does one thing per input: it has no second reply";
const NO_MODEL: &str = "`echo` has no provider that could do this";

#[async_trait]
impl Fixture for Echo {
    fn descriptor(&self) -> &'static TransportDescriptor {
        let linked = Registry::<TransportDescriptor>::linked().unwrap();
        linked.get("echo").unwrap()
    }

    async fn stage(&self, script: Script) -> Stage {
        let stage = Stage::new(Settings::empty(), services(SystemClock));
        match script
            .replies
            .iter()
            .find(|reply| reply.stop != Stop::Fault(Fault::Overloaded))
        {
            Some(reply) => stage.input(input(reply)),
            None => stage,
        }
    }

    fn skips(&self) -> &[(&'static str, &'static str)] {
        &[
            ("a_call_runs_once_and_its_result_goes_back", ONE_INPUT),
            ("a_tool_that_fails_does_not_end_the_turn", ONE_INPUT),
            ("an_unknown_tool_does_not_end_the_turn", ONE_INPUT),
            ("a_cancelled_conversation_goes_on", ONE_INPUT),
            ("a_second_turn_knows_the_first", ONE_INPUT),
            ("two_conversations_do_not_mix", ONE_INPUT),
            ("a_dropped_turn_leaves_nothing_running", ONE_INPUT),
            ("a_cut_stream_is_no_answer", ONE_INPUT),
            ("a_refused_credential_is_an_error", NO_MODEL),
            ("a_truncated_reply_is_no_answer", NO_MODEL),
            ("an_overloaded_provider_is_tried_again_or_reported", NO_MODEL),
        ]
    }
}
