//! The provider's handle and its accept loop.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::poll_fn;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::record::{Log, Recorder};
use crate::service::{Service, Shared};
use crate::{Gate, Outcome, RecordedRequest, Script};

/// Open connections at a time; further ones wait in the listener's backlog.
pub const MAX_CONNECTIONS: usize = 1024;
/// Bytes of a request body; a larger one is answered with 413 and recorded as a violation.
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;
/// Requests recorded; further ones are answered with 500 and recorded as a violation.
pub const MAX_REQUESTS: usize = 16_384;
/// Bytes of request bodies recorded in all; further requests are answered as above.
pub const MAX_RECORDED_BYTES: usize = 512 * 1024 * 1024;
/// Header fields of a request; more are answered with 431.
const MAX_HEADERS: usize = 100;
/// The longest wait for a request's head, idle time on a kept connection included. Long, so that
/// no client meets a connection that closes just as it is used again.
const HEAD_TIMEOUT: Duration = Duration::from_secs(600);

/// A scripted model provider on a loopback port.
///
/// Everything it started ends with it: aborted when dropped, and gone by the end of
/// [`Provider::shutdown`]. Waiting has no limit in time of its own: a test's runner
/// sets one.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
    server: Option<JoinHandle<()>>,
}

impl Provider {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// As [`Provider::start_on`].
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_on(script, 0).await
    }

    /// Starts on this port of 127.0.0.1; 0 means a free one.
    ///
    /// # Errors
    /// When the port cannot be bound, and `InvalidInput` for a script with a status or a header
    /// that HTTP cannot carry.
    pub async fn start_on(script: Script, port: u16) -> io::Result<Self> {
        if let Some(flaw) = script.flaw() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, flaw));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            recorder: Recorder::new(),
            gate: Gate::new(),
        });
        let stop = CancellationToken::new();
        let server = tokio::spawn(accept(listener, Arc::clone(&shared), stop.clone()));
        Ok(Self {
            address,
            shared,
            stop,
            server: Some(server),
        })
    }

    /// The base URL, without a path: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What hanging and stalled answers wait for.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.shared.gate.clone()
    }

    /// The model requests so far, refused ones included, in the order of their arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.recorder.read(|log| log.requests.clone())
    }

    /// The requests so far that were not model requests.
    #[must_use]
    pub fn other_requests(&self) -> Vec<RecordedRequest> {
        self.shared.recorder.read(|log| log.others.clone())
    }

    /// Rules that requests broke so far, and whatever else must not happen in a sound test.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.shared.recorder.read(|log| log.violations.clone())
    }

    /// How many model requests came after the script's end.
    #[must_use]
    pub fn overrun(&self) -> usize {
        let recorder = &self.shared.recorder;
        recorder.read(|log| count(log, Outcome::Overrun))
    }

    /// Waits until this many model requests have arrived in all. Cancel-safe.
    pub async fn wait_for_requests(&self, requests: usize) {
        let recorder = &self.shared.recorder;
        recorder.wait_for(|log| log.requests.len() >= requests).await;
    }

    /// Waits until the model requests satisfy a condition, e.g. on their outcomes. Cancel-safe.
    pub async fn wait_until(&self, mut condition: impl FnMut(&[RecordedRequest]) -> bool) {
        let recorder = &self.shared.recorder;
        recorder.wait_for(|log| condition(&log.requests)).await;
    }

    /// Waits until this many exchanges were dropped by the client. Cancel-safe.
    pub async fn wait_for_dropped(&self, exchanges: usize) {
        let recorder = &self.shared.recorder;
        recorder.wait_for(|log| count(log, Outcome::Dropped) >= exchanges).await;
    }

    /// Asserts that no request broke a rule and none came after the script's end.
    ///
    /// # Panics
    /// With the list of violations, or the number of requests too many.
    #[track_caller]
    pub fn assert_clean(&self) {
        let violations = self.violations();
        assert!(violations.is_empty(), "violations: {violations:#?}");
        let overrun = self.overrun();
        assert_eq!(overrun, 0, "requests after the script's end");
    }

    /// Ends all connections and the listener, and waits until they are gone.
    ///
    /// # Panics
    /// When the server's task panicked.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        if let Some(server) = self.server.take() {
            server.await.expect("the accept loop does not panic");
        }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // The accept loop owns the connections: they are aborted with it.
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}

fn count(log: &Log, outcome: Outcome) -> usize {
    let requests = log.requests.iter();
    requests.filter(|request| request.outcome == outcome).count()
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    shared.recorder.violation(format!("a connection's task failed: {error}"));
                }
            }
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve(stream, Arc::clone(&shared)));
                    }
                    Err(error) => {
                        shared.recorder.violation(format!("the listener failed: {error}"));
                        break;
                    }
                }
            }
        }
    }
    connections.shutdown().await;
}

/// Serves one connection to its end.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Small writes leave at once; without it they are only merged.
    let _ = stream.set_nodelay(true);
    let reset = Arc::new(AtomicBool::new(false));
    let service = Service {
        shared,
        reset: Arc::clone(&reset),
    };
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(move |request| Box::pin(service.clone().answer(request))),
        );
    // How a connection ends is in the record of its exchanges; an error here says the same again.
    let _ = poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let stream = connection.into_parts().io.into_inner();
    if reset.load(Ordering::Acquire) {
        // Closing without lingering sends a reset. If it cannot be set, the peer sees a close.
        let _ = stream.set_zero_linger();
    }
}
