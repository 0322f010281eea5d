//! What the provider does, request by request.

use std::path::Path;

use http::HeaderValue;
use serde::{Deserialize, Serialize};

use crate::{Answer, Fault, Reply};

/// An ordered list of steps: the n-th valid model request gets the n-th step.
///
/// Requests that the provider refuses (see [`crate::Provider::violations`]) and requests that are
/// not model requests take no step.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    pub(crate) steps: Vec<Step>,
    #[serde(default)]
    pub(crate) exhausted: Exhausted,
    #[serde(default)]
    pub(crate) allow_non_streaming: bool,
}

/// What one model request gets.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A model's answer, delivered in full.
    Reply(Reply),
    /// Something that goes wrong.
    Fault(Fault),
}

/// What happens after the last step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exhausted {
    /// An error with status 500 that names the number of requests; counted in
    /// [`crate::Provider::overrun`].
    #[default]
    Error,
    /// The last step again, for ever.
    RepeatLast,
    /// The script again from its first step.
    Restart,
}

/// Why a script could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read the script {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The text is not a script; the message has line and column.
    #[error("not a script: {0}")]
    Parse(#[from] serde_json::Error),
}

impl Script {
    /// A script without steps.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step: a [`Reply`], a [`Fault`], an [`Answer`] or a [`Step`].
    #[must_use]
    pub fn then(mut self, step: impl Into<Step>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// Repeats the last step for every further request.
    #[must_use]
    pub fn repeat_last(mut self) -> Self {
        self.exhausted = Exhausted::RepeatLast;
        self
    }

    /// Starts over after the last step.
    #[must_use]
    pub fn forever(mut self) -> Self {
        self.exhausted = Exhausted::Restart;
        self
    }

    /// Answers a request without `stream: true` with one JSON message instead of refusing it.
    /// Some clients ask so as their last resort after cut streams.
    #[must_use]
    pub fn allow_non_streaming(mut self) -> Self {
        self.allow_non_streaming = true;
        self
    }

    /// Reads a script from JSON text.
    ///
    /// # Errors
    /// [`LoadError::Parse`] for text that is not a script; unknown keys are errors.
    pub fn from_json(text: &str) -> Result<Self, LoadError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Reads a script from a JSON file.
    ///
    /// # Errors
    /// [`LoadError::Read`] and [`LoadError::Parse`].
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let text = std::fs::read_to_string(path).map_err(|source| LoadError::Read {
            path: path.display().to_string(),
            source,
        })?;
        Self::from_json(&text)
    }

    /// What HTTP could not carry: a status out of range, a header that is none.
    pub(crate) fn flaw(&self) -> Option<String> {
        let mut steps = self.steps.iter().enumerate();
        steps.find_map(|(at, step)| Some(format!("step {at}: {}", step.flaw()?)))
    }

    /// The step of the request with this number (from 0), or none when the script is over.
    pub(crate) fn step(&self, number: usize) -> Option<&Step> {
        match self.exhausted {
            Exhausted::Error => self.steps.get(number),
            Exhausted::RepeatLast => self.steps.get(number).or_else(|| self.steps.last()),
            Exhausted::Restart => number.checked_rem(self.steps.len()).and_then(|at| self.steps.get(at)),
        }
    }
}

impl Step {
    fn flaw(&self) -> Option<String> {
        match self {
            Self::Fault(Fault::Answer(answer)) => answer.flaw(),
            Self::Reply(reply)
            | Self::Fault(
                Fault::HangBeforeHeaders(reply)
                | Fault::Cut { reply, .. }
                | Fault::Stall { reply, .. }
                | Fault::ErrorEvent { reply, .. },
            ) => {
                let content_type = reply.content_type.as_deref()?;
                let sound = HeaderValue::from_str(content_type).is_ok();
                (!sound).then(|| format!("not a content type: {content_type:?}"))
            }
            Self::Fault(Fault::CloseBeforeHeaders(_)) => None,
        }
    }
}

impl From<Reply> for Step {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl From<Fault> for Step {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Answer> for Step {
    fn from(answer: Answer) -> Self {
        Self::Fault(Fault::Answer(answer))
    }
}
