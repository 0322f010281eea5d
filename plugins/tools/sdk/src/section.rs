//! The custom section `capsule:tool`: how a component describes its tool.
//!
//! The section is UTF-8 JSON, put together while the tool compiles, so that a broken schema is a
//! compile error and costs nothing at run time.

/// What the section says. Every part is optional; an entry of a manifest overrides it.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The name the tool suggests for itself.
    pub name: Option<&'static str>,
    /// What the model reads to decide whether to call the tool.
    pub description: Option<&'static str>,
    /// JSON Schema of the arguments, a JSON object.
    pub input_schema: Option<&'static str>,
    /// JSON Schema of the answer, a JSON object.
    pub output_schema: Option<&'static str>,
    /// Hints about the behaviour, a JSON object.
    pub annotations: Option<&'static str>,
}

impl Section {
    /// A section that says nothing.
    pub const EMPTY: Self = Self {
        name: None,
        description: None,
        input_schema: None,
        output_schema: None,
        annotations: None,
    };

    /// The length of the section in bytes.
    ///
    /// # Panics
    ///
    /// When a part that must be a JSON object is not one; in a constant, that is a compile error.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.write(&mut [])
    }

    /// Never true: even [`Section::EMPTY`] is the text `{}`.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The bytes of the section. `N` is [`Section::len`].
    ///
    /// # Panics
    ///
    /// As [`Section::len`], and when `N` is another length.
    #[must_use]
    pub const fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut out = [0; N];
        assert!(self.write(&mut out) == N, "N is the length of the section");
        out
    }

    /// Writes what fits into `out` and returns the whole length.
    const fn write(&self, out: &mut [u8]) -> usize {
        let mut at = put(out, 0, b'{');
        at = text_member(out, at, "name", self.name);
        at = text_member(out, at, "description", self.description);
        at = json_member(out, at, "input_schema", self.input_schema);
        at = json_member(out, at, "output_schema", self.output_schema);
        at = json_member(out, at, "annotations", self.annotations);
        put(out, at, b'}')
    }
}

const fn put(out: &mut [u8], at: usize, byte: u8) -> usize {
    if at < out.len() {
        out[at] = byte;
    }
    at + 1
}

const fn put_all(out: &mut [u8], mut at: usize, bytes: &[u8]) -> usize {
    let mut i = 0;
    while i < bytes.len() {
        at = put(out, at, bytes[i]);
        i += 1;
    }
    at
}

const fn key(out: &mut [u8], mut at: usize, key: &str) -> usize {
    if at > 1 {
        at = put(out, at, b',');
    }
    at = put_string(out, at, key);
    put(out, at, b':')
}

const fn text_member(out: &mut [u8], at: usize, name: &str, text: Option<&str>) -> usize {
    match text {
        None => at,
        Some(text) => {
            let at = key(out, at, name);
            put_string(out, at, text)
        }
    }
}

const fn json_member(out: &mut [u8], at: usize, name: &str, json: Option<&str>) -> usize {
    match json {
        None => at,
        Some(json) => {
            assert!(
                is_object(json.as_bytes()),
                "export_tool!: a schema or annotation is not a JSON object"
            );
            let at = key(out, at, name);
            put_all(out, at, json.as_bytes())
        }
    }
}

const fn put_string(out: &mut [u8], mut at: usize, text: &str) -> usize {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    at = put(out, at, b'"');
    let mut i = 0;
    while i < bytes.len() {
        let byte = bytes[i];
        if byte < 0x20 {
            at = put_all(out, at, b"\\u00");
            at = put(out, at, HEX[(byte >> 4) as usize]);
            at = put(out, at, HEX[(byte & 15) as usize]);
        } else {
            if byte == b'"' || byte == b'\\' {
                at = put(out, at, b'\\');
            }
            at = put(out, at, byte);
        }
        i += 1;
    }
    put(out, at, b'"')
}

/// Whether `text` is one JSON object (RFC 8259), with white space around it or not.
const fn is_object(text: &[u8]) -> bool {
    let start = space(text, 0);
    if peek(text, start) != b'{' {
        return false;
    }
    match value(text, start) {
        Some(end) => space(text, end) == text.len(),
        None => false,
    }
}

/// The byte at `at`, 0 at the end: no JSON token begins with it.
const fn peek(text: &[u8], at: usize) -> u8 {
    if at < text.len() { text[at] } else { 0 }
}

const fn space(text: &[u8], mut at: usize) -> usize {
    while matches!(peek(text, at), b' ' | b'\t' | b'\n' | b'\r') {
        at += 1;
    }
    at
}

/// The end of the value that begins at `at`.
const fn value(text: &[u8], at: usize) -> Option<usize> {
    match peek(text, at) {
        b'{' => items(text, at, b'}'),
        b'[' => items(text, at, b']'),
        b'"' => string(text, at),
        b't' => word(text, at, b"true"),
        b'f' => word(text, at, b"false"),
        b'n' => word(text, at, b"null"),
        _ => number(text, at),
    }
}

