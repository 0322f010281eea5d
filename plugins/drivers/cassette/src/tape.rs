//! The file: version 1.

use std::{fs::File, io::Read, path::Path};

use capsule_api::{
    Error, Response,
    serde_json::{self, Value},
};
use serde::{Deserialize, Serialize};

use crate::{codes, shape::Shape};

/// The version that is read.
const VERSION: u64 = 1;
/// The largest file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// A recorded run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tape {
    pub(crate) version: u64,
    /// The capsule that was recorded, for people.
    #[serde(default)]
    pub(crate) capsule: String,
    pub(crate) entries: Vec<Entry>,
}

/// One model request and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Entry {
    /// A provider's stream.
    Stream(StreamEntry),
    /// The answer of a driver without a wire.
    Response(ResponseEntry),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamEntry {
    pub(crate) request: Shape,
    /// The driver whose wire format decodes the chunks.
    pub(crate) wire: String,
    pub(crate) status: u16,
    /// Milliseconds since the request, and the text that came then.
    pub(crate) chunks: Vec<(u64, String)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResponseEntry {
    pub(crate) request: Shape,
    pub(crate) response: Response,
}

impl Entry {
    /// The recorded request.
    pub(crate) fn shape(&self) -> &Shape {
        match self {
            Self::Stream(entry) => &entry.request,
            Self::Response(entry) => &entry.request,
        }
    }
}

/// Reads a tape.
///
/// # Errors
/// The file cannot be read, is too large, is no tape, or has another version.
pub(crate) fn load(path: &Path) -> Result<Tape, Error> {
    let unreadable = |error: std::io::Error| {
        let message = format!("the tape {} cannot be read: {error}", path.display());
        Error::new(&codes::UNREADABLE, message).caused_by(error)
    };
    let mut text = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        let message = format!("the tape {} is larger than {} MiB", path.display(), MAX_BYTES >> 20);
        return Err(Error::new(&codes::TOO_LARGE, message));
    }
    parse(&text).map_err(|error| {
        let message = format!("the tape {}: {}", path.display(), error.message);
        error.reworded(message)
    })
}

fn parse(text: &[u8]) -> Result<Tape, Error> {
    let malformed = |error: serde_json::Error| Error::new(&codes::MALFORMED, error.to_string());
    let value: Value = serde_json::from_slice(text).map_err(malformed)?;
    // The version first: what another version has in it is not this one's to judge.
    match value["version"].as_u64() {
        Some(VERSION) => {}
        Some(other) => {
            let message = format!("it has version {other}; this program reads {VERSION}");
            return Err(Error::new(&codes::VERSION, message));
        }
        None => return Err(Error::new(&codes::MALFORMED, "it has no `version`")),
    }
    let entries = value["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (n, entry) in entries.iter().enumerate() {
        checked(entry).map_err(|error| Error::new(&codes::MALFORMED, format!("entry {}: {error}", n + 1)))?;
    }
    serde_json::from_value(value).map_err(malformed)
}

/// Why an entry cannot be read. An untagged enum would say only that no variant fits.
fn checked(entry: &Value) -> Result<(), serde_json::Error> {
    if entry.get("response").is_some() {
        ResponseEntry::deserialize(entry).map(drop)
    } else {
        StreamEntry::deserialize(entry).map(drop)
    }
}

#[cfg(test)]
#[path = "tape_tests.rs"]
mod tests;
