//! A server with a scripted handler, and a client that writes whatever bytes a test wants.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use capsule_api::{Secret, SystemClock};
use capsule_net::{Body, Guard, Handler, Limits, Server};
use http::{Request, Response};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::{Notify, Semaphore},
};

pub(crate) const TOKEN: &str = "0123456789abcdef";
pub(crate) const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Counts what was dropped, so that a test can wait for it.
#[derive(Clone, Default)]
pub(crate) struct Drops(Arc<(AtomicUsize, Notify)>);

pub(crate) struct Dropped(Drops);

impl Drops {
    pub(crate) fn token(&self) -> Dropped {
        Dropped(self.clone())
    }

    pub(crate) async fn wait(&self, count: usize) {
        loop {
            let changed = self.0.1.notified();
            if self.0.0.load(Ordering::SeqCst) >= count {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.0.0.fetch_add(1, Ordering::SeqCst);
        self.0.0.1.notify_waiters();
    }
}

/// Answers by path: `/echo` the length of the body, `/wait` when it is let go, `/endless` a stream without end, `/redirect` elsewhere.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) started: Arc<Semaphore>,
    pub(crate) go: Arc<Semaphore>,
    pub(crate) drops: Drops,
    pub(crate) peers: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self {
            started: Arc::new(Semaphore::new(0)),
            go: Arc::new(Semaphore::new(0)),
            drops: Drops::default(),
            peers: Arc::default(),
        }
    }

    /// Waits until another `count` requests are in the handler.
    pub(crate) async fn started(&self, count: u32) {
        self.started.acquire_many(count).await.unwrap().forget();
    }
}

#[async_trait]
impl Handler for Script {
    async fn handle(&self, request: Request<Bytes>, peer: SocketAddr) -> Response<Body> {
        let dropped = self.drops.token();
        self.peers.lock().unwrap().push(peer);
        self.started.add_permits(1);
        match request.uri().path() {
            "/wait" => {
                self.go.acquire().await.unwrap().forget();
                Response::new(Body::full("gone"))
            }
            "/endless" => {
                let piece = Bytes::from(vec![b'x'; 64 << 10]);
                let pieces = futures_util::stream::repeat_with(move || {
                    let _held = &dropped;
                    piece.clone()
                });
                Response::new(Body::stream(pieces))
            }
            "/silent" => Response::new(Body::stream(futures_util::stream::once(async move {
                std::future::pending::<()>().await;
                drop(dropped);
                Bytes::new()
            }))),
            "/redirect" => Response::builder()
                .status(302)
                .header("location", "http://169.254.169.254/latest/meta-data/")
                .body(Body::empty())
                .unwrap(),
            "/panic" => panic!("the handler's own fault"),
            _ => Response::new(Body::full(format!("{} bytes", request.body().len()))),
        }
    }
}

pub(crate) fn guard() -> Guard {
    let mut guard = Guard::json_post("/echo", Secret::new(TOKEN));
    guard
        .paths
        .extend(["/wait", "/endless", "/silent", "/panic"].map(String::from));
    guard
}

pub(crate) async fn server(script: &Script, limits: Limits) -> Server {
    let clock = Arc::new(SystemClock);
    Server::bind(LOOPBACK, guard(), limits, clock, Arc::new(script.clone()))
        .await
        .unwrap()
}

/// A request as a client of ours would write it.
pub(crate) fn post(server: &Server, path: &str, more: &str, body: &str) -> String {
    let host = server.local_addr();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n{more}\r\n{body}"
    )
}

pub(crate) async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.local_addr()).await.unwrap()
}

/// Everything until the server closes. A reset counts as the end.
pub(crate) async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all).await;
    String::from_utf8(all).unwrap()
}

/// Reads until `end` has come.
pub(crate) async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut all = Vec::new();
    while !all.ends_with(end.as_bytes()) {
        let byte = stream.read_u8().await;
        all.push(byte.unwrap_or_else(|_| panic!("closed after {:?}", String::from_utf8_lossy(&all))));
    }
    String::from_utf8(all).unwrap()
}

/// One request on a connection of its own: the status and the whole answer.
pub(crate) async fn ask(server: &Server, request: impl AsRef<[u8]>) -> (u16, String) {
    let mut stream = connect(server).await;
    // A server that refuses may close before it has everything.
    let _ = stream.write_all(request.as_ref()).await;
    let answer = read_to_end(&mut stream).await;
    let status = answer.get(9..12).and_then(|status| status.parse().ok());
    (status.unwrap_or(0), answer)
}

/// Limits with one of them so short that a test can wait for it, and the others so long that they stay out of it.
pub(crate) fn long() -> Limits {
    let hour = Duration::from_secs(3600);
    Limits {
        header_timeout: hour,
        body_timeout: hour,
        write_stall: hour,
        idle_timeout: hour,
        ..Limits::default()
    }
}

pub(crate) const SHORT: Duration = Duration::from_millis(40);
