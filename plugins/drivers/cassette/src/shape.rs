//! How a request differs from the recorded one.

use capsule_api::{ContentBlock, Message, Request, RequestShape, Secrets};

/// The most of a text that a difference shows on each side, in characters.
const SHOWN: usize = 200;
/// The most of a call's arguments that a difference shows, in characters.
const SHOWN_ARGUMENTS: usize = 120;

/// How `now` differs from the recorded shape in a way that makes the recorded answer wrong, for people to read; empty if it does not.
///
/// What the user says may differ ([`other_input`] tells it): a rehearsal is for trying things, and the tape answers what it has. So may the tools on offer, as
/// long as nothing else shows a difference. `calls` are those that the results of `now` answer, as [`calls`] tells them.
pub(crate) fn differences(recorded: &RequestShape, now: &RequestShape, calls: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    if recorded.roles != now.roles {
        found.push(format!(
            "the conversation has another shape\n  recorded: {}\n  now:      {}",
            recorded.roles.join(", "),
            now.roles.join(", ")
        ));
        return found;
    }
    if recorded.last.len() != now.last.len() {
        // A tape written by hand may leave the texts out; what is not recorded cannot differ.
        return found;
    }
    let new_roles = &now.roles[now.roles.len() - now.last.len()..];
    let mut calls = calls.iter();
    for ((role, told), text) in new_roles.iter().zip(&recorded.last).zip(&now.last) {
        if role != "tool" {
            continue;
        }
        let call = calls.next().map_or("a tool call", String::as_str);
        if told != text {
            found.push(format!("{call} answers something else\n{}", both(told, text)));
        }
    }
    if !found.is_empty() && recorded.tools != now.tools {
        found.push(format!(
            "the tools on offer differ too\n  recorded: {}\n  now:      {}",
            recorded.tools.join(", "),
            now.tools.join(", ")
        ));
    }
    found
}

/// The calls that the new results of a request answer, in their order: a tool's name and its arguments, without secrets and shortened.
pub(crate) fn calls(request: &Request, secrets: &dyn Secrets) -> Vec<String> {
    let asked = request
        .messages
        .iter()
        .rposition(|message| matches!(message, Message::Assistant { .. }));
    let (Some(Message::Assistant { content }), Some(new)) = (
        asked.and_then(|at| request.messages.get(at)),
        asked.and_then(|at| request.messages.get(at + 1..)),
    ) else {
        return Vec::new();
    };
    let told = |of: &str| {
        let call = content.iter().find_map(|block| match block {
            ContentBlock::ToolCall { id, name, input } if id == of => Some(format!("{name} {input}")),
            _ => None,
        });
        call.map_or_else(
            || "a tool call".to_owned(),
            |call| start_of(&secrets.redact(&call), SHOWN_ARGUMENTS),
        )
    };
    let results = new.iter().filter_map(|message| match message {
        Message::Tool { tool_call_id, .. } => Some(told(tool_call_id)),
        _ => None,
    });
    results.collect()
}

/// How what the user says differs from what was recorded, for people to read; `None` if it does not, or was not recorded.
pub(crate) fn other_input(recorded: &RequestShape, now: &RequestShape) -> Option<String> {
    if recorded.roles != now.roles || recorded.last.len() != now.last.len() {
        return None;
    }
    let new_roles = &now.roles[now.roles.len() - now.last.len()..];
    let mut said = new_roles.iter().zip(recorded.last.iter().zip(&now.last));
    let (_, (told, text)) = said.find(|(role, (told, text))| *role == "user" && told != text)?;
    let message = "the tape was recorded with another input, and answers that one";
    Some(format!("{message}\n{}", both(told, text)))
}

/// Both texts from a little before where they part.
fn both(recorded: &str, now: &str) -> String {
    let same = recorded.chars().zip(now.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(20);
    let excerpt = |text: &str| {
        let start = if from > 0 { "…" } else { "" };
        let shown: String = text.chars().skip(from).collect();
        format!("{start}{}", start_of(&shown, SHOWN))
    };
    format!("  recorded: {}\n  now:      {}", excerpt(recorded), excerpt(now))
}

/// The first characters of a text in one line; quotation marks stay as they are.
fn start_of(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for character in text.chars().take(most) {
        match character {
            '\'' | '"' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
