//! The conversation so far, kept valid: every call has its result, roles alternate as providers want them.

use std::collections::HashSet;

use capsule_api::{
    ContentBlock, Error, Message, ResumeState,
    serde_json::{self, json},
};

use crate::codes;

/// Version of the resume state's data.
const VERSION: u32 = 1;
/// What the model is told about a call that a cancel ended, or that never ran.
pub(crate) const CANCELLED: &str = "cancelled";

/// Messages in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct History {
    messages: Vec<Message>,
}

/// The end of a history at some moment: messages, and blocks of the last one if it is the user's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    messages: usize,
    content: usize,
}

impl History {
    /// Goes on from what [`History::resume_state`] gave.
    ///
    /// # Errors
    /// It is another transport's, of another version, or not what it should be.
    pub(crate) fn resumed(state: &ResumeState) -> Result<Self, Error> {
        let lost = |why: String| Error::new(&codes::CONVERSATION_LOST, format!("the kept conversation {why}"));
        if state.transport != "http" {
            return Err(lost(format!("belongs to the transport `{}`", state.transport)));
        }
        if state.version != VERSION {
            return Err(lost(format!(
                "has version {}; this program reads {VERSION}",
                state.version
            )));
        }
        let messages = serde_json::from_value(state.data["messages"].clone());
        let messages = messages.map_err(|error| lost("cannot be read".to_owned()).caused_by(error))?;
        let mut history = Self { messages };
        history.close_open_calls();
        Ok(history)
    }

    /// What another process needs to go on. Valid also in the middle of a turn.
    pub(crate) fn resume_state(&self) -> Option<ResumeState> {
        let mut whole = self.clone();
        whole.close_open_calls();
        (!whole.messages.is_empty()).then(|| ResumeState {
            transport: "http".to_owned(),
            version: VERSION,
            data: json!({"messages": whole.messages}),
        })
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// A place to [`History::rewind`] to.
    pub(crate) fn mark(&self) -> Mark {
        let content = match self.messages.last() {
            Some(Message::User { content }) => content.len(),
            _ => 0,
        };
        Mark {
            messages: self.messages.len(),
            content,
        }
    }

    /// Takes back everything since the mark.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.messages.truncate(mark.messages);
        if let Some(Message::User { content }) = self.messages.last_mut() {
            content.truncate(mark.content);
        }
    }

    /// Whether the model has answered anything since the mark.
    pub(crate) fn answered_since(&self, mark: Mark) -> bool {
        let since = self.messages.get(mark.messages..).unwrap_or_default();
        since.iter().any(|message| matches!(message, Message::Assistant { .. }))
    }

    /// The ids of all calls.
    pub(crate) fn call_ids(&self) -> impl Iterator<Item = String> + '_ {
        self.messages.iter().flat_map(calls_of).map(str::to_owned)
    }

    /// Adds what the user says. It joins a message of the user's that was never answered.
    pub(crate) fn user(&mut self, mut content: Vec<ContentBlock>) {
        self.close_open_calls();
        match self.messages.last_mut() {
            Some(Message::User { content: unanswered }) => unanswered.append(&mut content),
            _ => self.messages.push(Message::User { content }),
        }
    }

    /// Adds what the model says. It joins an answer that the provider paused. An answer without content is none.
    pub(crate) fn assistant(&mut self, mut content: Vec<ContentBlock>) {
        content.retain(|block| !matches!(block, ContentBlock::Text { text } if text.is_empty()));
        if content.is_empty() {
            return;
        }
        self.close_open_calls();
        match self.messages.last_mut() {
            Some(Message::Assistant { content: paused }) => paused.append(&mut content),
            _ => self.messages.push(Message::Assistant { content }),
        }
    }

    /// Adds an answer that the output limit cut: its text. Reasoning that leads nowhere could not be sent back.
    pub(crate) fn truncated(&mut self, mut content: Vec<ContentBlock>) {
        while content
            .last()
            .is_some_and(|block| !matches!(block, ContentBlock::Text { text } if !text.is_empty()))
        {
            content.pop();
        }
        self.assistant(content);
    }

    /// Adds the result of a call.
    pub(crate) fn result(&mut self, id: &str, is_error: bool, text: String) {
        self.messages.push(Message::Tool {
            tool_call_id: id.to_owned(),
            is_error,
            content: vec![ContentBlock::Text { text }],
        });
    }

    /// Gives every call without a result one that says it was cancelled.
    pub(crate) fn close_open_calls(&mut self) {
        let Some(at) = self
            .messages
            .iter()
            .rposition(|m| matches!(m, Message::Assistant { .. }))
        else {
            return;
        };
        let answered: HashSet<&str> = self.messages[at + 1..]
            .iter()
            .filter_map(|message| match message {
                Message::Tool { tool_call_id, .. } => Some(tool_call_id.as_str()),
                _ => None,
            })
            .collect();
        let open = calls_of(&self.messages[at]).filter(|id| !answered.contains(id));
        let open: Vec<String> = open.map(str::to_owned).collect();
        for id in open {
            self.result(&id, true, CANCELLED.to_owned());
        }
    }
}

fn calls_of(message: &Message) -> impl Iterator<Item = &str> {
    let content: &[ContentBlock] = match message {
        Message::Assistant { content } => content,
        _ => &[],
    };
    content.iter().filter_map(|block| match block {
        ContentBlock::ToolCall { id, .. } => Some(id.as_str()),
        _ => None,
    })
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
