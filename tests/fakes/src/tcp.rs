//! A raw TCP client that does what no HTTP library would.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A client that tests the limits of a server.
///
/// It never waits for a clock: each call returns when the bytes are with the kernel, and a test
/// holds the client open for as long as it likes.
#[derive(Debug)]
pub struct MisbehavingClient {
    stream: TcpStream,
}

/// How a server ended the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// In order.
    Closed,
    /// By a reset.
    Reset,
    /// Not yet: the client stopped reading at its own limit.
    StillOpen,
}

impl MisbehavingClient {
    /// Connects.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn connect(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the server has closed the connection.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Sends the beginning of a request's head and leaves it without an end.
    ///
    /// # Errors
    /// When the server has closed the connection.
    pub async fn send_partial_head(&mut self, path: &str) -> io::Result<()> {
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nX-Unfinished: ");
        self.send(head.as_bytes()).await
    }

    /// Sends a whole head that announces a body of `length` bytes, and no body. `headers` are
    /// added as they are.
    ///
    /// # Errors
    /// When the server has closed the connection.
    pub async fn announce_body(&mut self, path: &str, length: u64, headers: &[(&str, &str)]) -> io::Result<()> {
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n"
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.send(head.as_bytes()).await
    }

    /// Sends one byte per segment, giving way to other tasks between them.
    ///
    /// # Errors
    /// When the server has closed the connection.
    pub async fn send_byte_by_byte(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            self.stream.write_all(std::slice::from_ref(byte)).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Sends header lines without end, until the server stops it or `limit` bytes are sent;
    /// returns the bytes sent.
    pub async fn send_endless_headers(&mut self, limit: usize) -> usize {
        let mut sent = 0;
        let mut line = "GET / HTTP/1.1\r\nHost: localhost\r\n".to_owned();
        while sent < limit {
            if self.send(line.as_bytes()).await.is_err() {
                break;
            }
            sent += line.len();
            line = format!("X-{sent}: {}\r\n", "a".repeat(1000));
        }
        sent
    }

    /// Ends the client's half; it can still read.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn half_close(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Ends the connection by a reset.
    ///
    /// # Errors
    /// When the socket's option cannot be set.
    pub fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }

    /// Reads until the server ends the connection, at most `limit` bytes.
    ///
    /// # Errors
    /// When reading fails otherwise than by the connection's end.
    pub async fn read_to_end(&mut self, limit: usize) -> io::Result<(Vec<u8>, Ending)> {
        let mut read = Vec::new();
        let mut buffer = [0; 4096];
        while read.len() < limit {
            let room = buffer.len().min(limit - read.len());
            match self.stream.read(&mut buffer[..room]).await {
                Ok(0) => return Ok((read, Ending::Closed)),
                Ok(count) => read.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok((read, Ending::Reset));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((read, Ending::StillOpen))
    }

    /// Reads one response head, at most `limit` bytes, and returns its status.
    ///
    /// # Errors
    /// `InvalidData` when what comes is not a response head; otherwise the reading's own error.
    pub async fn read_status(&mut self, limit: usize) -> io::Result<u16> {
        let mut head = Vec::new();
        while head.len() < limit && !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await?);
        }
        let text = String::from_utf8_lossy(&head);
        let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
        status
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, text.into_owned()))
    }
}
