//! What two guests that compute for ever do to the timers and sockets of the host's own runtime.

use std::{
    fs, io,
    sync::Arc,
    time::{Duration, Instant},
};

use capsule_api::{CallId, Cancel, CancelReason, NobodyThere, RunEvent, RunSink, ToolCall, ToolStatus};
use capsule_tools::{Bindings, ToolSource, Toolbox};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    task::JoinHandle,
};

use crate::{
    Done, Failed, Result,
    figure::{Figure, Judged, Rounds, Side, Summary},
    guests, load,
};

const ROUNDS: usize = 20;
/// Timers in one round of a side; echoes run beside them.
const TIMERS: usize = 100;
const TIMER: Duration = Duration::from_millis(5);
/// Between two echoes, so that they do not keep a worker awake.
const PAUSE: Duration = Duration::from_millis(1);
/// Milliseconds.
const GOAL: f64 = 50.0;
const GUESTS: usize = 2;
const GRACE: Duration = Duration::from_secs(2);

/// Runs the benchmark.
pub(crate) fn run() -> Result<Done> {
    let measured = measure(ROUNDS, TIMERS)?;
    let figures = vec![
        measured.timers.figure(
            "spin-timer",
            "longest delay of a 5 ms timer in a round with two spinning guests, beyond that without",
        ),
        measured.echoes.figure(
            "spin-echo",
            "longest loopback echo in a round with two spinning guests, beyond that without",
        ),
    ];
    Ok(Done {
        figures,
        ..Done::default()
    })
}

/// The longest and the middle delay of each round, with guests and without, in milliseconds.
#[derive(Default)]
struct Delays {
    longest: Rounds,
    middle: Rounds,
}

impl Delays {
    fn add(&mut self, with: &[f64], without: &[f64]) {
        let (with, without) = (Summary::of(with), Summary::of(without));
        self.longest.first.push(with.max);
        self.longest.second.push(without.max);
        self.middle.first.push(with.median);
        self.middle.second.push(without.median);
    }

    fn figure(self, id: &'static str, what: &'static str) -> Figure {
        let side = |name, values| Side {
            name,
            unit: "ms",
            values,
        };
        Figure {
            id,
            what,
            unit: "ms",
            values: self.longest.differences(),
            goal: GOAL,
            judged: Judged::Max,
            sides: vec![
                side("longest, with guests", self.longest.first),
                side("longest, without", self.longest.second),
                side("median, with guests", self.middle.first),
                side("median, without", self.middle.second),
            ],
        }
    }
}

#[derive(Default)]
struct Measured {
    timers: Delays,
    echoes: Delays,
}

/// Both sides in turn on one runtime with two workers. One round before these is not counted.
fn measure(rounds: usize, timers: usize) -> Result<Measured> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let spinner = Spinner::new()?;
    let mut measured = Measured::default();
    for round in 0..=rounds {
        let guests = spinner.start(&runtime);
        let with = sample(&runtime, timers)?;
        guests.stop(&runtime)?;
        let without = sample(&runtime, timers)?;
        if round > 0 {
            measured.timers.add(&with.timers, &without.timers);
            measured.echoes.add(&with.echoes, &without.echoes);
        }
    }
    spinner.toolbox.shut_down(GRACE);
    Ok(measured)
}

/// Delays in milliseconds.
struct Sample {
    timers: Vec<f64>,
    echoes: Vec<f64>,
}

/// Timers and echoes side by side, all on the workers: the thread that waits here is none of them.
fn sample(runtime: &Runtime, timers: usize) -> Result<Sample> {
    let sampling = runtime.spawn(async move {
        let timers = tokio::spawn(delays(timers));
        let echoes = echoes(|| timers.is_finished()).await?;
        let timers = timers.await?;
        Ok::<_, Failed>(Sample { timers, echoes })
    });
    runtime.block_on(sampling)?
}

