//! What of a request a tape remembers, and how a request differs from it.

use capsule_api::{ContentBlock, Message, Request};
use serde::{Deserialize, Serialize};

/// The most of a text that a difference shows on each side, in characters.
const SHOWN: usize = 200;

/// The shape of a request. It holds no system prompt, no path and no key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shape {
    /// The roles of the messages: `user`, `assistant`, `tool`.
    pub(crate) roles: Vec<String>,
    /// The names of the tools on offer, sorted.
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    /// The text of what is new in the request: the tool results after the model's last message, or else what the user says. One per message.
    #[serde(default)]
    pub(crate) last: Vec<String>,
}

impl Shape {
    /// The shape of a request.
    pub(crate) fn of(request: &Request) -> Self {
        let mut tools: Vec<_> = request.tools.iter().map(|tool| tool.name.clone()).collect();
        tools.sort();
        let messages = &request.messages;
        let answered = messages
            .iter()
            .rposition(|message| matches!(message, Message::Assistant { .. }));
        let new = &messages[answered.map_or(0, |at| at + 1)..];
        Self {
            roles: messages.iter().map(|message| role(message).to_owned()).collect(),
            tools,
            last: new.iter().map(text).collect(),
        }
    }

    /// How `now` differs from this recorded shape in a way that makes the recorded answer wrong, for people to read; empty if it does not.
    ///
    /// What the user says may differ: a rehearsal is for trying things, and the tape answers what it has. So may the tools on offer, as
    /// long as nothing else shows a difference.
    pub(crate) fn differences(&self, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.roles != now.roles {
            found.push(format!(
                "the conversation has another shape\n  recorded: {}\n  now:      {}",
                self.roles.join(", "),
                now.roles.join(", ")
            ));
            return found;
        }
        if self.last.len() != now.last.len() {
            // A tape written by hand may leave the texts out; what is not recorded cannot differ.
            return found;
        }
        let new_roles = &now.roles[now.roles.len() - now.last.len()..];
        for (n, ((role, recorded), now)) in new_roles.iter().zip(&self.last).zip(&now.last).enumerate() {
            if role == "tool" && recorded != now {
                found.push(difference(n + 1, recorded, now));
            }
        }
        if !found.is_empty() && self.tools != now.tools {
            found.push(format!(
                "the tools on offer differ too\n  recorded: {}\n  now:      {}",
                self.tools.join(", "),
                now.tools.join(", ")
            ));
        }
        found
    }
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::User { .. } => "user",
        Message::Assistant { .. } => "assistant",
        Message::Tool { .. } => "tool",
    }
}

fn text(message: &Message) -> String {
    let (Message::User { content } | Message::Assistant { content } | Message::Tool { content, .. }) = message;
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Both texts from a little before where they part.
fn difference(n: usize, recorded: &str, now: &str) -> String {
    let same = recorded.chars().zip(now.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(20);
    let excerpt = |text: &str| {
        let start = if from > 0 { "…" } else { "" };
        let shown: String = text.chars().skip(from).take(SHOWN).collect();
        let end = if text.chars().count() > from + SHOWN { "…" } else { "" };
        format!("{start}{}{end}", shown.escape_debug())
    };
    format!(
        "the result of tool call {n} differs\n  recorded: {}\n  now:      {}",
        excerpt(recorded),
        excerpt(now)
    )
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
