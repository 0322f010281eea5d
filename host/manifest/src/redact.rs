//! Finds protected values in text, also where they are escaped for JSON or percent-encoded.

use std::{borrow::Cow, fmt::Write as _, ops::Range};

/// Shorter values are not searched for: they would take ordinary words out of every text.
const SHORTEST: usize = 6;

const MASK: &str = "[redacted]";

/// The values to find, in each of their spellings. Grows by the secrets of one manifest; each is kept once.
#[derive(Default)]
pub(crate) struct Patterns(Vec<String>);

impl Patterns {
    pub(crate) fn add(&mut self, value: &str) {
        if value.len() < SHORTEST {
            return;
        }
        for spelling in [
            value.to_owned(),
            json(value),
            percent(value, true),
            percent(value, false),
        ] {
            if !self.0.contains(&spelling) {
                self.0.push(spelling);
            }
        }
    }

    pub(crate) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut found: Vec<Range<usize>> = self.0.iter().flat_map(|value| occurrences(text, value)).collect();
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        // Values may overlap: what any of them covers is taken out, so that no tail of one is left over.
        found.sort_by_key(|range| (range.start, range.end));
        let mut shown = String::with_capacity(text.len());
        let mut done = 0;
        let mut hidden: Option<Range<usize>> = None;
        for range in found {
            match &mut hidden {
                Some(open) if range.start < open.end => open.end = open.end.max(range.end),
                _ => {
                    if let Some(open) = hidden.take() {
                        shown.push_str(&text[done..open.start]);
                        shown.push_str(MASK);
                        done = open.end;
                    }
                    hidden = Some(range);
                }
            }
        }
        if let Some(open) = hidden {
            shown.push_str(&text[done..open.start]);
            shown.push_str(MASK);
            done = open.end;
        }
        shown.push_str(&text[done..]);
        Cow::Owned(shown)
    }
}

/// Every occurrence, also those that overlap another of the same value.
fn occurrences<'a>(text: &'a str, value: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut from = 0;
    let step = value.chars().next().map_or(1, char::len_utf8);
    std::iter::from_fn(move || {
        let start = from + text.get(from..)?.find(value)?;
        from = start + step;
        Some(start..start + value.len())
    })
}

fn json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent(value: &str, upper: bool) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let written = match (plain, upper) {
            (true, _) => {
                encoded.push(char::from(byte));
                Ok(())
            }
            (false, true) => write!(encoded, "%{byte:02X}"),
            (false, false) => write!(encoded, "%{byte:02x}"),
        };
        written.expect("writing to a String does not fail");
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redact(values: &[&str], text: &str) -> String {
        let mut patterns = Patterns::default();
        values.iter().for_each(|value| patterns.add(value));
        patterns.redact(text).into_owned()
    }

    #[test]
    fn a_value_is_found_plain_escaped_and_encoded() {
        let value = "pass \"wörd\"/+";
        let encoded = "pass%20%22w%C3%B6rd%22%2F%2B";
        let text = format!("{value} | {} | {encoded} | {}", json(value), encoded.to_lowercase());
        assert_eq!(
            redact(&[value], &text),
            "[redacted] | [redacted] | [redacted] | [redacted]"
        );
    }

    #[test]
    fn overlapping_values_leave_no_tail() {
        assert_eq!(redact(&["abcdef", "abcdefgh"], "xabcdefghx"), "x[redacted]x");
        assert_eq!(redact(&["abcdef", "defghi"], "xabcdefghix"), "x[redacted]x");
        assert_eq!(redact(&["abcabc"], "abcabcabc"), "[redacted]");
        assert_eq!(redact(&["secret"], "secretsecret"), "[redacted][redacted]");
    }

    #[test]
    fn short_values_stay() {
        assert_eq!(redact(&["short", ""], "a short text"), "a short text");
    }

    proptest! {
        #[test]
        fn no_protected_value_is_left(value in "[a-z\"\\\\ö%]{6,12}", before: String, after: String) {
            let shown = redact(&[&value], &format!("{before}{value}{after}"));
            // The mask's own letters can make up no value with one of them at each side.
            let left = shown.replace(MASK, "\0").contains(&value);
            prop_assert!(!left, "{}", shown);
        }
    }
}