async fn delays(timers: usize) -> Vec<f64> {
    let mut delays = Vec::with_capacity(timers);
    for _ in 0..timers {
        let started = Instant::now();
        tokio::time::sleep(TIMER).await;
        delays.push(milliseconds(started.elapsed().saturating_sub(TIMER)));
    }
    delays
}

/// At least one echo, and then as many as there is time for.
async fn echoes(enough: impl Fn() -> bool) -> Result<Vec<f64>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(serve(listener));
    let mut client = TcpStream::connect(address).await?;
    client.set_nodelay(true)?;
    let mut taken = Vec::new();
    loop {
        let sent = (taken.len() as u64).to_le_bytes();
        let started = Instant::now();
        client.write_all(&sent).await?;
        let mut received = [0; 8];
        client.read_exact(&mut received).await?;
        taken.push(milliseconds(started.elapsed()));
        if received != sent {
            return Err("the echo differs from what was sent".into());
        }
        if enough() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    drop(client);
    server.await??;
    Ok(taken)
}

/// Answers one peer with its own words until it leaves.
async fn serve(listener: TcpListener) -> io::Result<()> {
    let (mut peer, _) = listener.accept().await?;
    peer.set_nodelay(true)?;
    let mut words = [0; 8];
    loop {
        match peer.read_exact(&mut words).await {
            Ok(_) => peer.write_all(&words).await?,
            Err(end) if end.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// A tool that computes for ever.
struct Spinner {
    toolbox: Toolbox,
    _folder: TempDir,
}

impl Spinner {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("spin.wasm");
        fs::write(&path, guests::spin()?)?;
        let toolbox = load(&ToolSource::new("spin", path))?;
        Ok(Self {
            toolbox,
            _folder: folder,
        })
    }

    /// Starts the guests; the samples see them from their first moment.
    fn start(&self, runtime: &Runtime) -> Spinning {
        let cancel = Cancel::new();
        let dispatch = self.toolbox.dispatch(Bindings {
            sink: Arc::new(Unheard),
            caller: Arc::new(NobodyThere),
            cancel: cancel.clone(),
        });
        let start = |n| {
            let (dispatch, id) = (Arc::clone(&dispatch), CallId::new(format!("call-{n}")));
            runtime.spawn(async move { dispatch.call(ToolCall::new(id, "spin", json!({}))).await.status })
        };
        let calls = (0..GUESTS).map(start).collect();
        Spinning { calls, cancel }
    }
}

struct Spinning {
    calls: Vec<JoinHandle<ToolStatus>>,
    cancel: Cancel,
}

impl Spinning {
    /// Ends the guests; they must have computed until now.
    fn stop(self, runtime: &Runtime) -> Result<()> {
        if self.calls.iter().any(JoinHandle::is_finished) {
            return Err("a guest ended by itself".into());
        }
        self.cancel.cancel(CancelReason::Caller);
        for call in self.calls {
            let status = runtime.block_on(call)?;
            if status != ToolStatus::Cancelled {
                return Err(format!("a guest ended as {}", status.as_str()).into());
            }
        }
        Ok(())
    }
}

struct Unheard;

impl RunSink for Unheard {
    fn record(&self, _: RunEvent) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_samples_timers_and_echoes_with_guests_and_without() {
        let measured = measure(1, 3).unwrap();
        for delays in [measured.timers, measured.echoes] {
            let Delays { longest, middle } = delays;
            for values in [&longest.first, &longest.second, &middle.first, &middle.second] {
                assert_eq!(values.len(), 1);
                assert!(values[0] >= 0.0, "{values:?}");
            }
            assert!(longest.first[0] >= middle.first[0]);
        }
    }

    #[test]
    fn a_round_keeps_its_longest_and_its_middle_delay() {
        let mut delays = Delays::default();
        delays.add(&[1.0, 9.0, 2.0], &[1.0, 3.0, 0.5]);
        let figure = delays.figure("spin", "what");
        assert_eq!(figure.values, [6.0]);
        let sides: Vec<_> = figure.sides.into_iter().map(|side| side.values).collect();
        assert_eq!(sides, [[9.0], [3.0], [2.0], [1.0]]);
    }
}
