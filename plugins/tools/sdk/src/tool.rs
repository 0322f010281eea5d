//! What a tool implements, and how its answer becomes a `tool-result`.

use crate::Json;
use crate::bindings::murmur::tool::run::{Status, ToolInput, ToolResult};

/// A tool. The host makes a fresh instance of the component for each call, so nothing is kept
/// between calls.
pub trait Tool {
    /// Does one call. `input` holds the arguments; a call without any gets `{}`.
    ///
    /// # Errors
    ///
    /// An [`Error`] where the tool cannot do what was asked: the model reads its text and can try
    /// otherwise. A panic ends the call too, with an error that a model can do little with.
    fn call(input: Json) -> Result<Output, Error>;
}

/// What a call did to the world; the host records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateEffect {
    /// It only looked.
    Read,
    /// It changed something.
    Mutate,
}

impl StateEffect {
    fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Mutate => "mutate",
        }
    }
}

/// The answer of a call that did what was asked.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Output {
    data: String,
    summary: Option<String>,
    truncated: bool,
    metadata: Vec<(String, String)>,
}

impl Output {
    /// An answer in plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            data: text.into(),
            summary: None,
            truncated: false,
            metadata: Vec::new(),
        }
    }

    /// An answer in JSON.
    pub fn json(value: &Json) -> Self {
        Self::text(value.to_string())
    }

    /// The answer as the model reads it; for tests of a tool.
    #[must_use]
    pub fn data(&self) -> &str {
        &self.data
    }

    /// One line for a person who watches. The model does not see it.
    pub fn summary(mut self, line: impl Into<String>) -> Self {
        self.summary = Some(line.into());
        self
    }

    /// Says that there is more than the answer holds.
    pub fn truncated(mut self, truncated: bool) -> Self {
        self.truncated = truncated;
        self
    }

    /// Says what the call did to the world (`state_effect`).
    pub fn state_effect(self, effect: StateEffect) -> Self {
        self.metadata("state_effect", effect.as_str())
    }

    /// Names what the call addressed (`resource_id`): a path, an address, an identifier.
    pub fn resource_id(self, id: impl Into<String>) -> Self {
        self.metadata("resource_id", id)
    }

    /// Adds an entry that the host passes on. A key given twice is there twice.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.push((key.into(), value.into()));
        self
    }
}

/// Why a call could not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: String,
    metadata: Vec<(String, String)>,
}

impl Error {
    /// A failure that `message` explains to the model: what is wrong, and what would be right.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            metadata: Vec::new(),
        }
    }

    /// A failure because a grant is missing: what it protects was not touched (`denied` in the
    /// metadata). The host records the call as denied, not as failed.
    #[must_use]
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(message).metadata("denied", "true")
    }

    /// Adds an entry that the host passes on. A key given twice is there twice.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.push((key.into(), value.into()));
        self
    }

    /// The same failure, with words before its explanation that say where it came up.
    #[must_use]
    pub fn within(mut self, context: &str) -> Self {
        self.message.insert_str(0, context);
        self
    }

    /// The explanation.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// One call through the component's export. Public for [`crate::export_tool!`] alone.
#[doc(hidden)]
pub fn run<T: Tool>(input: ToolInput) -> ToolResult {
    let arguments = match input.data.as_deref() {
        None | Some("") => Ok(Json::Object(serde_json::Map::new())),
        Some(text) => serde_json::from_str(text),
    };
    match arguments.map(T::call) {
        Ok(Ok(output)) => ToolResult {
            status: Status::Passed,
            summary: output.summary,
            data: Some(output.data),
            data_path: None,
            truncated: output.truncated,
            metadata: output.metadata,
        },
        Ok(Err(error)) => no_answer(Status::Failed, error.message, error.metadata),
        // The tool never saw the call, so it has not failed: it could not run.
        Err(error) => no_answer(
            Status::Error,
            format!("the arguments are not JSON: {error}"),
            Vec::new(),
        ),
    }
}

/// The message is in `data`, which the model reads, and its first line in `summary`.
fn no_answer(status: Status, message: String, metadata: Vec<(String, String)>) -> ToolResult {
    ToolResult {
        status,
        summary: message.lines().next().map(str::to_owned),
        data: Some(message),
        data_path: None,
        truncated: false,
        metadata,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    struct Probe;

    impl Tool for Probe {
        fn call(input: Json) -> Result<Output, Error> {
            match input.get("fail").and_then(Json::as_str) {
                Some("denied") => Err(Error::denied("no grant").metadata("resource_id", "x")),
                Some(_) => Err(Error::new("no\nreally not").metadata("resource_id", "x")),
                None => Ok(Output::json(&input)
                    .summary("seen")
                    .truncated(true)
                    .state_effect(StateEffect::Mutate)
                    .resource_id("r")),
            }
        }
    }

    fn call(data: Option<&str>) -> ToolResult {
        run::<Probe>(ToolInput {
            data: data.map(str::to_owned),
            log_path: None,
        })
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    /// The fields of a result: the generated type has no equality.
    type Fields = (Status, Option<String>, Option<String>, bool, Vec<(String, String)>);

    fn fields(result: ToolResult) -> Fields {
        assert_eq!(result.data_path, None);
        (
            result.status,
            result.summary,
            result.data,
            result.truncated,
            result.metadata,
        )
    }

    #[test]
    fn an_output_passes_with_all_it_says() {
        let expected = (
            Status::Passed,
            Some("seen".to_owned()),
            Some(json!({"a": 1}).to_string()),
            true,
            vec![pair("state_effect", "mutate"), pair("resource_id", "r")],
        );
        assert_eq!(fields(call(Some(r#"{"a": 1}"#))), expected);
    }

    #[test]
    fn a_call_without_arguments_gets_an_empty_object() {
        assert_eq!(call(None).data.as_deref(), Some("{}"));
        assert_eq!(call(Some("")).data.as_deref(), Some("{}"));
    }

    #[test]
    fn an_error_fails_with_its_message_where_the_model_reads() {
        let expected = (
            Status::Failed,
            Some("no".to_owned()),
            Some("no\nreally not".to_owned()),
            false,
            vec![pair("resource_id", "x")],
        );
        assert_eq!(fields(call(Some(r#"{"fail": "yes"}"#))), expected);
    }

    #[test]
    fn a_denial_is_a_failure_that_says_so_in_its_metadata() {
        let expected = (
            Status::Failed,
            Some("no grant".to_owned()),
            Some("no grant".to_owned()),
            false,
            vec![pair("denied", "true"), pair("resource_id", "x")],
        );
        assert_eq!(fields(call(Some(r#"{"fail": "denied"}"#))), expected);
    }

    #[test]
    fn arguments_that_are_not_json_are_an_error_not_a_failure() {
        let result = call(Some("{"));
        assert_eq!(result.status, Status::Error);
        let message = result.data.expect("a message");
        assert!(message.starts_with("the arguments are not JSON: EOF"), "{message}");
    }
}
