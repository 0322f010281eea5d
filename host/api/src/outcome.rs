//! How a turn ends when nothing failed.

/// A limit that the capsule set. Reaching one is an outcome, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Model requests (`max_turns`).
    Requests,
    /// Tokens of the whole session.
    Tokens,
    /// Wall-clock time of the turn.
    Wall,
    /// Time without a sign of life.
    Idle,
    /// Money.
    Cost,
    /// The same failing tool call, again and again.
    SameFailure,
}

impl Limit {
    /// The limit as it is written in the trace and in machine output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Wall => "wall",
            Self::Idle => "idle",
            Self::Cost => "cost",
            Self::SameFailure => "same_failure",
        }
    }
}

/// How a turn ended. Only `Completed` holds an answer; nothing that failed or was cut is ever delivered as one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The model ended its turn.
    Completed {
        /// The answer: the text of the last model request.
        text: String,
    },
    /// The agent needs an answer before it can go on.
    InputRequired {
        /// What it asks.
        prompt: String,
    },
    /// The model refused.
    Refused {
        /// What it said, possibly nothing.
        text: String,
    },
    /// The model was cut by its output limit.
    Truncated {
        /// What there was; not an answer.
        partial: String,
    },
    /// A limit of the capsule ended the turn.
    LimitReached {
        /// Which one.
        which: Limit,
    },
    /// [`crate::TurnIo::cancel`] ended the turn.
    Cancelled,
}

impl Outcome {
    /// The outcome's name as it is written in the trace and in machine output.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "completed",
            Self::InputRequired { .. } => "input_required",
            Self::Refused { .. } => "refused",
            Self::Truncated { .. } => "truncated",
            Self::LimitReached { .. } => "limit_reached",
            Self::Cancelled => "cancelled",
        }
    }
}
