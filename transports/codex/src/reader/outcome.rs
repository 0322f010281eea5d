//! How a run ended: exit, terminal event and its error, all together.

use capsule_api::{Code, Error, Outcome, Retry};
use capsule_transport_process::Ending;
use serde_json::Value;

use super::{Answer, Reader, wire};
use crate::codes;

impl Reader {
    /// The run's outcome, from all that was read and the exit. `stderr` is the end of what the CLI wrote there.
    pub(crate) fn outcome(&self, ending: &Ending, stderr: &str) -> Result<Outcome, Error> {
        let told = |error: Error| ending.tell(error, stderr);
        let Some(turn) = &self.end else {
            return Err(told(self.no_terminal_event(ending, stderr)));
        };
        let error = turn.error.clone().unwrap_or_default();
        match turn.status.as_str() {
            "completed" => self.completed(ending).map_err(told),
            "failed" => match cut(&error, &self.answer) {
                Some((_, outcome)) => Ok(outcome),
                None => Err(told(error_of(&error))),
            },
            other => {
                let message = format!(
                    "the CLI ended the turn as `{other}`, which nobody asked for: {}",
                    error.message
                );
                Err(told(Error::new(&codes::FAILED, message)))
            }
        }
    }

    fn no_terminal_event(&self, ending: &Ending, stderr: &str) -> Error {
        // The CLI refuses its arguments on stderr alone.
        let refusal = [
            "unknown configuration field",
            "Unknown feature flag",
            "unexpected argument",
        ];
        let refused = stderr
            .lines()
            .find(|line| refusal.iter().any(|word| line.contains(word)));
        if let (Some(line), None) = (refused, &self.thread) {
            return Error::new(&codes::CONFIG, format!("{}: {line}", self.expected.peer));
        }
        let how = ending.words();
        Error::new(
            &codes::NO_RESULT,
            format!("the CLI ended without a terminal event ({how})"),
        )
    }

    fn completed(&self, ending: &Ending) -> Result<Outcome, Error> {
        if self.usage.requests == 0 {
            return Err(Error::new(
                &codes::NOT_ASKED,
                "the CLI completed the turn without a model request",
            ));
        }
        match ending {
            Ending::Exited(0) | Ending::Stayed => Ok(Outcome::Completed {
                text: self.answer.text(),
            }),
            ended => Err(exit_after_success(&ended.words())),
        }
    }
}

/// An answer that its limit or a filter cut short: why, and the outcome.
pub(super) fn cut(error: &wire::TurnError, answer: &Answer) -> Option<(&'static str, Outcome)> {
    let details = error.additional_details.as_deref().unwrap_or_default();
    let reason = [error.message.as_str(), details].into_iter().find_map(|text| {
        let (_, reason) = text.split_once("Incomplete response returned, reason: ")?;
        Some(reason.trim())
    });
    let refused = matches!(
        error.codex_error_info.as_str(),
        Some("cyberPolicy" | "bioPolicy" | "misalignmentPolicyViolation")
    );
    match reason {
        Some("max_output_tokens") => Some(("max_tokens", Outcome::Truncated { partial: answer.text() })),
        Some("content_filter") => Some(("refusal", Outcome::Refused { text: answer.text() })),
        _ if refused => Some(("refusal", Outcome::Refused { text: answer.text() })),
        _ => None,
    }
}

/// The error of a failed request or turn.
pub(super) fn error_of(error: &wire::TurnError) -> Error {
    let (code, status) = class(error);
    let later = [&codes::RATE_LIMITED, &codes::OVERLOADED, &codes::NETWORK].contains(&code);
    let words = body_message(&error.message).unwrap_or_else(|| error.message.clone());
    let words: String = words.chars().take(2000).collect();
    let raised = Error::new(code, words).retry(if later { Retry::Later } else { Retry::Never });
    match status {
        Some(status) => raised.with("status", status.to_string()),
        None => raised,
    }
}

/// The kind of a failure, and the provider's status where it is told.
pub(super) fn class(error: &wire::TurnError) -> (&'static Code, Option<u16>) {
    let info = &error.codex_error_info;
    if let Some(word) = info.as_str() {
        return (by_word(word).unwrap_or_else(|| by_message(error)), None);
    }
    let status = info.as_object().and_then(|info| info.values().next());
    let status = status.and_then(|info| info["httpStatusCode"].as_u64());
    match status.and_then(|status| u16::try_from(status).ok()) {
        Some(status) => (by_status(status), Some(status)),
        None => (by_message(error), None),
    }
}

fn by_word(word: &str) -> Option<&'static Code> {
    Some(match word {
        "contextWindowExceeded" => &codes::CONTEXT,
        "usageLimitExceeded" | "sessionBudgetExceeded" => &codes::QUOTA,
        "rateLimitExceeded" => &codes::RATE_LIMITED,
        "serverOverloaded" | "internalServerError" | "flexUnavailable" | "policyCapacityUnavailable" => {
            &codes::OVERLOADED
        }
        "modelNotFound" => &codes::MODEL,
        "unauthorized" => &codes::AUTH,
        "badRequest" => &codes::BAD_REQUEST,
        _ => return None,
    })
}

fn by_status(status: u16) -> &'static Code {
    match status {
        401 | 403 => &codes::AUTH,
        402 => &codes::QUOTA,
        404 => &codes::MODEL,
        429 => &codes::RATE_LIMITED,
        408 | 500.. => &codes::OVERLOADED,
        _ => &codes::BAD_REQUEST,
    }
}

/// Where the CLI gives no code, its words decide; they are held to recorded runs.
fn by_message(error: &wire::TurnError) -> &'static Code {
    let details = error.additional_details.as_deref().unwrap_or_default();
    for text in [details, error.message.as_str()] {
        if let Some(status) = text.split_once("unexpected status ").map(|(_, rest)| rest)
            && let Some(Ok(status)) = status.split(' ').next().map(str::parse)
        {
            return by_status(status);
        }
        if text.starts_with("rate limit exceeded") {
            return &codes::RATE_LIMITED;
        }
        if text.contains("high demand") || text.contains("at capacity") {
            return &codes::OVERLOADED;
        }
        if text.starts_with("stream disconnected")
            || text.contains("error sending request")
            || text.starts_with("Connection failed")
        {
            return &codes::NETWORK;
        }
        if text.starts_with("Missing environment variable") {
            return &codes::AUTH;
        }
    }
    if body_message(&error.message).is_some() {
        return &codes::BAD_REQUEST;
    }
    if error.codex_error_info.is_object() {
        return &codes::NETWORK;
    }
    &codes::FAILED
}

/// The reason in a response's body, which is passed on as it is where the provider said 400.
fn body_message(text: &str) -> Option<String> {
    let body: Value = serde_json::from_str(text).ok()?;
    let message = body["error"]["message"].as_str().or_else(|| body["message"].as_str())?;
    Some(message.to_owned())
}

fn exit_after_success(how: &str) -> Error {
    Error::new(
        &codes::EXIT,
        format!("the CLI completed the turn and then ended with {how}"),
    )
}
