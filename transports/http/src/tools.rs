//! Runs the calls of one answer.

use std::sync::Arc;

use capsule_api::{Catalogue, Content, ToolCall, ToolDispatch, ToolReply};
use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::{answer::PlannedCall, stopwatch::Stopwatch};

/// What the model is told about one call.
pub(crate) struct Told {
    pub(crate) is_error: bool,
    pub(crate) text: String,
}

/// Runs `calls` through the dispatch, at most `parallel` at once, and fills `results` by position as they end.
///
/// A tool marked exclusive runs alone. Dropping the future drops the calls that run, which cancels them; nothing is detached.
pub(crate) async fn run(
    tools: &Arc<dyn ToolDispatch>,
    calls: &[PlannedCall],
    parallel: usize,
    watch: &Arc<Stopwatch>,
    results: &mut [Option<Told>],
) {
    let catalogue = tools.catalogue();
    let mut rest = 0..calls.len();
    while !rest.is_empty() {
        let end = group_end(catalogue, calls, rest.start);
        let mut waiting = (rest.start..end).map(|at| one(tools, &calls[at], at, watch));
        let mut running: FuturesUnordered<_> = waiting.by_ref().take(parallel.max(1)).collect();
        while let Some((at, told)) = running.next().await {
            results[at] = Some(told);
            running.extend(waiting.next());
        }
        rest.start = end;
    }
}

async fn one(tools: &Arc<dyn ToolDispatch>, call: &PlannedCall, at: usize, watch: &Arc<Stopwatch>) -> (usize, Told) {
    let name = tools.catalogue().name_of(&call.alias).to_owned();
    // Time in which the call waits for the caller is not the turn's.
    let followed = watch.follow();
    let mut call = ToolCall::new(call.id.clone(), name, call.input.clone());
    call.progress = Some(followed.sink());
    let reply = tools.call(call).await;
    (at, told(&reply))
}

/// Where the group of calls that may overlap ends.
fn group_end(catalogue: &Catalogue, calls: &[PlannedCall], start: usize) -> usize {
    let exclusive = |call: &PlannedCall| {
        let tool = catalogue.by_alias(&call.alias);
        tool.is_some_and(|tool| tool.annotations.exclusive)
    };
    if exclusive(&calls[start]) {
        return start + 1;
    }
    let next = calls[start..].iter().position(exclusive);
    next.map_or(calls.len(), |offset| start + offset)
}

/// A reply in words. Drivers carry text; what is none is named, so that the model knows it is missing.
fn told(reply: &ToolReply) -> Told {
    let pieces = reply.content.iter().map(|piece| match piece {
        Content::Text(text) => text.clone(),
        Content::Image { media_type, data } => not_shown("image", media_type, data.len()),
        Content::Audio { media_type, data } => not_shown("audio", media_type, data.len()),
        Content::Resource(value) => value.to_string(),
        _ => "[a result of a kind that cannot be shown]".to_owned(),
    });
    let mut text = pieces.collect::<Vec<_>>().join("\n");
    if text.is_empty()
        && let Some(structured) = &reply.structured
    {
        text = structured.to_string();
    }
    Told {
        is_error: reply.is_error(),
        text,
    }
}

fn not_shown(what: &str, media_type: &str, bytes: usize) -> String {
    format!("[{what}, {media_type}, {bytes} bytes: cannot be shown on this transport]")
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
