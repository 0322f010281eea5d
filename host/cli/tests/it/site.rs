//! A small web site on loopback, for tools that fetch.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

/// A request as it came: its first line and its headers, with their names in lower case, and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// Answers every request with what is written for its path, one connection for each.
pub(crate) struct Site {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    over: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

/// An answer: status and headers, and the body.
pub(crate) type Page = (&'static str, Vec<u8>);

impl Site {
    /// Serves these pages; a path that is not there never gets an answer.
    pub(crate) fn start(pages: impl IntoIterator<Item = (&'static str, Page)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let pages: BTreeMap<&str, Page> = pages.into_iter().collect();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let over = Arc::<AtomicBool>::default();
        let (seen, ended) = (Arc::clone(&asked), Arc::clone(&over));
        let server = std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream.unwrap();
                let Some(request) = read(&stream) else { continue };
                let path = request.line.split(' ').nth(1).unwrap_or_default().to_owned();
                seen.lock().unwrap().push(request);
                match pages.get(path.as_str()) {
                    Some((head, body)) => answer(&mut stream, head, body),
                    None => silent.push(stream),
                }
            }
        });
        Self {
            address,
            asked,
            over,
            server: Some(server),
        }
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the server, which waits for somebody.
        drop(TcpStream::connect(self.address));
        let ended = self.server.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = BTreeMap::new();
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        let Some((name, value)) = field.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked {
        line: line.trim_end().to_owned(),
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}

/// A reader that has enough may go away in the middle.
fn answer(stream: &mut TcpStream, head: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}
