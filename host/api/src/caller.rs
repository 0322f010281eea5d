//! Questions that a tool or an agent asks while it works.

use async_trait::async_trait;
use serde_json::Value;

/// A question to whoever sent the task.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What is asked, for a person to read.
    pub prompt: String,
    /// JSON Schema of an acceptable answer; `None` takes any text.
    pub schema: Option<Value>,
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// Nobody answered within the capsule's input time-out.
    TimedOut,
    /// The task was cancelled while it waited.
    Cancelled,
    /// The task came from somewhere that cannot be asked.
    NobodyThere,
}

/// The way back to whoever sent the task.
#[async_trait]
pub trait Caller: Send + Sync {
    /// Asks and waits. Deadlines and idle clocks of the task stop meanwhile. Cancel-safe: dropping it withdraws the question.
    async fn ask(&self, question: Question) -> Result<Value, NoAnswer>;
}

/// The caller of an unattended task: every question goes unanswered.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyThere;

#[async_trait]
impl Caller for NobodyThere {
    async fn ask(&self, _: Question) -> Result<Value, NoAnswer> {
        Err(NoAnswer::NobodyThere)
    }
}
