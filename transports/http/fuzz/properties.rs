//! What holds for any bytes. Used by the fuzz targets, and by the tests on the seeds.

use capsule_api::{BlockDelta, BlockStart, DriverDescriptor, Error, Frame, Framing, Registry, StreamItem, WireFormat};
use capsule_transport_http::decoder::Framer;

/// Bytes of text that may come out for a byte that went in: decoders copy, they do not invent.
const MOST_OUT: usize = 4;

/// Whatever a provider sends:
///
/// - its frames are those that the standard, read literally and slowly, makes of it, wherever the bytes are cut;
/// - no decoder panics on them, each gives the same again, an error is one of those that its driver lists, what comes out is in proportion to
///   what went in, and a stop is the last item.
pub(crate) fn hold(framing: Framing, bytes: &[u8]) {
    let Some(whole) = frames(framing, [bytes]) else {
        return;
    };
    assert_eq!(whole, by_the_book(framing, bytes), "by the book");
    // The bytes decide how they are cut, so that a fuzzer finds the place.
    let sizes = [1, 2, 3, 1 + usize::from(bytes.last().copied().unwrap_or_default())];
    for size in sizes {
        assert_eq!(
            frames(framing, bytes.chunks(size)).as_ref(),
            Some(&whole),
            "in pieces of {size}"
        );
    }
    let drivers = Registry::<DriverDescriptor>::linked().expect("drivers are linked, each name once");
    for driver in drivers.iter() {
        if let Some(format) = driver.wire.filter(|format| format.framing == framing) {
            decoded(driver, format, &whole);
        }
    }
}

/// `None`: a frame is too long, which is an error and not a frame.
fn frames<'a>(framing: Framing, pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<Frame>> {
    let mut framer = Framer::new(framing);
    let mut frames = Vec::new();
    for piece in pieces {
        framer.push(piece, &mut frames).ok()?;
    }
    framer.finish(&mut frames);
    Some(frames)
}

/// The frames of a whole stream, made the simple way.
fn by_the_book(framing: Framing, bytes: &[u8]) -> Vec<Frame> {
    match framing {
        Framing::EventStream => events_by_the_book(bytes),
        Framing::JsonLines => lines_by_the_book(bytes),
    }
}

fn events_by_the_book(bytes: &[u8]) -> Vec<Frame> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut frames = Vec::new();
    let (mut event, mut data) = (String::new(), None::<String>);
    // What follows the last line end is no line. The end of the stream ends an event whose lines are whole.
    let lines = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for line in lines.split('\n').chain([""]) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                data = Some(match data.take() {
                    Some(before) => format!("{before}\n{value}"),
                    None => value.to_owned(),
                });
            }
            "event" => value.clone_into(&mut event),
            _ => {}
        }
        if line.is_empty() {
            let event = std::mem::take(&mut event);
            frames.extend(data.take().map(|data| Frame { event, data }));
        }
    }
    frames
}

fn lines_by_the_book(bytes: &[u8]) -> Vec<Frame> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line).trim_ascii());
    let frame = |line: &[u8]| Frame {
        event: String::new(),
        data: String::from_utf8_lossy(line).into_owned(),
    };
    lines.filter(|line| !line.is_empty()).map(frame).collect()
}

fn decoded(driver: &DriverDescriptor, format: WireFormat, frames: &[Frame]) {
    let (items, ended) = decode(format, frames);
    if let Err(error) = &ended {
        let listed = driver.codes.iter().any(|code| code.id == error.code);
        assert!(listed, "{}: the code {} is not listed", driver.name, error.code);
    }
    let room: usize = frames.iter().map(|frame| frame.data.len() + 1).sum();
    let size: usize = items.iter().map(size).sum();
    assert!(size <= room * MOST_OUT, "{}: {size} bytes of {room}", driver.name);
    let stops = items
        .iter()
        .filter(|item| matches!(item, StreamItem::Stopped(_)))
        .count();
    let last = matches!(items.last(), Some(StreamItem::Stopped(_)));
    assert_eq!(stops, usize::from(last), "{}: {items:?}", driver.name);
    let (again, ended_again) = decode(format, frames);
    assert_eq!(again, items, "{}: again", driver.name);
    let told = |ended: Result<(), Error>| ended.map_err(|error| error.message.clone());
    assert_eq!(told(ended_again), told(ended), "{}: again", driver.name);
}

/// The items up to the stop, the error or the end, as the transport reads them.
fn decode(format: WireFormat, frames: &[Frame]) -> (Vec<StreamItem>, Result<(), Error>) {
    let mut decoder = (format.decoder)();
    let mut items = Vec::new();
    for frame in frames {
        if frame.data == "[DONE]" {
            let ended = decoder.done(&mut items);
            return (items, ended);
        }
        let ended = decoder.frame(frame, &mut items);
        if ended.is_err() || matches!(items.last(), Some(StreamItem::Stopped(_))) {
            return (items, ended);
        }
    }
    let ended = decoder.finish(&mut items);
    (items, ended)
}

fn size(item: &StreamItem) -> usize {
    match item {
        StreamItem::Started { block, .. } => match block {
            BlockStart::Thinking { redacted } => redacted.as_ref().map_or(0, String::len),
            BlockStart::Call { id, name } => id.len() + name.len(),
            _ => 0,
        },
        StreamItem::Delta { delta, .. } => match delta {
            BlockDelta::Text(text) | BlockDelta::Signature(text) | BlockDelta::Input(text) => text.len(),
            BlockDelta::WholeInput(value) => value.to_string().len(),
            _ => 0,
        },
        StreamItem::Continuation(id) => id.len(),
        _ => 0,
    }
}
