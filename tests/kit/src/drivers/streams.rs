//! What a decoder makes of recorded streams, of their pieces, and of rubbish.

use std::collections::BTreeMap;

use capsule_api::{BlockDelta, BlockStart, Error, Frame, StreamItem, WireFormat};

use super::{DriverFixture, framing::Lines};

/// Bytes of text that may come out for a byte that went in. Decoders copy; they do not invent.
const MOST_OUT: usize = 4;

type Decoded = Result<Vec<StreamItem>, Error>;

fn frames(format: WireFormat, pieces: &[&[u8]]) -> Vec<Frame> {
    let mut lines = Lines::new(format.framing);
    let mut frames = Vec::new();
    for piece in pieces {
        lines.push(piece, &mut frames);
    }
    lines.finish(&mut frames);
    frames
}

/// The items of these frames, and of the end after them.
fn decoded(format: WireFormat, frames: &[Frame]) -> Decoded {
    let mut decoder = (format.decoder)();
    let mut items = Vec::new();
    for frame in frames {
        if stopped(&items) {
            return Ok(items);
        }
        match frame.data.as_str() {
            "[DONE]" => {
                decoder.done(&mut items)?;
                return Ok(items);
            }
            _ => decoder.frame(frame, &mut items)?,
        }
    }
    if !stopped(&items) {
        decoder.finish(&mut items)?;
    }
    Ok(items)
}

fn stopped(items: &[StreamItem]) -> bool {
    items.iter().any(|item| matches!(item, StreamItem::Stopped(_)))
}

pub(super) fn check(driver: &DriverFixture, format: WireFormat, stream: &[u8]) -> Vec<String> {
    let whole = frames(format, &[stream]);
    let items = match decoded(format, &whole) {
        Ok(items) => items,
        Err(error) => return vec![format!("it is not decoded: {error}")],
    };
    let mut problems: Vec<_> = well_formed(&items).err().into_iter().collect();
    let out: usize = items.iter().map(size).sum();
    if out > stream.len() * MOST_OUT {
        problems.push(format!("{out} bytes of text come of {} bytes", stream.len()));
    }
    for at in 0..=stream.len() {
        let (before, after) = stream.split_at(at);
        if decoded(format, &frames(format, &[before, after])).ok().as_ref() != Some(&items) {
            problems.push(format!("cut at byte {at} it is decoded to something else"));
            break;
        }
    }
    let single: Vec<_> = stream.chunks(1).collect();
    if decoded(format, &frames(format, &single)).ok().as_ref() != Some(&items) {
        problems.push("byte by byte it is decoded to something else".to_owned());
    }
    problems.extend(cut_off(driver, format, &whole, &items));
    problems
}

/// A stream that ends after some of its frames is an error, or else it already was the whole answer.
fn cut_off(driver: &DriverFixture, format: WireFormat, whole: &[Frame], items: &[StreamItem]) -> Option<String> {
    (0..whole.len()).find_map(|count| match decoded(format, &whole[..count]) {
        Err(error) => driver.checked(&error).err(),
        // Without a stop the transport takes it for cut off.
        Ok(some) if !stopped(&some) || content(&some) == content(items) => None,
        Ok(_) => Some(format!("its first {count} frames pass for a whole answer")),
    })
}

/// The items that make up the answer, without counts.
fn content(items: &[StreamItem]) -> Vec<&StreamItem> {
    items
        .iter()
        .filter(|item| !matches!(item, StreamItem::Usage(_)))
        .collect()
}

/// Each block starts once, before its pieces, and has none after its end; the stop is there once and last.
fn well_formed(items: &[StreamItem]) -> Result<(), String> {
    let mut open: BTreeMap<u32, bool> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let fine = match item {
            StreamItem::Started { index, .. } => open.insert(*index, true).is_none(),
            StreamItem::Delta { index, .. } => open.get(index) == Some(&true),
            StreamItem::Ended { index } => open.insert(*index, false) == Some(true),
            StreamItem::Stopped(_) => at + 1 == items.len(),
            _ => true,
        };
        if !fine {
            return Err(format!("item {at} is out of place: {item:?}"));
        }
    }
    if stopped(items) {
        Ok(())
    } else {
        Err("the answer has no stop".to_owned())
    }
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

pub(super) fn check_rubbish(driver: &DriverFixture, format: WireFormat) -> Vec<String> {
    let rubbish = [
        "",
        "<html>",
        "null",
        "[]",
        "{}",
        "0",
        "\"text\"",
        "{\"type\":7}",
        "{\"type\":\"brand_new\"}",
        "{\"error\":null}",
        "{\"error\":{\"message\":\"no\"}}",
        "{\"choices\":{}}",
        "\u{0}",
        "{\"index\":-1}",
        "[[[[[[[[",
    ];
    let frame = |data: &&str| Frame {
        event: String::new(),
        data: (*data).to_owned(),
    };
    let tried = rubbish.iter().map(|data| (data, decoded(format, &[frame(data)])));
    let wrong = tried.filter_map(|(data, decoded)| match decoded {
        Ok(items) => stopped(&items).then(|| format!("the frame {data:?} alone passes for a whole answer")),
        Err(error) => driver
            .checked(&error)
            .err()
            .map(|problem| format!("the frame {data:?}: {problem}")),
    });
    wrong.collect()
}
