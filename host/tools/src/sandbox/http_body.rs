//! Bodies of a guest's HTTP: counted against their limit, and tied to the connection that they come from.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use capsule_api::Clock;
use futures_util::{FutureExt as _, future::BoxFuture};
use hyper::body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;
use wasmtime_wasi_http::Error;

use super::record::{CallRecord, LimitHit};

/// Which way a body goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Response,
}

/// A body that ends with an error once it is larger than its limit.
pub(super) struct Bounded<B> {
    body: B,
    left: u64,
    limit: u64,
    direction: Direction,
    record: Arc<CallRecord>,
}

impl<B> Bounded<B> {
    pub(super) fn new(body: B, limit: u64, direction: Direction, record: Arc<CallRecord>) -> Self {
        Self {
            body,
            left: limit,
            limit,
            direction,
            record,
        }
    }
}

impl<B> Body for Bounded<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Error>,
{
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        let size = frame.data_ref().map_or(0, |data| data.len() as u64);
        match self.left.checked_sub(size) {
            Some(left) => {
                self.left = left;
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                self.record.hit(LimitHit::HttpBody(self.limit));
                let size = Some(self.limit);
                Poll::Ready(Some(Err(match self.direction {
                    Direction::Request => Error::HttpRequestBodySize(size),
                    Direction::Response => Error::HttpResponseBodySize(size),
                })))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body that ends with an error once nothing of it came for as long as its reader will wait.
pub(super) struct Steady<B> {
    body: B,
    limit: Duration,
    clock: Arc<dyn Clock>,
    silence: Option<BoxFuture<'static, ()>>,
}

impl<B> Steady<B> {
    /// `limit` counts from when the reader begins to wait: what it does between two reads is no silence of the server.
    pub(super) fn new(body: B, limit: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            body,
            limit,
            clock,
            silence: None,
        }
    }
}

impl<B> Body for Steady<B>
where
    B: Body<Error = Error> + Unpin,
{
    type Data = B::Data;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.silence = None;
            return Poll::Ready(frame);
        }
        let (clock, limit) = (Arc::clone(&self.clock), self.limit);
        let silence = self
            .silence
            .get_or_insert_with(|| async move { clock.sleep(limit).await }.boxed());
        ready!(silence.as_mut().poll(context));
        Poll::Ready(Some(Err(Error::ConnectionReadTimeout)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body together with what must live as long.
pub(super) struct Held<B, T> {
    body: B,
    _with: T,
}

impl<B, T> Held<B, T> {
    pub(super) fn new(body: B, with: T) -> Self {
        Self { body, _with: with }
    }
}

impl<B: Body + Unpin, T: Unpin> Body for Held<B, T> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The task that moves a connection's bytes; ends with its owner.
pub(super) struct Driver(JoinHandle<()>);

impl Driver {
    /// Needs a tokio runtime.
    pub(super) fn start(connection: impl Future<Output = hyper::Result<()>> + Send + 'static) -> Self {
        Self(tokio::spawn(async move {
            // What goes wrong here is told to whoever waits for the response.
            let _ = connection.await;
        }))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}
