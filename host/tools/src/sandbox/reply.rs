//! From the end of a call to what the model is shown.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use capsule_api::{ByteSize, CancelReason, Content, HumanDuration, NoAnswer, ToolReply, ToolStatus};
use wasmtime::Trap;
use wasmtime_wasi::I32Exit;

use super::{
    host::{Status, ToolResult, Unanswered},
    program::BadArguments,
    record::CallRecord,
};
use crate::Limits;

/// Metadata of a failed result that says a grant is missing.
const DENIED: (&str, &str) = ("denied", "true");
const CONTENT_TYPE: &str = "content_type";

/// Why the guest of a call was not even started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotStarted(pub(super) String);

/// How a call ended.
pub(super) enum Ended {
    Returned(ToolResult),
    /// A trap, or an error of the host's own around the guest.
    Stopped(wasmtime::Error),
    TimedOut,
    Cancelled(CancelReason),
}

/// The reply of the tool `name`.
pub(super) fn reply(name: &str, ended: Ended, record: &CallRecord, limits: &Limits) -> ToolReply {
    match ended {
        Ended::Returned(result) => returned(name, result, record, limits),
        Ended::Stopped(cause) => {
            let (status, what) = stopped(&cause, record);
            early(name, status, &what, record)
        }
        Ended::TimedOut => {
            let what = format!("timed out after {} (`limits.deadline`)", HumanDuration(limits.deadline));
            early(name, ToolStatus::TimedOut, &what, record)
        }
        Ended::Cancelled(reason) => early(name, ToolStatus::Cancelled, cancelled(reason), record),
    }
}

fn cancelled(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::Deadline => "was cancelled: the task's time is over",
        CancelReason::Limit => "was cancelled: a limit of the task was reached",
        CancelReason::Shutdown => "was cancelled: the host is ending",
        _ => "was cancelled",
    }
}

/// A reply to a call that gave no result of its own.
fn early(name: &str, status: ToolStatus, what: &str, record: &CallRecord) -> ToolReply {
    let mut text = format!("tool '{name}' {what}");
    if let Some(denied) = record.denied() {
        text.push_str(&format!("; before that, {denied}"));
    }
    let stderr = record.stderr_tail();
    if !stderr.is_empty() {
        text.push_str(&format!("\nend of its standard error:\n{stderr}"));
    }
    ToolReply::new(status, text)
}

pub(super) fn stopped(cause: &wasmtime::Error, record: &CallRecord) -> (ToolStatus, String) {
    if let Some(Unanswered(why)) = cause.downcast_ref() {
        let status = match why {
            NoAnswer::Cancelled => ToolStatus::Cancelled,
            _ => ToolStatus::Failed,
        };
        return (status, format!("failed: {}", Unanswered(*why)));
    }
    if let Some(why) = cause.downcast_ref::<NotStarted>() {
        return (ToolStatus::Failed, format!("failed: {why}"));
    }
    if let Some(why) = cause.downcast_ref::<BadArguments>() {
        let what = format!("was not run: the arguments do not fit its function: {why}");
        return (ToolStatus::Invalid, what);
    }
    if let Some(limit) = record.limit() {
        return (ToolStatus::Trapped, format!("was stopped: it ran into {limit}"));
    }
    if let Some(I32Exit(code)) = cause.downcast_ref() {
        return (
            ToolStatus::Trapped,
            format!("exited with code {code} in place of returning a result"),
        );
    }
    let what = match cause.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => "trapped: call stack exhausted (endless recursion?)".to_owned(),
        Some(trap) => format!("trapped: {trap}"),
        None => format!("was stopped: {}", cause.root_cause()),
    };
    (ToolStatus::Trapped, what)
}

fn returned(name: &str, result: ToolResult, record: &CallRecord, limits: &Limits) -> ToolReply {
    let mut metadata = result.metadata;
    if result.truncated {
        metadata.push(("truncated".into(), "true".into()));
    }
    let text = match (result.data, result.summary, result.data_path) {
        (Some(data), _, _) => data,
        (None, _, Some(path)) => {
            format!("the tool left its result in the file `{path}`, which this host does not read")
        }
        (None, Some(summary), None) => summary,
        (None, None, None) => "tool returned no data".into(),
    };
    let mut reply = ToolReply::new(ToolStatus::Passed, "");
    if matches!(result.status, Status::Passed) {
        let media = metadata
            .iter()
            .find(|(key, _)| key == CONTENT_TYPE)
            .map(|(_, value)| value.as_str());
        let (content, full_bytes) = content(text, media, limits.output);
        reply.content = vec![content];
        reply.full_bytes = full_bytes;
    } else {
        let said_denied = metadata
            .iter()
            .any(|(key, value)| (key.as_str(), value.as_str()) == DENIED);
        let mut why = format!("tool '{name}' failed: {text}");
        if let Some(denied) = record.denied() {
            why.push_str(&format!("\n({denied})"));
        }
        if let Some(limit) = record.limit() {
            why.push_str(&format!("\n(it ran into {limit})"));
        }
        let denied = said_denied || record.denied().is_some();
        reply.status = if denied { ToolStatus::Denied } else { ToolStatus::Failed };
        let (why, full_bytes) = cut(why, limits.output);
        reply.content = vec![Content::Text(why)];
        reply.full_bytes = full_bytes;
    }
    reply.metadata = bounded(metadata, limits.output);
    reply
}

/// What an entry of the metadata counts beside its texts: an empty one takes room, too.
const ENTRY: usize = 32;

/// The first entries of the metadata that fit the output limit together.
pub(super) fn bounded(metadata: Vec<(String, String)>, limit: u64) -> Vec<(String, String)> {
    let mut left = limit;
    let fits = |(key, value): &(String, String)| {
        let rest = left.checked_sub((key.len() + value.len() + ENTRY) as u64);
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    metadata.into_iter().take_while(fits).collect()
}

/// The content of a result, and its whole size where it was cut.
fn content(data: String, media_type: Option<&str>, limit: u64) -> (Content, Option<u64>) {
    let media = media_type.filter(|media| media.starts_with("image/") || media.starts_with("audio/"));
    // Half an image is none: over the limit, it is cut as the text that it is.
    let media = media.filter(|_| data.len() as u64 <= limit);
    let decoded = media.and_then(|media| Some((media.to_owned(), BASE64_STANDARD.decode(data.trim()).ok()?)));
    if let Some((media_type, data)) = decoded {
        let content = match media_type.starts_with("image/") {
            true => Content::Image { media_type, data },
            false => Content::Audio { media_type, data },
        };
        return (content, None);
    }
    let (text, full_bytes) = cut(data, limit);
    (Content::Text(text), full_bytes)
}

/// Cuts a text over the limit at a character, with a notice.
pub(super) fn cut(mut text: String, limit: u64) -> (String, Option<u64>) {
    let full = text.len() as u64;
    if full <= limit {
        return (text, None);
    }
    let at = text.floor_char_boundary(usize::try_from(limit).unwrap_or(usize::MAX));
    text.truncate(at);
    text.push_str(&format!(
        "\n[cut: the first {at} of {full} bytes; `limits.output` is {}]",
        ByteSize(limit)
    ));
    (text, Some(full))
}

#[cfg(test)]
mod tests;
