//! What went wrong, by the class that the host knows it by.

use capsule_guest::{Json, Output, json};

/// A request that got no answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    kind: &'static str,
    message: String,
    transient: bool,
    /// Seconds that the provider asks to wait.
    retry_after: Option<f64>,
}

impl Failure {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            transient: false,
            retry_after: None,
        }
    }

    /// It may pass.
    pub(crate) fn transient(mut self) -> Self {
        self.transient = true;
        self
    }

    /// The failure behind a status that is not 200.
    pub(crate) fn of_status(status: u16, retry_after: Option<f64>, body: &str) -> Self {
        let said: Json = body.parse().unwrap_or(Json::Null);
        let (kind, transient) = class(status, &said["error"]);
        let message = said["error"]["message"].as_str().unwrap_or(body.trim());
        let message = message.chars().take(500).collect::<String>();
        Self {
            kind,
            message: format!("status {status}: {message}"),
            transient,
            retry_after: retry_after.filter(|_| transient),
        }
    }

    /// An error in the middle of a stream.
    pub(crate) fn of_event(error: &Json) -> Self {
        let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let (kind, transient) = class(status.unwrap_or(500), error);
        let message = error["message"]
            .as_str()
            .unwrap_or("the stream broke off with an error");
        Self {
            transient,
            ..Self::new(kind, message)
        }
    }

    /// As the answer of a driver.
    pub(crate) fn output(self) -> Output {
        let mut error = json!({"kind": self.kind, "message": self.message});
        if let Some(seconds) = self.retry_after {
            error["retry_after"] = seconds.into();
        }
        let answer = Output::json(&json!({"stop_reason": "error", "content": [], "error": error}));
        match self.transient {
            true => answer.metadata("transient", "true"),
            false => answer,
        }
    }
}

/// The class of a status with what the API says beside it, and whether it may pass.
fn class(status: u16, error: &Json) -> (&'static str, bool) {
    let said = [&error["code"], &error["type"]];
    let says = |word: &str| {
        said.iter()
            .any(|value| value.as_str().is_some_and(|text| text.contains(word)))
    };
    match status {
        _ if says("insufficient_quota") || status == 402 => ("quota", false),
        _ if says("context_length_exceeded") => ("context_overflow", false),
        401 | 403 => ("auth", false),
        429 => ("rate_limited", true),
        408 | 409 | 425 => ("overloaded", true),
        501 | 505 => ("bad_request", false),
        500.. => ("overloaded", true),
        _ => ("bad_request", false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_a_class_and_may_pass_or_not() {
        let told = |status, body: &str| {
            let failure = Failure::of_status(status, Some(2.0), body);
            (failure.kind, failure.transient, failure.retry_after, failure.message)
        };
        let overflow = r#"{"error": {"message": "too long", "code": "context_length_exceeded"}}"#;
        let quota = r#"{"error": {"message": "no credit", "type": "insufficient_quota"}}"#;
        for (status, body, expected) in [
            (401, "no", ("auth", false, None, "status 401: no")),
            (429, "slow", ("rate_limited", true, Some(2.0), "status 429: slow")),
            (429, quota, ("quota", false, None, "status 429: no credit")),
            (400, overflow, ("context_overflow", false, None, "status 400: too long")),
            (404, "", ("bad_request", false, None, "status 404: ")),
            (503, "", ("overloaded", true, Some(2.0), "status 503: ")),
            (501, "", ("bad_request", false, None, "status 501: ")),
        ] {
            let (kind, transient, wait, message) = expected;
            assert_eq!(told(status, body), (kind, transient, wait, message.to_owned()));
        }
    }
}
