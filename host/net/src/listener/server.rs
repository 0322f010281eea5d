//! Accepting connections, and ending them.

use std::{fmt, future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use capsule_api::{Clock, Error, timeout};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::{JoinError, JoinHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;

use super::{
    Guard, Handler, Limits,
    connection::{Shared, serve},
    io::Exchange,
    newcomers::Newcomers,
};
use crate::codes;

/// A running listener. Dropping it ends every connection at once.
pub struct Server {
    local: SocketAddr,
    clock: Arc<dyn Clock>,
    closing: CancellationToken,
    ending: CancellationToken,
    task: Option<JoinHandle<usize>>,
}

impl Server {
    /// Binds `address` (port 0: any free one) and serves until it is closed or dropped.
    ///
    /// # Errors
    /// The address cannot be bound ([`codes::BIND`]).
    pub async fn bind(
        address: SocketAddr,
        guard: Guard,
        limits: Limits,
        clock: Arc<dyn Clock>,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, Error> {
        let failed = |error: io::Error| {
            Error::new(&codes::BIND, format!("cannot listen on {address}: {error}")).caused_by(error)
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        let (closing, ending) = (CancellationToken::new(), CancellationToken::new());
        let shared = Arc::new(Shared {
            local,
            guard,
            limits,
            clock: Arc::clone(&clock),
            handler,
            closing: closing.clone(),
        });
        let task = Some(tokio::spawn(run(listener, shared, ending.clone())));
        Ok(Self {
            local,
            clock,
            closing,
            ending,
            task,
        })
    }

    /// The bound address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The URL of a path on this server; the path starts with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.local)
    }

    /// Stops accepting, lets requests under way end within `grace`, then ends what is left and waits for it. Returns how many connections
    /// had to be cut. Dropping the future ends everything at once.
    pub async fn close(mut self, grace: Duration) -> usize {
        self.closing.cancel();
        let Some(task) = &mut self.task else {
            return 0;
        };
        let cut = match timeout(&*self.clock, grace, &mut *task).await {
            Ok(cut) => cut,
            Err(_) => {
                self.ending.cancel();
                task.await
            }
        };
        self.task = None;
        cut.unwrap_or(0)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            // The connections are tasks of this task's set and are aborted with it.
            task.abort();
        }
    }
}

/// Where connections come from.
trait Accept: Send {
    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send;
}

impl Accept for TcpListener {
    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send {
        self.accept()
    }
}

/// Returns how many connections were cut at the end.
async fn run(listener: impl Accept, shared: Arc<Shared>, ending: CancellationToken) -> usize {
    let mut connections = JoinSet::new();
    tokio::select! {
        () = accept(&listener, &shared, &mut connections) => {}
        () = shared.closing.cancelled() => {}
    }
    drop(listener);
    let ended = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    tokio::select! {
        biased;
        () = ended => {}
        () = ending.cancelled() => {}
    }
    let cut = connections.len();
    connections.shutdown().await;
    cut
}

const FIRST_BACK_OFF: Duration = Duration::from_millis(5);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(1);

async fn accept(listener: &impl Accept, shared: &Arc<Shared>, connections: &mut JoinSet<()>) {
    let places = Arc::new(Semaphore::new(shared.limits.connections));
    let mut newcomers = Newcomers::default();
    let mut back_off = FIRST_BACK_OFF;
    loop {
        while let Some(ended) = connections.try_join_next() {
            report(ended);
        }
        match listener.accept().await {
            Ok((stream, peer)) => {
                back_off = FIRST_BACK_OFF;
                if places.available_permits() == 0 {
                    // Else connections that say nothing would keep out those that may ask, until the header time-out.
                    newcomers.end_oldest();
                }
                // Whoever comes behind this one waits in the kernel's queue and costs nothing here.
                let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                    return;
                };
                let (exchange, of_task) = (Exchange::new(), Arc::clone(shared));
                let of_connection = exchange.clone();
                let task = connections.spawn(async move {
                    serve(of_task, stream, peer, of_connection).await;
                    drop(place);
                });
                newcomers.add(exchange, task, shared.limits.connections);
            }
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                // Out of descriptors, most likely: it passes when a connection ends.
                tracing::warn!(%error, retry_in = ?back_off, "cannot accept a connection");
                shared.clock.sleep(back_off).await;
                back_off = (back_off * 2).min(LONGEST_BACK_OFF);
            }
        }
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "the handler of a request panicked; its connection is closed");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use bytes::Bytes;
    use capsule_api::{Secret, SystemClock};
    use http::{Request, Response};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::listener::Body;

    struct Nobody;

    #[async_trait]
    impl Handler for Nobody {
        async fn handle(&self, _: Request<Bytes>, _: SocketAddr) -> Response<Body> {
            Response::new(Body::empty())
        }
    }

    /// Fails as often as it has errors, then accepts.
    struct Troubled(TcpListener, Mutex<Vec<io::Error>>);

    impl Accept for Troubled {
        async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
            let trouble = self.1.lock().unwrap().pop();
            match trouble {
                Some(error) => Err(error),
                None => self.0.accept().await,
            }
        }
    }

    #[tokio::test]
    async fn errors_of_accept_are_survived() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let local = listener.local_addr().unwrap();
        let out_of_descriptors = io::Error::from_raw_os_error(24);
        let gone_already = io::Error::from(io::ErrorKind::ConnectionAborted);
        let troubled = Troubled(listener, Mutex::new(vec![gone_already, out_of_descriptors]));
        let closing = CancellationToken::new();
        let shared = Arc::new(Shared {
            local,
            guard: Guard::json_post("/", Secret::new("token")),
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
            handler: Arc::new(Nobody),
            closing: closing.clone(),
        });
        let running = tokio::spawn(run(troubled, shared, CancellationToken::new()));
        let mut stream = TcpStream::connect(local).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        closing.cancel();
        assert_eq!(running.await.unwrap(), 0);
    }
}
