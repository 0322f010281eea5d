//! The decoders on every recorded stream: those of the drivers, and the seeds of the fuzz targets.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use capsule_api::{BlockStart, DriverDescriptor, Error, Framing, Registry, Retry, StopReason, StreamItem, WireFormat};
use capsule_transport_http::decoder::Framer;

#[path = "../../fuzz/properties.rs"]
mod properties;

/// Files of these directories below the crate, by the framing that their names tell.
fn recorded() -> Vec<(PathBuf, Framing, Vec<u8>)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let drivers = fs::read_dir(root.join("../../plugins/drivers")).unwrap();
    let mut places: Vec<_> = drivers
        .map(|driver| driver.unwrap().path().join("tests/streams"))
        .filter(|streams| streams.is_dir())
        .collect();
    places.extend(["event_stream", "json_lines"].map(|target| root.join("fuzz/seeds").join(target)));
    let files = places.iter().flat_map(|place| fs::read_dir(place).unwrap());
    let read = |path: PathBuf| {
        let framing = match path.extension()?.to_str()? {
            "sse" => Framing::EventStream,
            "jsonl" | "ndjson" => Framing::JsonLines,
            _ => return None,
        };
        let bytes = fs::read(&path).unwrap();
        Some((path, framing, bytes))
    };
    files.filter_map(|file| read(file.unwrap().path())).collect()
}

#[test]
fn h_04_every_recorded_stream_is_the_same_however_it_is_cut() {
    let recorded = recorded();
    for framing in [Framing::EventStream, Framing::JsonLines] {
        assert!(recorded.iter().any(|(_, of, _)| *of == framing), "{framing:?}");
    }
    for (path, framing, bytes) in recorded {
        assert!(!bytes.is_empty(), "{}", path.display());
        properties::hold(framing, &bytes);
    }
}

#[test]
fn no_decoder_panics_on_a_recorded_stream_that_is_cut_or_damaged() {
    for (_, framing, bytes) in recorded() {
        for at in (0..bytes.len()).step_by(7) {
            properties::hold(framing, &bytes[..at]);
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x15;
            properties::hold(framing, &damaged);
        }
    }
}

/// The recorded streams of each driver, with its name.
fn streams_of_drivers() -> Vec<(String, WireFormat, Vec<u8>)> {
    let drivers = Registry::<DriverDescriptor>::linked().unwrap();
    let mut streams = Vec::new();
    for (path, _, bytes) in recorded() {
        // The crate's name, and where it has two formats the beginning of the file's.
        let parts: Vec<_> = path.iter().rev().filter_map(|part| part.to_str()).collect();
        let driver = match (parts[3], parts[0]) {
            ("openai", file) if file.starts_with("responses-") => "openai-responses",
            (name, _) if parts[2] == "tests" => name,
            _ => continue,
        };
        let format = drivers.get(driver).unwrap().wire.unwrap();
        streams.push((driver.to_owned(), format, bytes));
    }
    streams
}

/// What a driver makes of a stream, and how it failed if it did.
fn decoded(format: WireFormat, bytes: &[u8]) -> (Vec<StreamItem>, Option<Error>) {
    let mut framer = Framer::new(format.framing);
    let (mut decoder, mut frames, mut items) = ((format.decoder)(), Vec::new(), Vec::new());
    framer.push(bytes, &mut frames).unwrap();
    framer.finish(&mut frames);
    let failed = frames.iter().find_map(|frame| match frame.data.as_str() {
        "[DONE]" => decoder.done(&mut items).err(),
        _ => decoder.frame(frame, &mut items).err(),
    });
    (items, failed)
}

/// The same frames with everything that the framing leaves open: a byte order mark, other line ends, no space, comments, data of two lines.
fn framed_otherwise(framing: Framing, stream: &str) -> String {
    let lines = stream
        .lines()
        .map(|line| match (framing, line.strip_prefix("data: {")) {
            (Framing::EventStream, Some(object)) => format!(": comment\r\ndata:{{\r\ndata: {object}\r\n"),
            (Framing::EventStream, None) => format!("{}\r", line.replacen(": ", ":", 1)),
            (Framing::JsonLines, _) => format!("\r\n  {line} \r\n"),
        });
    lines.fold("\u{feff}".to_owned(), |text, line| text + &line)
}

#[test]
fn h_04_the_same_stream_in_another_framing_says_the_same() {
    for (driver, format, bytes) in streams_of_drivers() {
        let other = framed_otherwise(format.framing, str::from_utf8(&bytes).unwrap());
        let (said, failed) = decoded(format, &bytes);
        let (said_otherwise, failed_otherwise) = decoded(format, other.as_bytes());
        assert_eq!(said_otherwise, said, "{driver}: {other}");
        let code = |failed: Option<Error>| failed.map(|error| error.code);
        assert_eq!(code(failed_otherwise), code(failed), "{driver}");
    }
}

/// What a recorded stream of this format has in it.
fn kinds(format: WireFormat, bytes: &[u8]) -> BTreeSet<&'static str> {
    let (items, failed) = decoded(format, bytes);
    let mut kinds: BTreeSet<_> = items
        .iter()
        .filter_map(|item| match item {
            StreamItem::Started { block, .. } => Some(match block {
                BlockStart::Text => "text",
                BlockStart::Thinking { .. } => "thinking",
                BlockStart::Call { .. } => "call",
                other => panic!("{other:?} is not known here"),
            }),
            StreamItem::Usage(_) => Some("usage"),
            StreamItem::Stopped(StopReason::Refusal) => Some("refusal"),
            StreamItem::Stopped(_) => Some("end"),
            _ => None,
        })
        .collect();
    if let Some(error) = failed {
        assert_ne!(error.retry, Retry::Never, "{error:?}");
        kinds.insert("error");
    }
    kinds
}

#[test]
fn the_recorded_streams_of_each_driver_have_every_kind_of_item_that_its_format_has() {
    let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (driver, format, bytes) in streams_of_drivers() {
        found.entry(driver).or_default().extend(kinds(format, &bytes));
    }
    let all = ["call", "end", "error", "refusal", "text", "thinking", "usage"];
    // The API of Ollama has no word for a refusal.
    let but_a_refusal = all.into_iter().filter(|kind| *kind != "refusal");
    let expected = [
        ("anthropic", BTreeSet::from(all)),
        ("ollama", but_a_refusal.collect()),
        ("openai", BTreeSet::from(all)),
        ("openai-responses", BTreeSet::from(all)),
    ];
    assert_eq!(found, expected.map(|(driver, kinds)| (driver.to_owned(), kinds)).into());
}
