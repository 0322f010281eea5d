//! B10: from the bytes of a provider's stream to frames, beside one pass of memchr over the same bytes.

use std::{fs, hint::black_box, path::Path, time::Instant};

use capsule_api::Framing;
use capsule_transport_http::decoder::Framer;

use crate::{
    Done, Result,
    figure::{Figure, Judged, Rounds, Side, Summary, in_turn},
};

const ROUNDS: usize = 20;
/// Of one round of a side: long enough to be timed, and more than the caches hold.
const BYTES: usize = 32 << 20;
/// What one read of a connection gives at most.
const CHUNK: usize = 16 << 10;
/// MB/s.
const GOAL: f64 = 500.0;

/// A format with recorded streams of it.
struct Format {
    id: &'static str,
    what: &'static str,
    framing: Framing,
    /// Below `plugins/drivers`.
    recorded: &'static [&'static str],
    /// What ends each frame.
    end: &'static [u8],
}

const FORMATS: [Format; 2] = [
    Format {
        id: "b10-events",
        what: "event streams of the Messages API to frames, beside memchr over the same bytes",
        framing: Framing::EventStream,
        recorded: &[
            "anthropic/tests/streams/answer.sse",
            "anthropic/tests/streams/call.sse",
            "anthropic/tests/streams/thinking.sse",
        ],
        end: b"\ndata:",
    },
    Format {
        id: "b10-lines",
        what: "JSON lines of Ollama to frames, beside memchr over the same bytes",
        framing: Framing::JsonLines,
        recorded: &["ollama/tests/streams/answer.jsonl", "ollama/tests/streams/call.jsonl"],
        end: b"\n",
    },
];

/// Runs the benchmark.
pub(crate) fn run() -> Result<Done> {
    let figures = FORMATS.iter().map(|format| measure(format, ROUNDS, BYTES));
    Ok(Done {
        figures: figures.collect::<Result<_>>()?,
        ..Done::default()
    })
}

fn measure(format: &Format, rounds: usize, bytes: usize) -> Result<Figure> {
    let stream = stream(format, bytes)?;
    let expected = memchr::memmem::find_iter(&stream, format.end).count();
    let lines = stream.iter().filter(|byte| **byte == b'\n').count();
    let decoder = || {
        let started = Instant::now();
        let frames = frames(format.framing, black_box(&stream))?;
        let seconds = started.elapsed().as_secs_f64();
        same("frames", frames, expected).map(|()| seconds)
    };
    let searching = || {
        let started = Instant::now();
        let chunks = black_box(&stream).chunks(CHUNK);
        let found = chunks.map(|chunk| memchr::memchr_iter(b'\n', chunk).count()).sum();
        let seconds = started.elapsed().as_secs_f64();
        same("lines", found, lines).map(|()| seconds)
    };
    let measured = in_turn(rounds, decoder, searching)?;
    Ok(figure(format, &measured, stream.len()))
}

/// How many times as long the decoder takes. It may take as much longer as memchr is faster than the goal.
fn figure(format: &Format, measured: &Rounds, bytes: usize) -> Figure {
    let rates = |seconds: &[f64]| -> Vec<f64> { seconds.iter().map(|seconds| bytes as f64 / 1e6 / seconds).collect() };
    let side = |name, seconds| Side {
        name,
        unit: "MB/s",
        values: rates(seconds),
    };
    Figure {
        id: format.id,
        what: format.what,
        unit: "x",
        values: measured.ratios(),
        goal: Summary::of(&rates(&measured.second)).median / GOAL,
        judged: Judged::Median,
        sides: vec![side("decoder", &measured.first), side("memchr", &measured.second)],
    }
}

/// The recorded streams, one after the other, until there are so many bytes.
fn stream(format: &Format, bytes: usize) -> Result<Vec<u8>> {
    let drivers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/drivers");
    let mut once = Vec::new();
    for recorded in format.recorded {
        let path = drivers.join(recorded);
        once.extend(fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    Ok(once.repeat(bytes / once.len() + 1))
}

/// How many frames the decoder makes of the stream as it comes from a connection.
fn frames(framing: Framing, stream: &[u8]) -> Result<usize> {
    let mut framer = Framer::new(framing);
    let (mut frames, mut count) = (Vec::new(), 0);
    for chunk in stream.chunks(CHUNK) {
        framer.push(chunk, &mut frames)?;
        count += black_box(&frames).len();
        frames.clear();
    }
    framer.finish(&mut frames);
    Ok(count + frames.len())
}

fn same(what: &str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{found} {what} were found, {expected} are there").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_read_all_of_both_formats() {
        for format in &FORMATS {
            let figure = measure(format, 1, 100_000).unwrap();
            assert_eq!((figure.id, figure.values.len(), figure.sides.len()), (format.id, 1, 2));
        }
    }

    #[test]
    fn the_goal_is_a_rate_whatever_memchr_does() {
        let measured = Rounds {
            first: vec![0.1],
            second: vec![0.01],
        };
        // 100 MB in 0.1 s: 1,000 MB/s. memchr has 10,000 MB/s, so it may take 20 times as long and takes 10.
        let figure = figure(&FORMATS[0], &measured, 100_000_000);
        assert_eq!((figure.values, figure.goal), (vec![10.0], 20.0));
    }
}
