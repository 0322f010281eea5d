//! The decoders on every recorded stream: those of the drivers, and the seeds of the fuzz targets.

use std::{fs, path::PathBuf};

use capsule_api::Framing;

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
