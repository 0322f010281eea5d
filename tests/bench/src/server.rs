//! A loopback server that notes when the first byte of each request arrives.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::Result;

/// A request that is not there after this long never comes.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest request.
const LARGEST: usize = 1 << 20;

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// When its first byte was read.
    pub(crate) at: Instant,
    /// Its first line and headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// The server; it ends when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    arrivals: Receiver<io::Result<Arrival>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts on a free port. Every request gets this body, as an event stream, and then the connection is closed.
    pub(crate) fn start(answer: &str) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
            answer.len()
        );
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        // One request is under way at a time; room for one more lets the thread notice the end.
        let (sender, arrivals) = sync_channel(1);
        let thread = thread::spawn(move || {
            for connection in listener.incoming() {
                let arrival = connection.and_then(|connection| serve(connection, &answer));
                if stopped.load(Ordering::SeqCst) || sender.send(arrival).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            address,
            arrivals,
            stop,
            thread: Some(thread),
        })
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request.
    pub(crate) fn next(&self) -> Result<Arrival> {
        let arrival = self.arrivals.recv_timeout(PATIENCE);
        let arrival = arrival.map_err(|_| format!("no request came within {} s", PATIENCE.as_secs()))?;
        Ok(arrival.map_err(|cause| format!("the request could not be read: {cause}"))?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // The thread waits for a connection, so it gets one; if that fails, it waits for nothing that is worth waiting for.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            // A panic in it was already seen as a missing arrival.
            let _ = thread.join();
        }
    }
}

fn serve(mut connection: TcpStream, answer: &str) -> io::Result<Arrival> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_nodelay(true)?;
    let mut received = Vec::new();
    let mut buffer = [0; 16 << 10];
    let mut at = None;
    loop {
        let count = connection.read(&mut buffer)?;
        let now = Instant::now();
        if count == 0 || received.len() + count > LARGEST {
            return Err(io::Error::other("it ends early or is too large"));
        }
        let at = *at.get_or_insert(now);
        received.extend_from_slice(&buffer[..count]);
        if let Some((head, body)) = whole(&received)? {
            let (head, body) = (head.to_owned(), body.to_vec());
            connection.write_all(answer.as_bytes())?;
            return Ok(Arrival { at, head, body });
        }
    }
}

/// Head and body, once both are there.
fn whole(received: &[u8]) -> io::Result<Option<(&str, &[u8])>> {
    let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&received[..end]).map_err(io::Error::other)?;
    let length = headers(head).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, value)| value.parse().ok());
    let length: usize = length.ok_or_else(|| io::Error::other("it has no content-length"))?;
    let body = &received[end + 4..];
    Ok((body.len() >= length).then_some((head, body)))
}

/// The headers below the first line.
pub(crate) fn headers(head: &str) -> impl Iterator<Item = (&str, &str)> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.trim(), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_from_its_first_byte_and_is_taken_whole() {
        let server = Server::start("data: hello\n\n").unwrap();
        let before = Instant::now();
        let mut client = TcpStream::connect(server.address).unwrap();
        client.write_all(b"POST /v1 HTTP/1.1\r\nContent-Len").unwrap();
        client.write_all(b"gth: 5\r\nx-key: a:b\r\n\r\n12").unwrap();
        client.write_all(b"345").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        let arrival = server.next().unwrap();
        assert!(arrival.at >= before && arrival.at <= Instant::now());
        assert_eq!(arrival.body, b"12345");
        let fields: Vec<_> = headers(&arrival.head).collect();
        assert_eq!(fields, [("Content-Length", "5"), ("x-key", "a:b")]);
        assert!(answer.ends_with("\r\n\r\ndata: hello\n\n"), "{answer}");
    }

    #[test]
    fn a_request_that_ends_early_is_an_error() {
        let server = Server::start("").unwrap();
        let mut client = TcpStream::connect(server.address).unwrap();
        client
            .write_all(b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\n12")
            .unwrap();
        drop(client);
        let refused = server.next().unwrap_err().to_string();
        assert_eq!(refused, "the request could not be read: it ends early or is too large");
    }
}
