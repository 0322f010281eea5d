//! The bytes of an answer as a list of writes, waits and cuts, and the HTTP body that performs it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;

use crate::record::Exchange;
use crate::{Chunking, Close, Gate, Outcome, Position};

/// The body of every answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, ScriptedCut>;

/// Makes the server end the connection, as scripted.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the script cuts the connection here")]
pub(crate) struct ScriptedCut;

/// One act of a delivery.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Write these bytes.
    Write(Bytes),
    /// Wait at the gate.
    Wait,
    /// End here.
    Cut(Close),
}

/// Cuts the events into writes and puts `interruption` at its position.
///
/// What the blocks say are the first `content` events.
pub(crate) fn plan(
    events: &[Bytes],
    content: usize,
    chunking: Chunking,
    interruption: Option<(Position, Act)>,
) -> VecDeque<Act> {
    let mut bounds = vec![0];
    for event in events {
        bounds.push(bounds[bounds.len() - 1] + event.len());
    }
    let all = Bytes::from(events.concat());
    let Some((position, act)) = interruption else {
        return writes(&all, 0, all.len(), &bounds, chunking).collect();
    };
    let at = match position {
        Position::Events(count) => bounds[count.min(events.len())],
        Position::Content => bounds[content.min(events.len())],
        Position::Bytes(count) => count.min(all.len()),
    };
    let ends = matches!(act, Act::Cut(_));
    let mut acts: VecDeque<Act> = writes(&all, 0, at, &bounds, chunking).collect();
    acts.push_back(act);
    if !ends {
        acts.extend(writes(&all, at, all.len(), &bounds, chunking));
    }
    acts
}

/// The writes for `all[from..to]`.
fn writes(all: &Bytes, from: usize, to: usize, bounds: &[usize], chunking: Chunking) -> impl Iterator<Item = Act> {
    let inner = bounds.iter().copied().filter(|&at| from < at && at < to);
    let mut cuts: Vec<usize> = match chunking {
        Chunking::PerEvent => inner.collect(),
        Chunking::Bytes(size) => (from..to).step_by(size.max(1)).skip(1).collect(),
        Chunking::Whole => Vec::new(),
    };
    cuts.push(to);
    let mut start = from;
    let mut acts = Vec::new();
    for cut in cuts {
        if start < cut {
            acts.push(Act::Write(all.slice(start..cut)));
        }
        start = cut;
    }
    acts.into_iter()
}

/// A body that is known as a whole.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// A body that performs the acts and records how the exchange ended.
pub(crate) fn perform(acts: VecDeque<Act>, gate: Gate, exchange: Exchange, reset: Arc<AtomicBool>) -> Body {
    let state = Delivery {
        acts,
        gate,
        exchange,
        reset,
    };
    StreamBody::new(stream::unfold(state, Delivery::next)).boxed_unsync()
}

struct Delivery {
    acts: VecDeque<Act>,
    gate: Gate,
    exchange: Exchange,
    reset: Arc<AtomicBool>,
}

impl Delivery {
    async fn next(mut self) -> Option<(Result<Frame<Bytes>, ScriptedCut>, Self)> {
        loop {
            // Pending once: the server then writes out what it holds, so each write leaves alone
            // and nothing from before a wait or a cut stays behind.
            tokio::task::yield_now().await;
            match self.acts.pop_front() {
                Some(Act::Write(bytes)) => return Some((Ok(Frame::data(bytes)), self)),
                Some(Act::Wait) => self.gate.pass().await,
                Some(Act::Cut(close)) => {
                    self.exchange.finish(Outcome::Cut);
                    if close == Close::EndOfBody {
                        return None;
                    }
                    self.reset.store(close == Close::Reset, Ordering::Release);
                    return Some((Err(ScriptedCut), self));
                }
                None => {
                    self.exchange.finish(Outcome::Answered);
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn events() -> Vec<Bytes> {
        vec![Bytes::from("abc"), Bytes::from("de"), Bytes::from("f")]
    }

    fn write(text: &str) -> Act {
        Act::Write(Bytes::from(text.to_owned()))
    }

    #[test]
    fn each_event_is_a_write() {
        let acts = plan(&events(), 3, Chunking::PerEvent, None);
        assert_eq!(acts, [write("abc"), write("de"), write("f")]);
    }

    #[test]
    fn byte_chunks_ignore_the_events() {
        let acts = plan(&events(), 3, Chunking::Bytes(4), None);
        assert_eq!(acts, [write("abcd"), write("ef")]);
    }

    #[test]
    fn a_stall_inside_an_event_splits_it() {
        let stall = Some((Position::Bytes(4), Act::Wait));
        let acts = plan(&events(), 3, Chunking::PerEvent, stall);
        let expected = [write("abc"), write("d"), Act::Wait, write("e"), write("f")];
        assert_eq!(acts, expected);
    }

    #[test]
    fn nothing_follows_a_cut() {
        let cut = Some((Position::Events(1), Act::Cut(Close::Close)));
        let acts = plan(&events(), 3, Chunking::Whole, cut);
        assert_eq!(acts, [write("abc"), Act::Cut(Close::Close)]);
    }

    #[test]
    fn a_position_beyond_the_end_is_the_end() {
        let cut = Some((Position::Events(9), Act::Cut(Close::Close)));
        let acts = plan(&events(), 3, Chunking::Whole, cut);
        assert_eq!(acts, [write("abcdef"), Act::Cut(Close::Close)]);
    }

    proptest! {
        #[test]
        fn no_plan_loses_or_moves_a_byte(
            events in vec("[a-zé]{0,9}", 0..6),
            size in 0..12_usize,
            at in 0..60_usize,
            by_events: bool,
            chunked: bool,
            cut: bool,
        ) {
            let all = events.concat();
            let bytes: Vec<Bytes> = events.iter().cloned().map(Bytes::from).collect();
            let chunking = if chunked { Chunking::Bytes(size) } else { Chunking::PerEvent };
            let (position, before) = if by_events {
                let count = at % 8;
                (Position::Events(count), events.iter().take(count).map(String::len).sum())
            } else {
                (Position::Bytes(at), at.min(all.len()))
            };
            let act = if cut { Act::Cut(Close::Close) } else { Act::Wait };

            let acts = plan(&bytes, 0, chunking, Some((position, act)));

            let is_write = |act: &&Act| matches!(act, Act::Write(_));
            let head: Vec<u8> = acts.iter().take_while(is_write).flat_map(written).collect();
            let whole: Vec<u8> = acts.iter().flat_map(written).collect();
            prop_assert_eq!(&head, &all.as_bytes()[..before]);
            prop_assert_eq!(&whole, if cut { &head } else { all.as_bytes() });
            prop_assert!(acts.iter().all(|act| *act != Act::Write(Bytes::new())));
        }
    }

    fn written(act: &Act) -> Vec<u8> {
        match act {
            Act::Write(bytes) => bytes.to_vec(),
            Act::Wait | Act::Cut(_) => Vec::new(),
        }
    }
}
