use capsule_api::serde_json::json;

use super::*;

/// The calls that chunks make: id, name, arguments.
fn calls(chunks: &[&[Piece<'_>]]) -> Vec<(String, String, Value)> {
    let (mut calls, mut next, mut out) = (Calls::default(), 0, Vec::new());
    for chunk in chunks {
        calls.chunk(chunk, &mut next, &mut out).unwrap();
    }
    calls.end(&mut out);
    let mut made: Vec<(String, String, String)> = Vec::new();
    for item in out {
        match item {
            StreamItem::Started {
                index,
                block: BlockStart::Call { id, name },
            } => {
                assert!(index < next);
                made.resize(made.len().max(index as usize + 1), Default::default());
                made[index as usize] = (id, name, String::new());
            }
            StreamItem::Delta {
                index,
                delta: BlockDelta::Input(piece),
            } => made[index as usize].2.push_str(&piece),
            StreamItem::Delta {
                index,
                delta: BlockDelta::WholeInput(Value::String(whole)),
            } => made[index as usize].2 = whole,
            _ => {}
        }
    }
    let parsed = made.into_iter();
    parsed
        .map(|(id, name, input)| (id, name, serde_json::from_str(&input).unwrap_or_default()))
        .collect()
}

fn piece<'a>(index: Option<u64>, id: &'a str, name: &'a str, arguments: &'a str) -> Piece<'a> {
    Piece {
        index,
        id,
        name,
        arguments,
    }
}

fn call(id: &str, n: u64) -> (String, String, Value) {
    (id.to_owned(), "t".to_owned(), json!({"n": n}))
}

#[test]
fn h_01_calls_are_told_apart_with_and_without_an_index() {
    let expected = [call("a", 1), call("b", 2)];
    // As the API has it, and interleaved.
    let regular: &[&[Piece<'_>]] = &[
        &[piece(Some(0), "a", "t", "")],
        &[piece(Some(1), "b", "t", "{\"n\"")],
        &[piece(Some(0), "", "", "{\"n\": 1}"), piece(Some(1), "", "", ": 2}")],
    ];
    assert_eq!(calls(regular), expected);
    // All index 0 with new ids, whole and in pieces.
    assert_eq!(
        calls(&[
            &[piece(Some(0), "a", "t", "{\"n\": 1}")],
            &[piece(Some(0), "b", "t", "{\"n\": 2}")]
        ]),
        expected
    );
    let in_pieces: &[&[Piece<'_>]] = &[
        &[piece(Some(0), "a", "t", "")],
        &[piece(Some(0), "", "", "{\"n\": 1}")],
        &[piece(Some(0), "b", "t", "")],
        &[piece(Some(0), "", "", "{\"n\": 2}")],
    ];
    assert_eq!(calls(in_pieces), expected);
    // No index: in one chunk, in several, by place.
    assert_eq!(
        calls(&[&[piece(None, "a", "t", "{\"n\": 1}"), piece(None, "b", "t", "{\"n\": 2}")]]),
        expected
    );
    let by_place: &[&[Piece<'_>]] = &[
        &[piece(None, "a", "t", "{\"n\""), piece(None, "b", "t", "{\"n\"")],
        &[piece(None, "", "", ": 1}"), piece(None, "", "", ": 2}")],
    ];
    assert_eq!(calls(by_place), expected);
    let one_by_one: &[&[Piece<'_>]] = &[
        &[piece(None, "a", "t", "{\"n\"")],
        &[piece(None, "", "", ": 1}")],
        &[piece(None, "b", "t", "{\"n\"")],
        &[piece(None, "b", "", ": 2}")],
    ];
    assert_eq!(calls(one_by_one), expected);
}

#[test]
fn h_12_an_id_may_come_late_twice_or_never() {
    assert_eq!(
        calls(&[&[piece(Some(0), "", "t", "{\"n\"")], &[piece(Some(0), "a", "", ": 1}")]]),
        [call("a", 1)]
    );
    assert_eq!(
        calls(&[&[piece(None, "", "t", "{\"n\": 1}")], &[piece(None, "a", "", "")]]),
        [call("a", 1)]
    );
    let (one, two) = ("{\"n\": 1}", "{\"n\": 2}");
    for index in [None, Some(0)] {
        assert_eq!(
            calls(&[&[piece(index, "a", "t", one)], &[piece(index, "a", "t", two)]]),
            [call("a", 1), call("a", 2)],
            "{index:?}"
        );
        assert_eq!(
            calls(&[&[piece(index, "", "t", one)], &[piece(index, "", "t", one)]]),
            [call("", 1), call("", 1)],
            "{index:?}"
        );
        assert_eq!(
            calls(&[&[piece(index, "a", "t", one), piece(index, "a", "t", one)]]),
            [call("a", 1), call("a", 1)],
            "{index:?}"
        );
    }
}

#[test]
fn h_01_id_and_name_on_every_chunk_and_whole_arguments_after_pieces_are_one_call() {
    for index in [None, Some(0)] {
        let chunks: &[&[Piece<'_>]] = &[
            &[piece(index, "a", "t", "{\"n\"")],
            &[piece(index, "a", "t", ": 1")],
            &[piece(index, "a", "t", "}")],
            &[piece(index, "a", "t", "{\"n\": 1}")],
        ];
        // With other spaces it would be another call: only the same text is the same call said again.
        let expected = [("a".to_owned(), "t".to_owned(), json!({"n": 1}))];
        assert_eq!(calls(chunks), expected, "{index:?}");
        let nameless: &[&[Piece<'_>]] = &[
            &[piece(index, "a", "t", "{\"n\": 1}")],
            &[piece(index, "a", "", "{\"n\":1}")],
        ];
        assert_eq!(calls(nameless), expected, "{index:?}");
    }
}
