use capsule_api::{Frame, Framing};
use proptest::prelude::*;

use super::{EventStream, Framer, MAX_FRAME};

const STREAMS: [&str; 3] = [
    include_str!("../../tests/streams/call.sse"),
    include_str!("../../tests/streams/answer.sse"),
    include_str!("../../tests/streams/thinking.sse"),
];

/// What the standard is fussy about, in one stream.
const FUSSY: &str = "\u{feff}: comment\ndata:no space\r\ndata:  two spaces\rdata\n\nevent: named\nevent: renamed\nid: 7\n\
                     retry: 1500\nretry: soon\nunknown: field\ndata: {\"é\": \"🦀\"}\n\n\nevent: without data\n\ndata: [DONE]\n\n\
                     data: last, without a blank line\n";

fn frame(event: &str, data: &str) -> Frame {
    Frame {
        event: event.to_owned(),
        data: data.to_owned(),
    }
}

fn frames<'a>(framing: Framing, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Frame> {
    let mut framer = Framer::new(framing);
    let mut frames = Vec::new();
    for chunk in chunks {
        framer.push(chunk, &mut frames).unwrap();
    }
    framer.finish(&mut frames);
    frames
}

/// The text in pieces that end at these places, in order and taken modulo its length.
fn pieces<'a>(text: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.push(text.len());
    cuts.sort_unstable();
    let mut start = 0;
    let piece = |end: usize| {
        let piece = &text[start..end];
        start = end;
        piece
    };
    cuts.into_iter().map(piece).collect()
}

#[test]
fn h_04_the_standards_fine_points() {
    assert_eq!(
        frames(Framing::EventStream, [FUSSY.as_bytes()]),
        [
            frame("", "no space\n two spaces\n"),
            frame("renamed", "{\"é\": \"🦀\"}"),
            frame("", "[DONE]"),
            frame("", "last, without a blank line"),
        ]
    );
}

#[test]
fn ids_and_reconnection_times_are_understood() {
    let mut decoder = EventStream::new();
    decoder.push(FUSSY.as_bytes(), &mut Vec::new()).unwrap();
    decoder.push(b"id: with\0zero\n", &mut Vec::new()).unwrap();
    let retry = decoder.reconnection().map(|time| time.as_millis());
    assert_eq!((decoder.last_event_id(), retry), ("7", Some(1500)));
}

#[test]
fn h_04_byte_by_byte_is_the_same_as_all_at_once() {
    for stream in STREAMS.into_iter().chain([FUSSY]) {
        let whole = frames(Framing::EventStream, [stream.as_bytes()]);
        assert!(whole.len() >= 4);
        assert_eq!(frames(Framing::EventStream, stream.as_bytes().chunks(1)), whole);
        let crlf = stream.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
        assert_eq!(frames(Framing::EventStream, crlf.as_bytes().chunks(1)), whole);
    }
}

#[test]
fn a_line_that_the_end_of_the_stream_cuts_is_dropped() {
    assert_eq!(frames(Framing::EventStream, [&b"data: {\"half\": "[..]]), []);
    assert_eq!(
        frames(Framing::EventStream, [&b"data: whole\nda"[..]]),
        [frame("", "whole")]
    );
}

#[test]
fn bytes_that_are_no_text_do_not_stop_the_stream() {
    assert_eq!(
        frames(Framing::EventStream, [&b"data: a\xff\n\n"[..]]),
        [frame("", "a\u{fffd}")]
    );
}

#[test]
fn lines_of_json_need_no_last_line_end() {
    let text = b"{\"a\": 1}\r\n\n{\"b\": \"\xf0\x9f\xa6\x80\"}\n{\"c\": 3}";
    let expected = [
        frame("", "{\"a\": 1}"),
        frame("", "{\"b\": \"🦀\"}"),
        frame("", "{\"c\": 3}"),
    ];
    assert_eq!(frames(Framing::JsonLines, [&text[..]]), expected);
    assert_eq!(frames(Framing::JsonLines, text.chunks(1)), expected);
}

#[test]
fn a_frame_without_end_is_an_error_and_not_a_full_memory() {
    for framing in [Framing::EventStream, Framing::JsonLines] {
        let mut framer = Framer::new(framing);
        let chunk = vec![b'x'; 1 << 20];
        let fed = (0..=MAX_FRAME >> 20).try_for_each(|_| framer.push(&chunk, &mut Vec::new()));
        assert_eq!(fed.unwrap_err().code, "http-frame-too-long", "{framing:?}");
    }
}

#[test]
fn an_event_of_many_lines_without_end_is_an_error_too() {
    let mut framer = Framer::new(Framing::EventStream);
    let line = format!("data: {}\n", "x".repeat(1 << 20));
    let fed = (0..=MAX_FRAME >> 20).try_for_each(|_| framer.push(line.as_bytes(), &mut Vec::new()));
    assert_eq!(fed.unwrap_err().code, "http-frame-too-long");
}

proptest! {
    #[test]
    fn h_04_any_cut_of_a_recorded_stream_gives_the_same_frames(
        which in 0..4_usize,
        cuts in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        let stream = STREAMS.get(which).copied().unwrap_or(FUSSY).as_bytes();
        prop_assert_eq!(
            frames(Framing::EventStream, pieces(stream, &cuts)),
            frames(Framing::EventStream, [stream])
        );
    }

    #[test]
    fn h_04_any_cut_of_any_bytes_gives_the_same_frames(
        text in "(data|event|id|:|: ?|\r|\n|\r\n|é|🦀|\u{feff}|[a-z]){0,60}",
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        for framing in [Framing::EventStream, Framing::JsonLines] {
            prop_assert_eq!(
                frames(framing, pieces(text.as_bytes(), &cuts)),
                frames(framing, [text.as_bytes()])
            );
        }
    }
}
