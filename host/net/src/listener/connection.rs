//! One connection: requests one after the other, until either side has enough.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use capsule_api::{Clock, timeout};
use http::{Request, Response, StatusCode, request::Parts};
use http_body_util::BodyExt as _;
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

use super::{
    Body, Guard, Handler, Limits,
    guard::Refusal,
    io::{Exchange, TimedIo},
};

/// What all connections of a listener share.
pub(super) struct Shared {
    pub(super) local: SocketAddr,
    pub(super) guard: Guard,
    pub(super) limits: Limits,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) handler: Arc<dyn Handler>,
    /// Fires when the server closes: requests under way are answered, new ones are not taken.
    pub(super) closing: CancellationToken,
}

/// Serves a connection to its end.
pub(super) async fn serve(shared: Arc<Shared>, stream: TcpStream, peer: SocketAddr, exchange: Exchange) {
    let _ = stream.set_nodelay(true);
    let io = TimedIo::new(stream, exchange.clone(), shared.limits, Arc::clone(&shared.clock));
    let seen = exchange.clone();
    let service = {
        let shared = Arc::clone(&shared);
        service_fn(move |request: Request<Incoming>| {
            let (shared, exchange) = (Arc::clone(&shared), exchange.clone());
            let answer: Answer = Box::pin(async move {
                let response = respond(&shared, &exchange, request, peer).await;
                Ok(response.map(|body| Tracked { body, exchange }))
            });
            answer
        })
    };
    let mut connection = http1::Builder::new()
        .max_header_size(shared.limits.header_bytes)
        .max_buf_size(shared.limits.header_bytes.max(8 << 10))
        .serve_connection(TokioIo::new(io), service);
    let mut closing = pin!(shared.closing.cancelled());
    let mut told = false;
    let ended = poll_fn(|cx| {
        if !told && closing.as_mut().poll(cx).is_ready() {
            told = true;
            if seen.is_unused() {
                // hyper would wait for the rest of a first head that has begun.
                return Poll::Ready(Ok(()));
            }
            Pin::new(&mut connection).graceful_shutdown();
        }
        connection.poll_without_shutdown(cx)
    });
    // A head that cannot be read is refused by hyper itself (400, 431); every other error is the end of the socket.
    let refused = match ended.await {
        Ok(()) => seen.was_refused(),
        Err(error) => {
            tracing::debug!(%peer, %error, "connection ended");
            error.is_parse()
        }
    };
    if refused {
        linger(connection.into_parts().io.into_inner().into_stream(), &*shared.clock).await;
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Tracked>, Infallible>> + Send>>;

async fn respond(shared: &Shared, exchange: &Exchange, request: Request<Incoming>, peer: SocketAddr) -> Response<Body> {
    let (head, body) = request.into_parts();
    match admit(shared, exchange, &head, body).await {
        Ok(body) => shared.handler.handle(Request::from_parts(head, body), peer).await,
        Err(refusal) => {
            tracing::debug!(%peer, ?refusal, "request refused");
            exchange.refuse();
            refusal.into_response()
        }
    }
}

async fn admit(shared: &Shared, exchange: &Exchange, head: &Parts, body: Incoming) -> Result<Bytes, Refusal> {
    if !exchange.begin() {
        return Err(Refusal::of(StatusCode::BAD_REQUEST));
    }
    shared.guard.check(head, shared.local, shared.limits.body_bytes)?;
    exchange.admit();
    let reading = read(body, shared.limits.body_bytes);
    let read = timeout(&*shared.clock, shared.limits.body_timeout, reading).await;
    read.unwrap_or_else(|_| Err(Refusal::of(StatusCode::REQUEST_TIMEOUT)))
}

async fn read(mut body: Incoming, largest: usize) -> Result<Bytes, Refusal> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(Refusal::of(StatusCode::BAD_REQUEST));
        };
        if let Ok(piece) = frame.into_data() {
            if piece.len() > largest - whole.len() {
                return Err(Refusal::of(StatusCode::PAYLOAD_TOO_LARGE));
            }
            whole.extend_from_slice(&piece);
        }
    }
    Ok(whole.freeze())
}

const LINGER_TIME: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 256 << 10;

/// Ends a refused connection so that the refusal arrives: closing a socket with unread bytes resets it, and a reset takes back what the client
/// has not read yet, such as the 413 to a body that is still on its way.
async fn linger(mut stream: TcpStream, clock: &dyn Clock) {
    let discard = async {
        stream.shutdown().await?;
        let mut rest = stream.take(LINGER_BYTES);
        let mut buffer = [0; 4096];
        while rest.read(&mut buffer).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    // The exchange is over; how the rest of it fails changes nothing.
    let _ = timeout(clock, LINGER_TIME, discard).await;
}

/// A body that tells when it is done with.
struct Tracked {
    body: Body,
    exchange: Exchange,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.exchange.end();
    }
}

impl hyper::body::Body for Tracked {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
