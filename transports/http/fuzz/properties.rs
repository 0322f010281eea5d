//! What holds for any bytes. Used by the fuzz targets, and by the tests on the seeds.

use capsule_api::{DriverDescriptor, Frame, Framing, Registry, WireFormat};
use capsule_transport_http::decoder::Framer;

/// Whatever a provider sends: its frames do not depend on where the bytes are cut, and no decoder panics on them.
pub(crate) fn hold(framing: Framing, bytes: &[u8]) {
    let Some(whole) = frames(framing, [bytes]) else {
        return;
    };
    // The bytes decide how they are cut, so that a fuzzer finds the place.
    let sizes = [1, 2, 3, 1 + usize::from(bytes.last().copied().unwrap_or_default())];
    for size in sizes {
        assert_eq!(
            frames(framing, bytes.chunks(size)).as_ref(),
            Some(&whole),
            "in pieces of {size}"
        );
    }
    for format in formats(framing) {
        decode(format, &whole);
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

/// The wire formats of the linked drivers.
fn formats(framing: Framing) -> impl Iterator<Item = WireFormat> {
    let drivers = Registry::<DriverDescriptor>::linked().expect("drivers are linked, each name once");
    let formats: Vec<_> = drivers.iter().filter_map(|driver| driver.wire).collect();
    formats.into_iter().filter(move |format| format.framing == framing)
}

/// Errors are answers; only a panic is a finding.
fn decode(format: WireFormat, frames: &[Frame]) {
    let mut decoder = (format.decoder)();
    let mut items = Vec::new();
    for frame in frames {
        if decoder.frame(frame, &mut items).is_err() {
            return;
        }
    }
    let _ = decoder.finish(&mut items);
}
