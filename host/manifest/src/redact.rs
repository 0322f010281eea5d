//! Finds protected values in text, also where they are escaped for JSON or percent-encoded.

use std::{borrow::Cow, fmt::Write as _, ops::Range};

/// Shorter values are not searched for: they would take ordinary words out of every text.
const SHORTEST: usize = 6;

/// A text that ends with at least so much of a value was cut within it. Less may well be an ordinary word.
const SHORTEST_START: usize = 8;

/// What stands where the rest of a text was cut off: the last one where it was cut within a character.
const CUTS: [&str; 3] = ["…", "...", "\u{fffd}"];

/// What an error may put behind a text that was cut, to close its quotation.
const CLOSING: [char; 7] = ['`', '"', '\'', ')', ']', '}', '.'];

const MASK: &str = "[redacted]";

/// The values to find, in each of their spellings. Grows by the secrets of one manifest; each is kept once.
#[derive(Default)]
pub(crate) struct Patterns(Vec<String>);

impl Patterns {
    /// Adds a value as it is, and without the white space around it: a key from a file ends with a newline, and a header is sent without.
    pub(crate) fn add(&mut self, value: &str) {
        self.add_spellings(value);
        self.add_spellings(value.trim());
    }

    fn add_spellings(&mut self, value: &str) {
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

    /// The text without the values, and without the start of one in which it was cut off.
    pub(crate) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for value in &self.0 {
            found.extend(occurrences(text, value));
            found.extend(starts(text, value));
        }
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

/// Where the text was cut off within the value: the longest start of it that the end or a sign of a cut follows.
fn starts<'a>(text: &'a str, value: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let head = (SHORTEST_START..value.len()).find(|&length| value.is_char_boundary(length));
    let hits = head.into_iter().flat_map(move |head| occurrences(text, &value[..head]));
    hits.filter_map(move |hit| {
        let alike = text[hit.start..]
            .bytes()
            .zip(value.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        let mut ends = (hit.end..=hit.start + alike).rev();
        let end = ends.find(|&end| text.get(end..).is_some_and(is_cut))?;
        Some(hit.start..end)
    })
}

/// Whether what follows a piece of text says that the piece was cut off.
fn is_cut(rest: &str) -> bool {
    let closing = |c: char| c.is_whitespace() || CLOSING.contains(&c);
    CUTS.iter().any(|sign| rest.starts_with(sign)) || rest.chars().all(closing)
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

    #[test]
    fn white_space_around_a_value_is_no_part_of_the_secret() {
        for value in ["sk-abcdef\n", " sk-abcdef", "\tsk-abcdef \r\n"] {
            assert_eq!(redact(&[value], "key=sk-abcdef;"), "key=[redacted];", "{value:?}");
        }
        // What is left is too short to be looked for, and is not taken for a value of its own.
        assert_eq!(redact(&["word   "], "a word"), "a word");
    }

    #[test]
    fn a_value_that_a_text_was_cut_within_is_not_shown() {
        let value = "sk-ant-0123.456\"789ö";
        for (text, expected) in [
            ("bad key sk-ant-0123", "bad key [redacted]"),
            ("bad key sk-ant-0", "bad key [redacted]"),
            ("bad key sk-ant-0123…", "bad key [redacted]…"),
            // The first dot may be the value's.
            ("bad key sk-ant-0123...", "bad key [redacted].."),
            ("bad key sk-ant-0123....", "bad key [redacted]..."),
            ("bad key sk-ant-0123.456\\\"78", "bad key [redacted]"),
            ("bad key sk-ant-0123.456%227", "bad key [redacted]"),
            ("stopped for `sk-ant-0123`", "stopped for `[redacted]`"),
            ("printed \"sk-ant-012...\".\n", "printed \"[redacted]...\".\n"),
            (
                "recorded: sk-ant-0123…\n  now: other",
                "recorded: [redacted]…\n  now: other",
            ),
            (
                "cut by bytes sk-ant-0123.456\"789\u{fffd}",
                "cut by bytes [redacted]\u{fffd}",
            ),
            // Seven bytes are a common start of many keys, and a start elsewhere is a text of its own.
            ("bad key sk-ant-", "bad key sk-ant-"),
            ("the keys sk-ant-0123 and others", "the keys sk-ant-0123 and others"),
        ] {
            assert_eq!(redact(&[value], text), expected);
        }
    }

    proptest! {
        #[test]
        fn no_start_of_a_protected_value_is_left_at_the_end(
            value in "[ \n]?[a-c.\"ö]{8,14}[ \n]?",
            before in "[a-c.\"ö ]{0,12}",
            cut in 0_usize..16,
            sign in prop::sample::select(vec!["", "…", "..."]),
        ) {
            let cut = value.floor_char_boundary(cut);
            let shown = redact(&[&value], &format!("{before}{}{sign}", &value[..cut]));
            let shown = shown.replace(MASK, "\0");
            for value in [value.as_str(), value.trim()] {
                prop_assert!(value.len() < SHORTEST || !shown.contains(value), "{:?}", shown);
                for end in (SHORTEST_START..=value.len()).filter(|end| value.is_char_boundary(*end)) {
                    let left = ["", "…", "..."].iter().any(|sign| shown.ends_with(&format!("{}{sign}", &value[..end])));
                    prop_assert!(!left, "{:?} shows {:?}", shown, &value[..end]);
                }
            }
        }

        #[test]
        fn no_protected_value_is_left(value in "[a-z\"\\\\ö%]{6,12}", before: String, after: String) {
            let shown = redact(&[&value], &format!("{before}{value}{after}"));
            // The mask's own letters can make up no value with one of them at each side.
            let left = shown.replace(MASK, "\0").contains(&value);
            prop_assert!(!left, "{}", shown);
        }
    }
}
