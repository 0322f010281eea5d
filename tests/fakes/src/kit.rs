//! The conformance kit's scripts, as this provider plays them.

use capsule_transport_kit as kit;

use crate::{Answer, Close, Pieces, Position, Reply, Script, Step};

/// Each reply of the kit becomes a step. What is to last (a refused credential, cut streams, a dead peer) is the last step for ever; a
/// dead peer is one that resets each connection in the middle of its answer.
impl From<&kit::Script> for Script {
    fn from(script: &kit::Script) -> Self {
        let steps = script.replies.iter().enumerate();
        let played = steps.fold(Self::new(), |played, (n, reply)| played.then(step(n, reply)));
        let lasting = |reply: &kit::Reply| {
            matches!(
                reply.stop,
                kit::Stop::Fault(kit::Fault::Auth | kit::Fault::Cut | kit::Fault::Crash)
            )
        };
        if script.replies.last().is_some_and(lasting) {
            played.repeat_last()
        } else {
            played
        }
    }
}

fn step(n: usize, reply: &kit::Reply) -> Step {
    let offered = kit::TestTools::offered();
    let mut said = Reply::new();
    for (at, item) in reply.items.iter().enumerate() {
        said = match item {
            kit::Item::Say(chunks) => said.and_text(pieces(chunks)),
            kit::Item::Think(chunks) => said.thinking(pieces(chunks), "seal"),
            kit::Item::Call { alias, arguments } => {
                let id = format!("toolu_{n}_{at}");
                // A tool that the kit does not offer is called all the same: that is the case's point.
                match offered.by_alias(alias) {
                    Some(_) => said.call(&id, alias, arguments.clone()),
                    None => said.call_raw_name(&id, alias, arguments.clone()),
                }
            }
        };
    }
    // All of the items, but not what ends the message.
    let items = Position::Content;
    match reply.stop {
        kit::Stop::Done => said.into(),
        kit::Stop::Refusal => said.stop("refusal").into(),
        kit::Stop::MaxTokens => said.stop("max_tokens").into(),
        kit::Stop::Hang => said.stall(items).into(),
        kit::Stop::Fault(kit::Fault::Overloaded) => Answer::error(529, "Overloaded").into(),
        kit::Stop::Fault(kit::Fault::Auth) => Answer::error(401, "invalid x-api-key").into(),
        kit::Stop::Fault(kit::Fault::Cut) => said.cut(items, Close::EndOfBody).into(),
        kit::Stop::Fault(kit::Fault::Crash) => said.cut(items, Close::Reset).into(),
    }
}

fn pieces(chunks: &[String]) -> Pieces {
    Pieces::Exactly(chunks.to_vec())
}
