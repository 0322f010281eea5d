//! Outgoing HTTP under the address policy.
//!
//! The policy: `https`, or `http` to `localhost` and loopback addresses. Names are resolved here, every address is checked, and the
//! connection goes to exactly the address that was checked, so a second answer of the name service changes nothing. Link-local, metadata,
//! unspecified, multicast and reserved addresses and IPv6 forms that carry an IPv4 address are never connected to; loopback only where the
//! URL says `localhost` or writes the address; private ranges only where the URL writes the address. Redirects are returned, not followed.
//! A proxy is used where [`Options`] has one, for `https` to other machines; which address a name leads to is then the proxy's matter.

mod address;
mod connect;
mod pool;
mod proxy;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use capsule_api::{Clock, Error, HttpBody, HttpClient, Retry};
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;

pub use address::{PlainHttp, never_connected_to};
pub use connect::{Resolver, Roots, Stream, SystemResolver};
pub use proxy::Proxy;

use crate::codes;
use address::Origin;
use connect::Connector;
use pool::{Connection, Driver, Pool};

/// What can be chosen about a client.
#[derive(Clone)]
pub struct Options {
    /// Who resolves names.
    pub resolver: Arc<dyn Resolver>,
    /// Whom to trust.
    pub roots: Roots,
    /// How long connecting to one address may take, and the TLS handshake after it again.
    pub connect_timeout: Duration,
    /// The proxy on the way to other machines.
    pub proxy: Option<Proxy>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            roots: Roots::System,
            connect_timeout: Duration::from_secs(10),
            proxy: None,
        }
    }
}

/// The host's HTTP/1.1 client. Needs a tokio runtime. Dropping it closes its idle connections.
pub struct NetClient {
    inner: Arc<Inner>,
}

struct Inner {
    connector: Connector,
    pool: Pool,
    clock: Arc<dyn Clock>,
}

/// Bytes of a response's head; more is an error. hyper also wants at least 8 KiB.
const HEAD_BYTES: usize = 256 << 10;

impl NetClient {
    /// A client of the system: its resolver and its root certificates.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_options(clock, Options::default())
    }

    /// A client with chosen parts.
    pub fn with_options(clock: Arc<dyn Clock>, options: Options) -> Self {
        let connector = Connector::new(Arc::clone(&clock), options);
        let inner = Inner {
            connector,
            pool: Pool::default(),
            clock,
        };
        Self { inner: Arc::new(inner) }
    }

    /// A new connection to the origin of `uri`, for a caller that speaks HTTP/1.1 over it itself. The whole address policy holds, with
    /// `plain` for plain `http`; TLS is done for `https`. The connection stays with the address that was checked.
    ///
    /// # Errors
    /// As for [`HttpClient::send`], up to the connection. Cancel-safe: dropping the future closes what was opened.
    pub async fn connect(&self, uri: &Uri, plain: PlainHttp) -> Result<Box<dyn Stream>, Error> {
        let origin = Origin::with(uri, plain)?;
        self.inner.connector.connect(&origin).await
    }
}

impl fmt::Debug for NetClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NetClient")
    }
}

#[async_trait]
impl HttpClient for NetClient {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Box<dyn HttpBody>>, Error> {
        let origin = Origin::of(request.uri())?;
        let request = on_the_wire(request, &origin)?;
        let (response, connection) = self.inner.exchange(&origin, request).await?;
        Ok(response.map(|incoming| -> Box<dyn HttpBody> {
            Box::new(Body {
                incoming,
                host: origin.host.clone(),
                held: Some((connection, origin)),
                client: Arc::clone(&self.inner),
            })
        }))
    }
}

/// The request as it is written: target without scheme and host, `Host` from the URL whatever the caller set.
fn on_the_wire(request: Request<Bytes>, origin: &Origin) -> Result<Request<Full<Bytes>>, Error> {
    let refused = || {
        Error::new(
            &codes::URL_REFUSED,
            format!("the URL of the request to `{}` is malformed", origin.host),
        )
    };
    let host = HeaderValue::try_from(origin.host_header()).map_err(|_| refused())?;
    let (mut head, body) = request.into_parts();
    head.uri = match head.uri.path_and_query() {
        Some(target) => Uri::from(target.clone()),
        None => Uri::from_static("/"),
    };
    head.headers.insert(header::HOST, host);
    Ok(Request::from_parts(head, Full::new(body)))
}

impl Inner {
    async fn exchange(
        &self,
        origin: &Origin,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection), Error> {
        // A kept connection may have been closed by the peer just now. A request that was not written to it goes on with the next one.
        while let Some(mut connection) = self.pool.take(origin, self.clock.now()) {
            if connection.sender.ready().await.is_err() {
                continue;
            }
            match connection.sender.try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                Err(mut failure) => match failure.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(broken(origin, failure.into_error())),
                },
            }
        }
        let mut connection = self.open(origin).await?;
        let sent = connection.sender.send_request(request).await;
        sent.map(|response| (response, connection))
            .map_err(|error| broken(origin, error))
    }

    async fn open(&self, origin: &Origin) -> Result<Connection, Error> {
        let stream = self.connector.connect(origin).await?;
        let shaken = http1::Builder::new()
            .max_buf_size(HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, driver) = shaken.map_err(|error| broken(origin, error))?;
        let driver = Driver(tokio::spawn(async move {
            // What goes wrong here is told to whoever waits for the response.
            let _ = driver.await;
        }));
        Ok(Connection {
            sender,
            _driver: driver,
        })
    }
}

fn broken(origin: &Origin, error: hyper::Error) -> Error {
    let host = &origin.host;
    if error.is_parse() {
        let message = format!(
            "`{host}:{}` answered something that is not HTTP/1.1: {error}",
            origin.port
        );
        return Error::new(&codes::PROTOCOL, message).caused_by(error);
    }
    let message = format!("the connection to `{host}` broke before the response: {error}");
    Error::new(&codes::EXCHANGE, message)
        .retry(Retry::Later)
        .caused_by(error)
}

/// A response's body together with the connection it comes from.
struct Body {
    incoming: Incoming,
    host: String,
    /// Given back at the clean end; dropped, and so closed, at any other.
    held: Option<(Connection, Origin)>,
    client: Arc<Inner>,
}

#[async_trait]
impl HttpBody for Body {
    async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            match self.incoming.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) if !piece.is_empty() => return Ok(Some(piece)),
                    // Trailers say nothing that a caller here wants.
                    _ => {}
                },
                Some(Err(error)) => {
                    self.held = None;
                    let message = format!("the response of `{}` broke off: {error}", self.host);
                    return Err(Error::new(&codes::BODY, message).retry(Retry::Later).caused_by(error));
                }
                None => {
                    if let Some((connection, origin)) = self.held.take() {
                        self.client.pool.put(origin, connection, self.client.clock.now());
                    }
                    return Ok(None);
                }
            }
        }
    }
}
