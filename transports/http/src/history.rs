//! The conversation so far, kept valid: every call has its result, roles alternate as providers want them.

use std::collections::HashSet;

use capsule_api::{ContentBlock, Message};
use serde::{Deserialize, Serialize};

use crate::compact::{self, Plan};

/// What the model is told about a call that a cancel ended, or that never ran.
pub(crate) const CANCELLED: &str = "cancelled";

/// Messages in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct History {
    messages: Vec<Message>,
    /// The first block of the first message is a summary of what was before.
    summarised: bool,
    held: Option<Held>,
    /// Where the current turn begins.
    turn: Mark,
}

/// What the provider holds of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// The provider's name for it.
    pub(crate) id: String,
    /// How many messages it has.
    pub(crate) messages: usize,
}

/// The end of a history at some moment: messages, and blocks of the last one if it is the user's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mark {
    messages: usize,
    content: usize,
}

impl History {
    /// Goes on from messages that were kept.
    pub(crate) fn of(messages: Vec<Message>, summarised: bool, held: Option<Held>) -> Self {
        let mut history = Self {
            held: held.filter(|held| held.messages <= messages.len()),
            summarised: summarised && !messages.is_empty(),
            messages,
            turn: Mark::default(),
        };
        history.close_open_calls();
        history
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether it begins with a summary.
    pub(crate) fn summarised(&self) -> bool {
        self.summarised
    }

    /// What the provider holds of it.
    pub(crate) fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// The provider holds everything so far, under this name; `None`: it holds nothing. An answer that left nothing cannot be gone on from.
    pub(crate) fn hold(&mut self, id: Option<String>) {
        let answered = matches!(self.messages.last(), Some(Message::Assistant { .. }));
        self.held = id.filter(|id| answered && !id.is_empty()).map(|id| Held {
            id,
            messages: self.messages.len(),
        });
    }

    /// The messages that the provider does not have.
    pub(crate) fn unseen(&self) -> &[Message] {
        let seen = self.held.as_ref().map_or(0, |held| held.messages);
        self.messages.get(seen..).unwrap_or_default()
    }

    /// A turn begins with what the user says.
    pub(crate) fn begin(&mut self, content: Vec<ContentBlock>) {
        let sofar = match self.messages.last() {
            Some(Message::User { content }) => content.len(),
            _ => 0,
        };
        self.close_open_calls();
        self.turn = Mark {
            messages: self.messages.len(),
            content: sofar,
        };
        self.user(content);
    }

    /// Takes the turn back. What a summary holds of it stays there.
    pub(crate) fn rewind(&mut self) {
        self.messages.truncate(self.turn.messages);
        if let Some(Message::User { content }) = self.messages.last_mut() {
            content.truncate(self.turn.content);
        }
        let left = self.messages.len();
        self.held = self.held.take().filter(|held| held.messages <= left);
    }

    /// Puts a summary in the place of the older messages.
    pub(crate) fn compact(&mut self, plan: Plan, summary: &str) {
        let newer = self.messages.split_off(plan.cut);
        let mut first = vec![compact::block(summary)];
        let asked = plan.asked.and_then(|at| match self.messages.get(at) {
            // A summary that is there already went into the new one.
            Some(Message::User { content }) => content.get(usize::from(at == 0 && self.summarised)..),
            _ => None,
        });
        first.extend(asked.unwrap_or_default().iter().cloned());
        let mut newer = newer.into_iter().peekable();
        let merged = matches!(newer.peek(), Some(Message::User { .. }));
        if let (true, Some(Message::User { content })) = (merged, newer.peek()) {
            first.extend(content.iter().cloned());
            newer.next();
        }
        self.turn = self.turn.after(plan.cut, merged);
        self.messages = std::iter::once(Message::User { content: first }).chain(newer).collect();
        self.summarised = true;
        self.held = None;
    }

    /// Whether the model has answered anything in this turn.
    pub(crate) fn answered(&self) -> bool {
        let since = self.messages.get(self.turn.messages..).unwrap_or_default();
        since.iter().any(|message| matches!(message, Message::Assistant { .. }))
    }

    /// The ids of all calls.
    pub(crate) fn call_ids(&self) -> impl Iterator<Item = String> + '_ {
        self.messages.iter().flat_map(calls_of).map(str::to_owned)
    }

    /// Adds what the user says. It joins a message of the user's that was never answered.
    fn user(&mut self, mut content: Vec<ContentBlock>) {
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

impl Mark {
    /// The same place once the messages before `cut` are one; `merged` where that one is also the message at `cut`.
    fn after(self, cut: usize, merged: bool) -> Self {
        // The turn's first message: the user's, which may have joined one that was there.
        let first = self.messages - usize::from(self.content > 0);
        if first > cut {
            return Self {
                messages: self.messages - cut + usize::from(!merged),
                content: self.content,
            };
        }
        // The turn begins in the message that has the summary, or before it.
        let joined = if first == cut { self.content } else { 0 };
        Self {
            messages: 1,
            content: 1 + joined,
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
