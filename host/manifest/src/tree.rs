//! The YAML as a tree in which every key and value knows its line and column.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned, options::DuplicateKeyPolicy};

/// A position in the file: line and column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl Position {
    fn of(location: Location) -> Option<Self> {
        (location != Location::UNKNOWN).then(|| Self {
            line: location.line(),
            column: location.column(),
        })
    }
}

/// Why a text is no YAML tree.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) at: Option<Position>,
    pub(crate) message: String,
}

/// A key that a mapping has twice.
#[derive(Debug)]
pub(crate) struct Duplicate {
    pub(crate) pointer: String,
    pub(crate) first: Option<Position>,
    pub(crate) second: Option<Position>,
}

/// The values, and where each of them stands, by JSON pointer.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) value: Value,
    pub(crate) values: BTreeMap<String, Position>,
    pub(crate) keys: BTreeMap<String, Position>,
    pub(crate) duplicates: Vec<Duplicate>,
}

/// Levels of nesting that a manifest may have; a tool's JSON Schema needs most of them.
const DEEPEST: usize = 64;
/// The parser takes some 40 KiB of stack for each level in a debug build: more than a thread of a runtime has.
const STACK: usize = 16 << 20;

/// Reads YAML. Aliases and nesting are bounded, so a small file cannot grow into a large tree.
pub(crate) fn parse(text: &str) -> Result<Tree, Broken> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || parse_here(text));
        let parsed = thread.map(std::thread::ScopedJoinHandle::join);
        let failed = |what: &str| Broken {
            at: None,
            message: format!("the YAML parser {what}"),
        };
        match parsed {
            Ok(Ok(tree)) => tree,
            Ok(Err(_)) => Err(failed("failed on this text; please report it")),
            Err(error) => Err(failed(&format!("could not be started: {error}"))),
        }
    })
}

fn parse_here(text: &str) -> Result<Tree, Broken> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            flow_nesting_limit: DEEPEST,
            max_events: 200_000,
            max_nodes: 100_000,
            max_aliases: 200,
            max_anchors: 200,
            max_merge_keys: 200,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 20_000,
            max_replay_stack_depth: 16,
        },
        // The tree reports every repeated key with both of its places; the parser would stop at the first.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let root: Spanned<Node> =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| broken(&error, text))?;
    let mut tree = Tree::default();
    tree.value = tree.take(String::new(), root);
    Ok(tree)
}

const TOO_MUCH: &str =
    "the YAML is too long, nested too deeply (64 levels at most), or its aliases (`*name`) expand to too much";

const TAB: &str = "a tab cannot indent; use spaces";

fn broken(error: &serde_saphyr::Error, text: &str) -> Broken {
    use serde_saphyr::Error as Yaml;
    let error = error.without_snippet();
    let mut at = error.location().and_then(Position::of);
    let message = match error {
        Yaml::Budget { .. }
        | Yaml::AliasReplayLimitExceeded { .. }
        | Yaml::AliasExpansionLimitExceeded { .. }
        | Yaml::AliasReplayStackDepthExceeded { .. }
        | Yaml::AliasError { .. } => TOO_MUCH.to_owned(),
        Yaml::MultipleDocuments { .. } => "a manifest is one YAML document; remove what follows `---`".to_owned(),
        Yaml::NonFiniteFloat { .. } => "a number must be finite".to_owned(),
        Yaml::UnknownAnchor { .. } => {
            "an alias (`*name`) names no anchor; put text that begins with `*` in quotes".to_owned()
        }
        Yaml::UnsupportedTag { .. } => "tags (`!name`) have no meaning in a manifest".to_owned(),
        Yaml::RecursiveReferencesRequireWeakTypes { .. } => "an alias contains itself".to_owned(),
        Yaml::Unexpected { .. } => "a key must be plain text".to_owned(),
        Yaml::Message { msg, .. } | Yaml::ExternalMessage { msg, .. } => syntax(msg),
        // Other messages may quote the value, which may be a secret.
        _ => "this is not well-formed YAML".to_owned(),
    };
    if message == TAB {
        at = at.map(|at| tab_after(text, at));
    }
    Broken { at, message }
}

/// The parser names the value that a line with a tab seems to go on with; the tab itself says more.
fn tab_after(text: &str, at: Position) -> Position {
    let lines = (1_u64..).zip(text.lines()).skip_while(|(line, _)| *line < at.line);
    let mut tabs = lines.filter_map(|(line, content)| {
        let indent = content.chars().take_while(|c| c.is_whitespace());
        let column = (1_u64..).zip(indent).find(|(_, c)| *c == '\t')?.0;
        Some(Position { line, column })
    });
    tabs.next().unwrap_or(at)
}

/// The parser's complaints about syntax speak of tokens, not of values.
fn syntax(complaint: &str) -> String {
    let known = [
        ("tabs disallowed", TAB),
        ("found a tab", TAB),
        (
            "mapping values are not allowed",
            "a `:` is not expected here; put text that contains `: ` in quotes, and check the indentation",
        ),
        (
            "unexpected character",
            "this character cannot begin a value; put the text in quotes",
        ),
        ("unclosed bracket", "this bracket is never closed"),
        ("unclosed quote", "this quote is never closed"),
        (
            "did not find expected key",
            "a key is expected here; check the indentation",
        ),
        ("recursion limit", TOO_MUCH),
    ];
    let ours = known.iter().find(|(theirs, _)| complaint.contains(theirs));
    ours.map_or_else(
        || format!("this is not well-formed YAML: {complaint}"),
        |(_, ours)| (*ours).to_owned(),
    )
}

