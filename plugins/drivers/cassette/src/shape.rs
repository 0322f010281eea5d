//! How a request differs from the recorded one.

use capsule_api::RequestShape;

/// The most of a text that a difference shows on each side, in characters.
const SHOWN: usize = 200;

/// How `now` differs from the recorded shape in a way that makes the recorded answer wrong, for people to read; empty if it does not.
///
/// What the user says may differ ([`other_input`] tells it): a rehearsal is for trying things, and the tape answers what it has. So may the tools on offer, as
/// long as nothing else shows a difference.
pub(crate) fn differences(recorded: &RequestShape, now: &RequestShape) -> Vec<String> {
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
    for (n, ((role, told), text)) in new_roles.iter().zip(&recorded.last).zip(&now.last).enumerate() {
        if role == "tool" && told != text {
            found.push(difference(n + 1, told, text));
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

fn difference(n: usize, recorded: &str, now: &str) -> String {
    format!("the result of tool call {n} differs\n{}", both(recorded, now))
}

/// Both texts from a little before where they part.
fn both(recorded: &str, now: &str) -> String {
    let same = recorded.chars().zip(now.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(20);
    let excerpt = |text: &str| {
        let start = if from > 0 { "…" } else { "" };
        let shown: String = text.chars().skip(from).take(SHOWN).collect();
        let end = if text.chars().count() > from + SHOWN { "…" } else { "" };
        format!("{start}{}{end}", shown.escape_debug())
    };
    format!("  recorded: {}\n  now:      {}", excerpt(recorded), excerpt(now))
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
