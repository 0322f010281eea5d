//! How a run ended: exit, terminal event, its flags and its reason, all together.

use capsule_api::{Error, Limit, Outcome, Retry};
use capsule_transport_process::Ending;

use super::{Failure, Reader, wire::RunResult};
use crate::codes;

impl Reader {
    /// The run's outcome, from all that was read and the exit. `stderr` is the end of what the CLI wrote there.
    pub(crate) fn outcome(&self, ending: &Ending, stderr: &str) -> Result<Outcome, Error> {
        let told = |error: Error| ending.tell(error, stderr);
        let Some(result) = &self.result else {
            let how = ending.words();
            return Err(told(Error::new(
                &codes::NO_RESULT,
                format!("the CLI ended without a terminal event ({how})"),
            )));
        };
        let good =
            !result.is_error && result.subtype == "success" && result.terminal_reason.as_deref() == Some("completed");
        if good {
            return self.completed(result, ending).map_err(told);
        }
        match result.subtype.as_str() {
            "error_max_turns" => Ok(Outcome::LimitReached { which: Limit::Requests }),
            "error_max_budget_usd" => Ok(Outcome::LimitReached { which: Limit::Cost }),
            _ => Err(told(self.failure(result))),
        }
    }

    fn completed(&self, result: &RunResult, ending: &Ending) -> Result<Outcome, Error> {
        if !self.started {
            return Err(Error::new(&codes::TOOLS, "the CLI never told its tools"));
        }
        if result.num_turns == 0 || self.requests == 0 {
            let message = format!("the CLI answered without a model request: {:?}", result.words());
            return Err(Error::new(&codes::NOT_ASKED, message));
        }
        match ending {
            Ending::Exited(0) | Ending::Stayed => Ok(Outcome::Completed {
                text: self.answer.text(),
            }),
            ended => Err(exit_after_success(&ended.words())),
        }
    }

    /// The failure behind a terminal event that is none of the above.
    fn failure(&self, result: &RunResult) -> Error {
        let words = result.words();
        if words.contains("No conversation found") {
            return Error::new(&codes::SESSION_LOST, words);
        }
        let failure = self.failure.clone().unwrap_or_default();
        let status = result.api_error_status.or(failure.status);
        let code = class(result, &failure, status);
        let error = Error::new(code, if words.is_empty() { failure.text } else { words });
        let error = match status {
            Some(status) => error.with("status", status.to_string()),
            None => error,
        };
        let later = [&codes::RATE_LIMITED, &codes::OVERLOADED, &codes::NETWORK].contains(&code);
        error.retry(if later { Retry::Later } else { Retry::Never })
    }
}

fn class(result: &RunResult, failure: &Failure, status: Option<u16>) -> &'static capsule_api::Code {
    if result.terminal_reason.as_deref() == Some("prompt_too_long") {
        return &codes::CONTEXT;
    }
    match (failure.class.as_str(), status) {
        ("authentication_failed", _) | (_, Some(401 | 403)) => &codes::AUTH,
        ("billing_error", _) | (_, Some(402)) => &codes::QUOTA,
        ("rate_limit", _) | (_, Some(429)) => &codes::RATE_LIMITED,
        ("model_not_found", _) | (_, Some(404)) => &codes::MODEL,
        (_, Some(500..)) => &codes::OVERLOADED,
        (_, Some(400..500)) | ("invalid_request", _) => &codes::BAD_REQUEST,
        ("server_error", None) => &codes::NETWORK,
        // Its last try is one without streaming; what the CLI says of that one names the cut stream that led to it.
        _ if result.words().contains("failed with: stream_truncated") => &codes::NETWORK,
        _ => &codes::FAILED,
    }
}

fn exit_after_success(how: &str) -> Error {
    Error::new(
        &codes::EXIT,
        format!("the CLI reported success and then ended with {how}"),
    )
}