impl Tree {
    fn take(&mut self, pointer: String, node: Spanned<Node>) -> Value {
        if let Some(at) = Position::of(node.referenced) {
            self.values.insert(pointer.clone(), at);
        }
        match node.value {
            Node::Scalar(value) => value,
            Node::List(items) => {
                let items = items.into_iter().enumerate();
                Value::Array(
                    items
                        .map(|(index, item)| self.take(format!("{pointer}/{index}"), item))
                        .collect(),
                )
            }
            Node::Mapping(entries) => {
                let mut map = Map::new();
                for (key, item) in entries {
                    let inner = child(&pointer, &key.value);
                    let at = Position::of(key.referenced);
                    if map.contains_key(&key.value) {
                        let first = self.keys.get(&inner).copied();
                        self.duplicates.push(Duplicate {
                            pointer: inner,
                            first,
                            second: at,
                        });
                        continue;
                    }
                    if let Some(at) = at {
                        self.keys.insert(inner.clone(), at);
                    }
                    let value = self.take(inner, item);
                    map.insert(key.value, value);
                }
                Value::Object(map)
            }
        }
    }
}

/// The JSON pointer of `key` below `pointer`.
pub(crate) fn child(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// A pointer's parts, unescaped.
pub(crate) fn parts(pointer: &str) -> impl Iterator<Item = String> + '_ {
    pointer
        .split('/')
        .skip(1)
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
}

enum Node {
    Scalar(Value),
    List(Vec<Spanned<Node>>),
    Mapping(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        // Beyond what any key takes; the schema says so with the value at hand.
        Ok(Node::Scalar(
            Number::from_f64(value as f64).map_or(Value::Null, Value::Number),
        ))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Node, E> {
        Ok(Node::Scalar(
            Number::from_f64(value as f64).map_or(Value::Null, Value::Number),
        ))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Scalar(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Mapping(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn every_key_and_value_knows_its_place() {
        let tree = parse("a: 1\nb:\n  - x\n  - y: {z: yes}\n").unwrap();
        assert_eq!(tree.value, json!({"a": 1, "b": ["x", {"y": {"z": "yes"}}]}));
        assert_eq!(tree.keys["/b/1/y"], Position { line: 4, column: 5 });
        assert_eq!(tree.values["/b/1/y/z"], Position { line: 4, column: 12 });
    }

    #[test]
    fn a_repeated_key_has_two_places() {
        let tree = parse("a: 1\nb: 2\na: 3\n").unwrap();
        let [duplicate] = tree.duplicates.as_slice() else {
            panic!("{:?}", tree.duplicates)
        };
        assert_eq!(duplicate.pointer, "/a");
        assert_eq!(duplicate.first, Some(Position { line: 1, column: 1 }));
        assert_eq!(duplicate.second, Some(Position { line: 3, column: 1 }));
    }

    #[test]
    fn broken_yaml_says_where_and_what() {
        let cases = [
            ("a:\n\tb: 1\n", 2, 1, "a tab cannot indent; use spaces"),
            ("a: [1", 1, 4, "this bracket is never closed"),
            ("a: \"sk-secret", 1, 4, "this quote is never closed"),
            (
                "a: @x",
                1,
                4,
                "this character cannot begin a value; put the text in quotes",
            ),
            (
                "a:\n  b: 1\n c: 2\n",
                3,
                2,
                "a key is expected here; check the indentation",
            ),
            (
                "a: 1\n---\nb: 2\n",
                3,
                1,
                "a manifest is one YAML document; remove what follows `---`",
            ),
            ("a: !!int sk-secret\n", 1, 10, "this is not well-formed YAML"),
            ("? [a]\n: b", 1, 3, "a key must be plain text"),
            ("a: &a [*a]", 1, 8, "an alias contains itself"),
        ];
        for (text, line, column, message) in cases {
            let broken = parse(text).unwrap_err();
            assert_eq!(
                (broken.at, broken.message.as_str()),
                (Some(Position { line, column }), message),
                "{text:?}"
            );
        }
    }

    #[test]
    fn bombs_are_refused() {
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (before, name) in ('a'..'j').zip('b'..='j') {
            bomb.push_str(&format!(
                "{name}: &{name} [{}]\n",
                vec![format!("*{before}"); 9].join(",")
            ));
        }
        for text in [bomb, "[".repeat(100_000), "- ".repeat(100_000), "{a: ".repeat(65)] {
            assert_eq!(parse(&text).unwrap_err().message, TOO_MUCH, "{}", &text[..40]);
        }
        assert!(parse(&"- ".repeat(60)).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_a_tree_or_broken(text in "[a-c:\\-\\[\\]{},&*<!\"'#|> \n\t?%@0-9.~ö]*") {
            let _ = parse(&text);
        }
    }
}
