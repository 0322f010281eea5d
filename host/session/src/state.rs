//! The states of a task. Pure: a transition is accepted or refused, nothing else happens here.

/// Where a task stands. The names are A2A's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Taken, not begun.
    Submitted,
    /// A turn runs.
    Working,
    /// It waits for an answer from whoever sent it.
    InputRequired,
    /// It ended with an answer.
    Completed,
    /// It ended without one.
    Failed,
    /// It was cancelled.
    Canceled,
    /// It was not taken.
    Rejected,
}

/// A refused transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Where the task is and stays.
    pub from: TaskState,
    /// Where it was to go.
    pub to: TaskState,
}

impl TaskState {
    /// Whether the task is over. A state that is over never changes: the first one wins.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Goes to `to`, or says why not.
    ///
    /// # Errors
    /// The transition is not one of the task's life: out of a terminal state, back to `Submitted`, or a rejection of work already begun.
    pub fn go(self, to: Self) -> Result<Self, Transition> {
        let allowed = match (self, to) {
            (Self::Submitted, Self::Working | Self::Rejected | Self::Canceled | Self::Failed) => true,
            (Self::Working, next) => !matches!(next, Self::Submitted | Self::Rejected | Self::Working),
            (Self::InputRequired, Self::Working | Self::Canceled | Self::Failed) => true,
            _ => false,
        };
        if allowed {
            Ok(to)
        } else {
            Err(Transition { from: self, to })
        }
    }

    /// The state as it is written in the trace and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input-required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Rejected => "rejected",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TaskState::*, *};
    use proptest::prelude::*;

    const ALL: [TaskState; 7] = [Submitted, Working, InputRequired, Completed, Failed, Canceled, Rejected];

    #[test]
    fn a_task_works_asks_goes_on_and_completes() {
        let path = [Working, InputRequired, Working, Completed];
        assert_eq!(path.into_iter().try_fold(Submitted, TaskState::go), Ok(Completed));
    }

    proptest! {
        #[test]
        fn whatever_is_tried_the_first_terminal_state_stays(steps in proptest::collection::vec(0..ALL.len(), 0..40)) {
            let mut state = Submitted;
            let mut ended = None;
            for step in steps {
                state = state.go(ALL[step]).unwrap_or(state);
                if state.is_terminal() {
                    prop_assert_eq!(*ended.get_or_insert(state), state);
                }
            }
        }
    }
}
