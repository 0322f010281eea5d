//! Errors of a component that did not answer, or says that it could not.

use std::time::Duration;

use capsule_api::{Code, ComponentEnd, ComponentReply, Error, Retry, serde_json::Value};

use crate::codes;

/// The classes that `error.kind` can name.
const CLASSES: [(&str, &Code); 8] = [
    ("auth", &codes::AUTH),
    ("rate_limited", &codes::RATE_LIMITED),
    ("overloaded", &codes::TRANSIENT),
    ("quota", &codes::QUOTA),
    ("context_overflow", &codes::CONTEXT),
    ("bad_request", &codes::BAD_REQUEST),
    ("network", &codes::NETWORK),
    ("conversation_lost", &codes::CONVERSATION_LOST),
];

/// The error of a call that did not return.
pub(crate) fn ended(reply: &ComponentReply) -> Option<Error> {
    let (code, what) = match &reply.end {
        ComponentEnd::Trapped(what) => (&codes::TRAPPED, format!("the driver's component {what}")),
        ComponentEnd::TimedOut(limit) => {
            let what = format!("the driver's component did not answer within {limit} (`component_limits.deadline`)");
            (&codes::TIMED_OUT, what)
        }
        ComponentEnd::Limit(what) => (&codes::LIMIT, format!("the driver's component {what}")),
        ComponentEnd::NotRun(what) => (&codes::NOT_RUN, format!("the driver's component was not run: {what}")),
        _ => return None,
    };
    Some(Error::new(code, with_what_was_seen(what, reply)))
}

/// The error that a component reports: a text, or an object with `message`, `kind` and `retry_after`.
pub(crate) fn reported(error: &Value, reply: &ComponentReply) -> Error {
    let said = match error {
        Value::String(text) => Some(text.as_str()),
        object => object["message"].as_str(),
    };
    let said = said
        .or(reply.summary.as_deref())
        .map(str::trim)
        .filter(|said| !said.is_empty());
    let what = format!("the driver's component reports: {}", said.unwrap_or("no reason"));
    let what = with_what_was_seen(what, reply);
    // Trying again would meet the same.
    if reply.denied.is_some() {
        return Error::new(&codes::DENIED, what);
    }
    if reply.limit.is_some() {
        return Error::new(&codes::LIMIT, what);
    }
    let transient = reply.metadata("transient") == Some("true");
    let class = CLASSES.iter().find(|(name, _)| error["kind"] == *name);
    let code = match class {
        Some((_, code)) => code,
        None if transient => &codes::TRANSIENT,
        None => &codes::FAILED,
    };
    Error::new(code, what).retry(match (transient, retry_after(error)) {
        (false, _) => Retry::Never,
        (true, Some(wait)) => Retry::After(wait),
        (true, None) => Retry::Later,
    })
}

fn retry_after(error: &Value) -> Option<Duration> {
    Duration::try_from_secs_f64(error["retry_after"].as_f64()?).ok()
}

/// Adds what the host saw: a denial, a limit, and the end of standard error.
pub(crate) fn with_what_was_seen(mut what: String, reply: &ComponentReply) -> String {
    if let Some(denied) = &reply.denied {
        what.push_str(&format!(" ({denied})"));
    }
    if let Some(limit) = &reply.limit {
        what.push_str(&format!(" (it ran into {limit})"));
    }
    if !reply.stderr.is_empty() {
        what.push_str(&format!("\nend of its standard error:\n{}", reply.stderr));
    }
    what
}