/// The members of an object or the elements of an array, by the closing bracket.
const fn items(text: &[u8], at: usize, close: u8) -> Option<usize> {
    let mut at = space(text, at + 1);
    if peek(text, at) == close {
        return Some(at + 1);
    }
    loop {
        if close == b'}' {
            at = match string(text, at) {
                Some(end) => space(text, end),
                None => return None,
            };
            if peek(text, at) != b':' {
                return None;
            }
            at = space(text, at + 1);
        }
        at = match value(text, at) {
            Some(end) => space(text, end),
            None => return None,
        };
        let next = peek(text, at);
        if next == close {
            return Some(at + 1);
        }
        if next != b',' {
            return None;
        }
        at = space(text, at + 1);
    }
}

const fn string(text: &[u8], at: usize) -> Option<usize> {
    if peek(text, at) != b'"' {
        return None;
    }
    let mut at = at + 1;
    loop {
        match peek(text, at) {
            b'"' => return Some(at + 1),
            b'\\' => match escape(text, at) {
                Some(end) => at = end,
                None => return None,
            },
            0..=0x1f => return None,
            _ => at += 1,
        }
    }
}

const fn escape(text: &[u8], at: usize) -> Option<usize> {
    match peek(text, at + 1) {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 2),
        b'u' => {
            let mut i = 2;
            while i < 6 {
                if !peek(text, at + i).is_ascii_hexdigit() {
                    return None;
                }
                i += 1;
            }
            Some(at + 6)
        }
        _ => None,
    }
}

const fn word(text: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    let mut i = 0;
    while i < word.len() {
        if peek(text, at + i) != word[i] {
            return None;
        }
        i += 1;
    }
    Some(at + i)
}

const fn number(text: &[u8], mut at: usize) -> Option<usize> {
    if peek(text, at) == b'-' {
        at += 1;
    }
    let whole = digits(text, at);
    if whole == at || (peek(text, at) == b'0' && whole > at + 1) {
        return None;
    }
    at = whole;
    if peek(text, at) == b'.' {
        let end = digits(text, at + 1);
        if end == at + 1 {
            return None;
        }
        at = end;
    }
    if matches!(peek(text, at), b'e' | b'E') {
        at += 1;
        if matches!(peek(text, at), b'+' | b'-') {
            at += 1;
        }
        let end = digits(text, at);
        if end == at {
            return None;
        }
        at = end;
    }
    Some(at)
}

const fn digits(text: &[u8], mut at: usize) -> usize {
    while peek(text, at).is_ascii_digit() {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, json};

    #[test]
    fn a_section_is_json_that_says_what_was_given() {
        const SECTION: Section = Section {
            name: Some("probe"),
            description: Some("Says \"hi\"\nto C:\\ and \u{1} and żółw."),
            input_schema: Some(r#" {"type": "object", "enum": [-1.5e3, true, null, {}]} "#),
            annotations: Some("{}"),
            ..Section::EMPTY
        };
        const BYTES: [u8; SECTION.len()] = SECTION.bytes();

        let read: Json = serde_json::from_slice(&BYTES).expect("the section is JSON");
        let expected = json!({
            "name": "probe",
            "description": "Says \"hi\"\nto C:\\ and \u{1} and żółw.",
            "input_schema": {"type": "object", "enum": [-1.5e3, true, null, {}]},
            "annotations": {},
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn an_empty_section_is_an_empty_object() {
        assert_eq!(&Section::EMPTY.bytes::<2>(), b"{}");
    }

    #[test]
    fn the_check_of_a_schema_agrees_with_a_json_parser() {
        let texts = [
            "{}",
            " {} ",
            r#"{"a":1}"#,
            r#"{"a":1,}"#,
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{a:1}"#,
            "{",
            "}",
            r#"{"a":[]}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[1 2]}"#,
            r#"{"a":"\u00e9\n"}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u12"}"#,
            "{\"a\":\"\n\"}",
            r#"{"a":01}"#,
            r#"{"a":0}"#,
            r#"{"a":-}"#,
            r#"{"a":1.}"#,
            r#"{"a":1e}"#,
            r#"{"a":1E+9}"#,
            r#"{"a":truex}"#,
            r#"{"a":nul}"#,
            "{} {}",
            "[]",
            "1",
            "null",
            "",
            r#"{"a":"é"}"#,
            r#"{"a":{"b":[{"c":false}]}}"#,
            r#"{"a":1]"#,
        ];
        for text in texts {
            let parsed = serde_json::from_str::<Json>(text).is_ok_and(|value| value.is_object());
            assert_eq!(is_object(text.as_bytes()), parsed, "{text}");
        }
    }
}
