//! The socket of one connection with its time limits.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll},
    time::Duration,
};

use capsule_api::Clock;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::{Limits, scan::HeadScan};

/// Where a connection is in the exchange. Decides which time limit holds for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Between two requests.
    Idle,
    /// A request's head is awaited or arriving.
    Head,
    /// A request is being served; reading has the body's own time-out, or only waits for a disconnect.
    Busy,
}

/// What the socket and the service of one connection know of each other.
#[derive(Clone, Debug)]
pub(super) struct Exchange(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Requests begun so far, so that a limit of one request is not taken for the next one's.
    requests: u64,
    admitted: bool,
    refused: bool,
    scan: HeadScan,
}

impl Exchange {
    pub(super) fn new() -> Self {
        // A new connection owes a request within the header time-out.
        let state = State {
            phase: Phase::Head,
            requests: 0,
            admitted: false,
            refused: false,
            scan: HeadScan::default(),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A head is complete. Says whether its length is beyond doubt. It is not where the head was not seen as it arrived: sent before the
    /// request in front of it was answered, it came among bytes of which nobody but hyper knows where that request ends.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.state();
        state.phase = Phase::Busy;
        state.requests += 1;
        std::mem::take(&mut state.scan).is_sound()
    }

    /// Whether no request was begun.
    pub(super) fn is_unused(&self) -> bool {
        self.state().requests == 0
    }

    /// The request may be made, so the client may use the connection.
    pub(super) fn admit(&self) {
        self.state().admitted = true;
    }

    /// Whether a request was admitted.
    pub(super) fn was_admitted(&self) -> bool {
        self.state().admitted
    }

    /// The request is refused: its body stays unread, and the connection ends with the answer.
    pub(super) fn refuse(&self) {
        self.state().refused = true;
    }

    pub(super) fn was_refused(&self) -> bool {
        self.state().refused
    }

    /// The response is handed over.
    pub(super) fn end(&self) {
        self.state().phase = Phase::Idle;
    }

    fn arrived(&self, bytes: &[u8]) {
        let mut state = self.state();
        if state.phase != Phase::Busy && !bytes.is_empty() {
            state.phase = Phase::Head;
            state.scan.take(bytes);
        }
    }
}

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Reads under the time limit of the phase, writes under the stall limit.
pub(super) struct TimedIo {
    stream: TcpStream,
    exchange: Exchange,
    limits: Limits,
    clock: Arc<dyn Clock>,
    reading: Option<((Phase, u64), Sleep)>,
    writing: Option<Sleep>,
}

impl TimedIo {
    pub(super) fn new(stream: TcpStream, exchange: Exchange, limits: Limits, clock: Arc<dyn Clock>) -> Self {
        Self {
            stream,
            exchange,
            limits,
            clock,
            reading: None,
            writing: None,
        }
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.stream
    }

    fn sleep(clock: &Arc<dyn Clock>, duration: Duration) -> Sleep {
        let clock = Arc::clone(clock);
        Box::pin(async move { clock.sleep(duration).await })
    }

    /// Called while there is nothing to read.
    fn poll_read_limit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = {
            let state = self.exchange.state();
            (state.phase, state.requests)
        };
        let limit = match now.0 {
            Phase::Busy => {
                self.reading = None;
                return Poll::Pending;
            }
            Phase::Idle => self.limits.idle_timeout,
            Phase::Head => self.limits.header_timeout,
        };
        if self.reading.as_ref().is_none_or(|(of, _)| *of != now) {
            self.reading = Some((now, Self::sleep(&self.clock, limit)));
        }
        let Some((_, sleep)) = &mut self.reading else {
            return Poll::Pending;
        };
        sleep.as_mut().poll(cx)
    }

    fn within_stall_limit<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.writing = None;
            return done;
        }
        let (clock, limit) = (&self.clock, self.limits.write_stall);
        let sleep = self.writing.get_or_insert_with(|| Self::sleep(clock, limit));
        match sleep.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(timed_out("the client does not read"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

fn timed_out(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

impl AsyncRead for TimedIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Ready(Ok(())) => {
                self.exchange.arrived(&buf.filled()[before..]);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self
                .poll_read_limit(cx)
                .map(|()| Err(timed_out("the client sends no request"))),
        }
    }
}

impl AsyncWrite for TimedIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.within_stall_limit(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.within_stall_limit(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
