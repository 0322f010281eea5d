//! Reads a component's own description: the custom section `capsule:tool`.
//!
//! Only the frame of the binary format is read here (Component Model binary format: preamble, then sections of id and size); the
//! compiler reads the rest. The section may sit at the component's level or inside a core module, where a linker leaves it.

use capsule_api::Annotations;
use serde::Deserialize;
use serde_json::Value;

const SECTION: &str = "capsule:tool";
/// A description larger than this is refused: it would be shown to the model on every turn.
const LARGEST: usize = 256 << 10;
/// Components nested deeper are not searched.
const DEEPEST: u32 = 8;

const MAGIC: &[u8] = b"\0asm";
const MODULE: &[u8] = &[1, 0, 0, 0];
const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];

const CUSTOM: u8 = 0;
/// Section ids inside a component that hold a binary of their own.
const NESTED: [u8; 2] = [1, 4];

/// What a component says about itself. Keys that are not known are left to later hosts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Section {
    pub(crate) description: Option<String>,
    pub(crate) input_schema: Option<Value>,
    #[serde(default)]
    annotations: Hints,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Hints {
    read_only: bool,
    exclusive: bool,
}

impl Section {
    pub(crate) fn annotations(&self) -> Annotations {
        Annotations {
            read_only: self.annotations.read_only,
            exclusive: self.annotations.exclusive,
        }
    }

    /// Reads the section of these bytes; `None` where the component has none.
    pub(crate) fn of(component: &Binary<'_>) -> Result<Option<Self>, String> {
        let Some(bytes) = component.find(0) else {
            return Ok(None);
        };
        if bytes.len() > LARGEST {
            return Err(format!(
                "the section `{SECTION}` has {} bytes; at most {LARGEST} are read",
                bytes.len()
            ));
        }
        serde_json::from_slice(bytes)
            .map(Some)
            .map_err(|cause| format!("the section `{SECTION}` cannot be read: {cause}"))
    }
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Component,
    Module,
}

/// A WebAssembly binary whose frame is whole.
#[derive(Clone, Debug)]
pub(crate) struct Binary<'a> {
    pub(crate) kind: Kind,
    sections: Vec<(u8, &'a [u8])>,
}

/// Why bytes are not a WebAssembly binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotWasm {
    Empty,
    OtherFormat,
    UnknownVersion,
    Truncated,
}

impl<'a> Binary<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, NotWasm> {
        if bytes.is_empty() {
            return Err(NotWasm::Empty);
        }
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            let cut = MAGIC.starts_with(bytes);
            return Err(if cut { NotWasm::Truncated } else { NotWasm::OtherFormat });
        };
        let (version, mut rest) = rest.split_at_checked(4).ok_or(NotWasm::Truncated)?;
        let kind = match version {
            MODULE => Kind::Module,
            COMPONENT => Kind::Component,
            _ => return Err(NotWasm::UnknownVersion),
        };
        let mut sections = Vec::new();
        while let Some((id, after)) = rest.split_first() {
            let (size, after) = leb128(after).ok_or(NotWasm::Truncated)?;
            let (body, after) = after.split_at_checked(size).ok_or(NotWasm::Truncated)?;
            sections.push((*id, body));
            rest = after;
        }
        Ok(Self { kind, sections })
    }

    fn find(&self, depth: u32) -> Option<&'a [u8]> {
        let custom = self.sections.iter().find_map(|(id, body)| {
            let named = (*id == CUSTOM).then(|| custom(body)).flatten();
            named
                .filter(|(name, _)| *name == SECTION.as_bytes())
                .map(|(_, data)| data)
        });
        if custom.is_some() || self.kind == Kind::Module || depth == DEEPEST {
            return custom;
        }
        let nested = self.sections.iter().filter(|(id, _)| NESTED.contains(id));
        nested
            .filter_map(|(_, body)| Self::parse(body).ok())
            .find_map(|inner| inner.find(depth + 1))
    }
}

fn custom(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = leb128(body)?;
    rest.split_at_checked(length)
}

/// An unsigned LEB128 number of at most 32 bits, and what follows it.
fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let value = u32::try_from(value).ok()?;
            return Some((usize::try_from(value).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn binary(version: &[u8], sections: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = [MAGIC, version].concat();
        for (id, body) in sections {
            bytes.push(*id);
            let mut size = body.len();
            while size >= 0x80 {
                bytes.push((size & 0x7f) as u8 | 0x80);
                size >>= 7;
            }
            bytes.push(size as u8);
            bytes.extend_from_slice(body);
        }
        bytes
    }

    fn section(text: &str) -> (u8, Vec<u8>) {
        let mut body = vec![SECTION.len() as u8];
        body.extend_from_slice(SECTION.as_bytes());
        body.extend_from_slice(text.as_bytes());
        (CUSTOM, body)
    }

    #[test]
    fn the_section_is_found_in_a_nested_core_module() {
        let text = r#"{"description": "Adds.", "input_schema": {"type": "object"}, "annotations": {"read_only": true, "title": "Add"}}"#;
        let module = binary(MODULE, &[section(text)]);
        let component = binary(COMPONENT, &[(7, vec![0; 300]), (1, module)]);
        let found = Section::of(&Binary::parse(&component).unwrap()).unwrap().unwrap();
        assert_eq!(found.description.as_deref(), Some("Adds."));
        assert_eq!(found.input_schema, Some(json!({"type": "object"})));
        assert_eq!(
            found.annotations(),
            Annotations {
                read_only: true,
                exclusive: false
            }
        );
    }

    #[test]
    fn a_section_that_is_not_json_says_so() {
        let component = binary(COMPONENT, &[section("{oops")]);
        let why = Section::of(&Binary::parse(&component).unwrap()).unwrap_err();
        assert!(
            why.starts_with("the section `capsule:tool` cannot be read: key must be a string"),
            "{why}"
        );
    }

    #[test]
    fn nesting_is_followed_only_so_far() {
        let mut bytes = binary(COMPONENT, &[section("{}")]);
        for _ in 0..=DEEPEST {
            bytes = binary(COMPONENT, &[(4, bytes)]);
        }
        assert_eq!(Section::of(&Binary::parse(&bytes).unwrap()), Ok(None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_binary_or_not(bytes: Vec<u8>) {
            let _ = Binary::parse(&bytes);
            let framed = [MAGIC, COMPONENT, &bytes].concat();
            if let Ok(binary) = Binary::parse(&framed) {
                let _ = Section::of(&binary);
            }
        }

        #[test]
        fn a_cut_inside_a_section_is_seen(cut in 0usize..64) {
            let bytes = binary(COMPONENT, &[(7, vec![1; 64])]);
            prop_assert_eq!(Binary::parse(&bytes[..bytes.len() - 1 - cut]).unwrap_err(), NotWasm::Truncated);
        }
    }
}
